//! Definitions (`CustomResourceDefinition`) as objects. The server's kinds are fixed when it
//! starts: a definition of a kind that it has is accepted and changes nothing, one of another kind
//! is refused. Sets the status that clients wait for.

use crate::kinds::{Kind, Kinds};
use crate::status::{Cause, MAX_PROBLEMS};
use serde_json::{Map, Value, json};

/// Why a definition cannot be accepted.
#[must_use]
pub fn check(kinds: &Kinds, definition: &Value) -> Vec<Cause> {
    let text = |at: &str| {
        definition
            .pointer(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let mut causes = Vec::new();
    for (value, field) in [
        (group, "spec.group"),
        (plural, "spec.names.plural"),
        (text("/spec/names/kind"), "spec.names.kind"),
        (text("/spec/scope"), "spec.scope"),
    ] {
        if value.is_empty() {
            causes.push(Cause::required(field, ""));
        }
    }
    if !causes.is_empty() {
        return causes;
    }
    let wanted = format!("{plural}.{group}");
    let name = text("/metadata/name");
    if name != wanted {
        let why = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &name.into(), why));
    }
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    for (index, version) in versions.into_iter().flatten().enumerate() {
        if causes.len() > MAX_PROBLEMS {
            break;
        }
        if version["served"] != true {
            continue;
        }
        let in_version = version["name"].as_str().unwrap_or_default();
        match kinds
            .get(group, in_version, plural)
            .filter(|kind| kind.definition.is_some())
        {
            None => {
                let why = format!(
                    "the embedded API serves a fixed set of kinds, and {wanted} in this version is \
                     not one of them (it has {}); use a Kubernetes cluster for others",
                    known(kinds)
                );
                let field = format!("spec.versions[{index}].name");
                causes.push(Cause::invalid(field, &in_version.into(), why));
            }
            Some(kind) => names(kind, definition, &mut causes),
        }
    }
    causes
}

/// Sets the status of an accepted definition. `now` is in RFC 3339.
pub fn establish(definition: &mut Value, now: &str) {
    let names = definition
        .pointer("/spec/names")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let stored: Vec<Value> = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    if !definition.is_object() {
        return;
    }
    let status = &mut definition["status"];
    if !status.is_object() {
        *status = Value::Object(Map::new());
    }
    let has_both = status["conditions"].as_array().is_some_and(|conditions| {
        let holds = |kind: &str| {
            conditions
                .iter()
                .any(|one| one["type"] == kind && one["status"] == "True")
        };
        holds("NamesAccepted") && holds("Established")
    });
    if !has_both {
        let condition = |kind: &str, reason: &str, message: &str| {
            json!({
                "type": kind, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": now,
            })
        };
        status["conditions"] = json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition(
                "Established",
                "InitialNamesAccepted",
                "the initial names have been accepted"
            ),
        ]);
    }
    status["acceptedNames"] = names;
    status["storedVersions"] = stored.into();
}

/// The definitions of all kinds that the server has, for its store.
#[must_use]
pub fn served(kinds: &Kinds) -> Vec<Value> {
    let stored_as_itself =
        |kind: &&std::sync::Arc<Kind>| matches!(kind.storage, crate::kinds::Storage::Own);
    kinds
        .iter()
        .filter(stored_as_itself)
        .filter_map(|kind| kind.definition.as_deref().cloned())
        .collect()
}

/// What a definition says otherwise than the kind that is there.
fn names(kind: &Kind, definition: &Value, causes: &mut Vec<Cause>) {
    let scope = if kind.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    for (at, field, have) in [
        ("/spec/names/kind", "spec.names.kind", kind.kind.as_str()),
        ("/spec/scope", "spec.scope", scope),
    ] {
        let requested = definition.pointer(at).cloned().unwrap_or_default();
        if requested != have {
            let why = format!(
                "the embedded API has {} with {have:?}",
                kind.group_resource()
            );
            let cause = Cause::invalid(field, &requested, why);
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
    }
}

fn known(kinds: &Kinds) -> String {
    let known: Vec<String> = kinds
        .iter()
        .filter(|kind| kind.definition.is_some() && !kind.group.is_empty())
        .map(|kind| format!("{} {}", kind.group_resource(), kind.version))
        .collect();
    known.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{check, establish, served};
    use crate::kinds::Kinds;
    use serde_json::{Value, json};

    fn definition(plural: &str) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.org")},
            "spec": {
                "group": "example.org", "scope": "Namespaced",
                "names": {"plural": plural, "kind": "Thing"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        })
    }

    fn kinds() -> Kinds {
        Kinds::builtin()
            .unwrap()
            .with_crd(&definition("things"))
            .unwrap()
    }

    #[test]
    fn a_kind_that_is_there_is_accepted() {
        assert_eq!(check(&kinds(), &definition("things")), []);
        for known in served(&kinds()) {
            assert_eq!(check(&kinds(), &known), [], "{}", known["metadata"]["name"]);
        }
        assert_eq!(served(&kinds()).len(), 2);
    }

    #[test]
    fn another_kind_is_refused_and_told_why() {
        let causes = check(&kinds(), &definition("others"));
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].field, "spec.versions[0].name");
        assert!(
            causes[0].message.contains("others.example.org"),
            "{}",
            causes[0].message
        );
        assert!(
            causes[0].message.contains("things.example.org v1"),
            "{}",
            causes[0].message
        );
    }

    #[test]
    fn another_scope_name_or_kind_is_refused() {
        for (at, value, field) in [
            ("/spec/scope", "Cluster", "spec.scope"),
            ("/spec/names/kind", "Other", "spec.names.kind"),
            ("/metadata/name", "x.example.org", "metadata.name"),
            ("/spec/group", "", "spec.group"),
        ] {
            let mut changed = definition("things");
            *changed.pointer_mut(at).unwrap() = value.into();
            let causes = check(&kinds(), &changed);
            assert_eq!(causes.len(), 1, "{causes:?}");
            assert_eq!(causes[0].field, field);
        }
    }

    #[test]
    fn clients_that_wait_are_content_and_times_stay() {
        let mut made = definition("things");
        establish(&mut made, "2026-01-01T00:00:00Z");
        let once = made.clone();
        establish(&mut made, "2026-02-02T00:00:00Z");
        assert_eq!(made, once);
        assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(made["status"]["acceptedNames"]["plural"], "things");
        let conditions = made["status"]["conditions"].as_array().unwrap();
        assert!(
            conditions
                .iter()
                .any(|one| one["type"] == "Established" && one["status"] == "True")
        );
        let kinds = kinds();
        let kind = kinds.get("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        kind.unwrap().check_typed(&made).unwrap();
    }
}
