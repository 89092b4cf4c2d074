//! Field selectors: `metadata.name=a,status.phase!=Failed`, over the few fields that a kind offers.

use crate::kinds::Kind;
use serde_json::Value;

/// A parsed field selector: all of its terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    label: String,
    value: String,
    equal: bool,
}

impl Fields {
    /// Reads a selector for objects of a kind; an empty text selects everything.
    ///
    /// # Errors
    /// The text of a `BadRequest`: no selector, or a field that the kind does not offer.
    pub fn parse(kind: &Kind, text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split(text) {
            if part.is_empty() {
                continue;
            }
            let term = term(part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            if !offers(kind, &term.label) {
                return Err(not_offered(kind, &term.label));
            }
            terms.push(term);
        }
        Ok(Self(terms))
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one name that it selects, if it says so.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.exactly("metadata.name")
    }

    /// The one value that it wants of a field, if it says so.
    #[must_use]
    pub fn exactly(&self, label: &str) -> Option<&str> {
        let term = self
            .0
            .iter()
            .find(|term| term.equal && term.label == label)?;
        Some(&term.value)
    }

    /// Whether an object of the kind is selected.
    #[must_use]
    pub fn matches(&self, kind: &Kind, object: &Value) -> bool {
        let holds = |term: &Term| (value_of(kind, object, &term.label) == term.value) == term.equal;
        self.0.iter().all(holds)
    }

    /// Whether something with these values is selected; what is absent is empty.
    pub fn matches_with<'a>(&self, get: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        let holds = |term: &Term| (get(&term.label).unwrap_or("") == term.value) == term.equal;
        self.0.iter().all(holds)
    }
}

/// The value of a field that the kind offers, as text.
#[must_use]
pub fn value_of(kind: &Kind, object: &Value, label: &str) -> String {
    let at = |path: &str| {
        path.split('.')
            .try_fold(object, |value, key| value.get(key))
    };
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    let found = text(at(label));
    match (kind.kind.as_str(), label) {
        ("Event", "source") if kind.core => {
            let component = text(at("source.component"));
            if component.is_empty() {
                text(at("reportingComponent"))
            } else {
                component
            }
        }
        ("Node", "spec.unschedulable") | ("Pod", "spec.hostNetwork")
            if kind.core && found.is_empty() =>
        {
            "false".to_owned()
        }
        _ => found,
    }
}

fn offers(kind: &Kind, label: &str) -> bool {
    match label {
        "metadata.name" => true,
        "metadata.namespace" => kind.namespaced || plain(kind),
        _ => kind.selectable.iter().any(|known| known == label),
    }
}

/// Kubernetes has two sentences: one for kinds that offer nothing but their metadata.
fn not_offered(kind: &Kind, label: &str) -> String {
    if plain(kind) {
        format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    } else {
        format!("field label not supported: {label}")
    }
}

fn plain(kind: &Kind) -> bool {
    kind.core && kind.selectable.is_empty()
}

/// At commas that no backslash protects.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut protected = false;
    for (index, c) in text.char_indices() {
        if c == ',' && !protected {
            parts.push(&text[start..index]);
            start = index + 1;
        }
        protected = c == '\\' && !protected;
    }
    parts.push(&text[start..]);
    parts
}

fn term(part: &str) -> Option<Term> {
    let (at, sign) = part.char_indices().find_map(|(index, _)| {
        let rest = &part[index..];
        ["!=", "==", "="]
            .into_iter()
            .find(|sign| rest.starts_with(sign))
            .map(|sign| (index, sign))
    })?;
    Some(Term {
        label: part[..at].to_owned(),
        value: unescaped(&part[at + sign.len()..])?,
        equal: sign != "!=",
    })
}

/// `\,`, `\=` and `\\` stand for their second character; nothing else does.
fn unescaped(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next().filter(|next| "\\,=".contains(*next))?),
            ',' | '=' => return None,
            c => plain.push(c),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::{Fields, value_of};
    use crate::kinds::{Kind, Kinds};
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn kind(group: &str, version: &str, plural: &str) -> Arc<Kind> {
        let kinds = Kinds::builtin().unwrap();
        Arc::clone(kinds.get(group, version, plural).unwrap())
    }

    fn pod() -> Value {
        json!({
            "metadata": {"name": "a", "namespace": "x"},
            "spec": {"nodeName": "n1"}, "status": {"phase": "Running"},
        })
    }

    #[test]
    fn pods_are_found_by_what_describe_asks_for() {
        let pods = kind("", "v1", "pods");
        for (selector, found) in [
            ("", true),
            ("spec.nodeName=n1", true),
            (
                "spec.nodeName==n1,status.phase!=Failed,status.phase!=Succeeded",
                true,
            ),
            ("metadata.name=a,metadata.namespace=x", true),
            ("spec.nodeName=", false),
            ("spec.nodeName!=n1", false),
            ("status.phase=Failed", false),
            ("status.podIP=", true),
            ("spec.hostNetwork=false", true),
        ] {
            let fields = Fields::parse(&pods, selector).unwrap();
            assert_eq!(fields.matches(&pods, &pod()), found, "{selector}");
            let get = |label: &str| match label {
                "metadata.name" => Some("a"),
                "metadata.namespace" => Some("x"),
                "spec.nodeName" => Some("n1"),
                "status.phase" => Some("Running"),
                "spec.hostNetwork" => Some("false"),
                _ => None,
            };
            assert_eq!(fields.matches_with(&get), found, "{selector}");
        }
    }

    #[test]
    fn a_label_that_is_not_offered_is_named() {
        for (kind, selector, said) in [
            (
                kind("", "v1", "pods"),
                "spec.image=x",
                "field label not supported: spec.image",
            ),
            (
                kind("", "v1", "nodes"),
                "metadata.namespace=x",
                "field label not supported: metadata.namespace",
            ),
            (
                kind("", "v1", "configmaps"),
                "data.a=1",
                "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            ),
            (
                kind("net.cogadvisor.io", "v1", "multinicnetworks"),
                "spec.subnet=x",
                "field label not supported: spec.subnet",
            ),
            (
                kind("", "v1", "pods"),
                "spec.nodeName",
                "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'",
            ),
        ] {
            assert_eq!(Fields::parse(&kind, selector).unwrap_err(), said);
        }
        let pods = kind("", "v1", "pods");
        for wrong in [
            "metadata.name=a=b",
            "metadata.name=a\\b",
            "metadata.name=a\\",
            "=",
            "x",
        ] {
            assert!(Fields::parse(&pods, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_name_alone_is_known() {
        let pods = kind("", "v1", "pods");
        let name = |selector: &str| {
            Fields::parse(&pods, selector)
                .unwrap()
                .name()
                .map(str::to_owned)
        };
        assert_eq!(name("status.phase=x,metadata.name=a"), Some("a".to_owned()));
        assert_eq!(name("metadata.name=a\\,b\\=c"), Some("a,b=c".to_owned()));
        assert_eq!(name("metadata.name!=a"), None);
    }

    #[test]
    fn events_are_found_in_both_groups() {
        let event = json!({
            "involvedObject": {"kind": "Pod", "uid": "u"}, "reason": "r", "type": "Warning",
            "reportingComponent": "plexus",
        });
        let core = kind("", "v1", "events");
        let selector = "involvedObject.kind=Pod,involvedObject.uid=u,source=plexus,reason=r";
        assert!(
            Fields::parse(&core, selector)
                .unwrap()
                .matches(&core, &event)
        );
        let other = kind("events.k8s.io", "v1", "events");
        let shown = crate::events::from_core(&event);
        let selector = "regarding.uid=u,reportingController=plexus,type!=Normal";
        assert!(
            Fields::parse(&other, selector)
                .unwrap()
                .matches(&other, &shown)
        );
        Fields::parse(&other, "involvedObject.uid=u").unwrap_err();
        assert_eq!(value_of(&core, &event, "involvedObject.uid"), "u");
    }
}
