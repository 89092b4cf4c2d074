//! Whether an object is what and where the path says, and what of its metadata is the server's.

use super::intent::UpdateVerb;
use super::subject::Subject;
use crate::kinds::Kind;
use crate::status::{Cause, Refused};
use serde_json::{Map, Value};

/// What only the server writes, and a change therefore keeps.
const OURS: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
];

/// Makes sure that something sent is an object of the kind, in the namespace of the path, and says so.
///
/// # Errors
/// It is of another kind or another namespace than the path.
pub(super) fn claim(subject: &Subject, object: &mut Value) -> Result<(), Refused> {
    let kind = &subject.kind;
    let Some(fields) = object.as_object_mut() else {
        let message = format!(
            "the body of the request is not an object of kind {}",
            kind.kind
        );
        return Err(Refused::bad_request(message));
    };
    for (field, expected, called) in [
        ("apiVersion", kind.api_version(), "API version"),
        ("kind", kind.kind.clone(), "kind"),
    ] {
        match fields.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if *text == expected || text.is_empty() => {}
            Some(other) => {
                let other = other
                    .as_str()
                    .map_or_else(|| other.to_string(), str::to_owned);
                return Err(Refused::bad_request(format!(
                    "the {called} in the data ({other}) does not match the expected {called} \
                     ({expected})"
                )));
            }
        }
        let _ = fields.insert(field.to_owned(), expected.into());
    }
    let metadata = fields
        .entry("metadata")
        .and_modify(|metadata| {
            if metadata.is_null() {
                *metadata = Value::Object(Map::new());
            }
        })
        .or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(Refused::bad_request("metadata is not an object"));
    };
    let namespace = metadata
        .get("namespace")
        .and_then(Value::as_str)
        .unwrap_or("");
    if !namespace.is_empty() && namespace != subject.namespace {
        return Err(Refused::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if subject.kind.namespaced {
        let _ = metadata.insert("namespace".to_owned(), subject.namespace.clone().into());
    } else {
        let _ = metadata.remove("namespace");
    }
    Ok(())
}

/// Makes sure that a change is of the object that the path names.
///
/// # Errors
/// The object has another name than the path.
pub(super) fn same_name(subject: &Subject, object: &mut Value) -> Result<(), Refused> {
    let name = text(object, "name");
    if !name.is_empty() && name != subject.name {
        return Err(Refused::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            subject.name
        )));
    }
    object["metadata"]["name"] = subject.name.clone().into();
    Ok(())
}

/// Whether a change is of what was read: by version and by identity.
///
/// # Errors
/// The object is a newer, or another one.
pub(super) fn unchanged(
    subject: &Subject,
    before: &Value,
    after: &Value,
    by: UpdateVerb,
) -> Result<(), Refused> {
    let (kind, name) = (&subject.kind, &subject.name);
    let (uid, old_uid) = (text(after, "uid"), text(before, "uid"));
    if !uid.is_empty() && uid != old_uid {
        if by == UpdateVerb::Patch {
            let cause = Cause::invalid("metadata.uid", &uid.into(), "field is immutable");
            return Err(Refused::invalid(kind, name, &[cause]));
        }
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {old_uid}"
        );
        return Err(Refused::conflict(kind, name, why));
    }
    let version = text(after, "resourceVersion");
    if version.is_empty() && by == UpdateVerb::Put && !kind.core {
        let message = "Invalid value: 0x0: must be specified for an update".to_owned();
        let cause = Cause {
            reason: "FieldValueInvalid",
            message,
            field: "metadata.resourceVersion".to_owned(),
        };
        return Err(Refused::invalid(kind, name, &[cause]));
    }
    if !version.is_empty() && version != text(before, "resourceVersion") {
        return Err(Refused::modified(kind, name));
    }
    Ok(())
}

/// Gives a change what is the server's, as it was.
pub(super) fn keep_ours(before: &Value, after: &mut Value) {
    let old = before["metadata"].as_object();
    let Some(new) = after["metadata"].as_object_mut() else {
        return;
    };
    for field in OURS.into_iter().chain(["resourceVersion", "selfLink"]) {
        match old.and_then(|old| old.get(field)) {
            Some(value) => {
                let _ = new.insert(field.to_owned(), value.clone());
            }
            None => {
                let _ = new.remove(field);
            }
        }
    }
}

/// Keeps some entries of a list in the metadata; a list that has none left goes.
pub(crate) fn retain(object: &mut Value, list: &str, keep: impl FnMut(&Value) -> bool) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    let Some(entries) = metadata.get_mut(list).and_then(Value::as_array_mut) else {
        return;
    };
    entries.retain(keep);
    if entries.is_empty() {
        let _ = metadata.remove(list);
    }
}

/// Takes from a new object what is the server's.
///
/// # Errors
/// The object has a `resourceVersion`, which only the server gives.
pub(super) fn drop_ours(object: &mut Value) -> Result<(), Refused> {
    if !text(object, "resourceVersion").is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Refused::bad_request(message));
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in OURS.into_iter().chain(["resourceVersion", "selfLink"]) {
            let _ = metadata.remove(field);
        }
    }
    Ok(())
}

/// Drops what is empty where empty and absent are one.
pub(super) fn without_empties(object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let empty = match metadata.get(field) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if empty {
            let _ = metadata.remove(field);
        }
    }
}

/// A text of the metadata; empty if it is not there.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or("")
}

/// Whether anything but metadata differs, and the status, if that is apart.
pub(super) fn differs(kind: &Kind, before: &Value, after: &Value) -> bool {
    counted(kind, before).ne(counted(kind, after))
}

fn counted<'a>(kind: &Kind, object: &'a Value) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let status_counts = !kind.has_status;
    let fields = object.as_object().into_iter().flatten();
    fields.filter(move |(name, _)| match name.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => status_counts,
        _ => true,
    })
}

/// A PUT on what is not there makes it, for these.
pub(super) fn made_by_update(kind: &Kind) -> bool {
    kind.core && ["Lease", "Event"].contains(&kind.kind.as_str())
}
