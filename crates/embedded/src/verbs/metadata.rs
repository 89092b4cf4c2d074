//! What is wrong with the metadata of an object. Types have been checked before.

use super::names;
use crate::kinds::Kind;
use crate::status::{Cause, MAX_PROBLEMS};
use serde_json::Value;
use std::collections::BTreeSet;

/// All annotations together.
const ANNOTATIONS: usize = 256 << 10;

/// All that is wrong.
pub(super) fn problems(kind: &Kind, object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut found = Vec::new();
    let check = name_check(kind);
    let name = metadata["name"].as_str().unwrap_or("");
    if let Some(problem) = check(name) {
        found.push(Cause::invalid("metadata.name", &name.into(), problem));
    }
    for (key, value) in members(&metadata["labels"]) {
        if found.len() > MAX_PROBLEMS {
            break;
        }
        if let Some(problem) = names::key(key) {
            found.push(Cause::invalid("metadata.labels", &key.into(), problem));
        }
        let text = value.as_str().unwrap_or("");
        if let Some(problem) = names::value(text) {
            found.push(Cause::invalid("metadata.labels", value, problem));
        }
    }
    let mut size = 0;
    for (key, value) in members(&metadata["annotations"]) {
        size += key.len() + value.as_str().map_or(0, str::len);
        if found.len() <= MAX_PROBLEMS
            && let Some(problem) = names::key(&key.to_lowercase())
        {
            found.push(Cause::invalid("metadata.annotations", &key.into(), problem));
        }
    }
    if size > ANNOTATIONS {
        found.push(Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {ANNOTATIONS} bytes"),
            field: "metadata.annotations".to_owned(),
        });
    }
    for finalizer in items(&metadata["finalizers"]) {
        if found.len() > MAX_PROBLEMS {
            break;
        }
        if let Some(problem) = finalizer.as_str().and_then(names::key) {
            found.push(Cause::invalid("metadata.finalizers", finalizer, problem));
        }
    }
    found.extend(owners(metadata));
    found
}

/// How objects of a kind may be called.
pub(super) fn name_check(kind: &Kind) -> fn(&str) -> Option<String> {
    if kind.core && kind.kind == "Namespace" {
        names::label
    } else {
        names::subdomain
    }
}

/// An object that is being deleted gets no further finalizers.
pub(super) fn new_finalizers(before: &Value, after: &Value) -> Option<Cause> {
    let _ = before["metadata"].get("deletionTimestamp")?;
    let old = items(&before["metadata"]["finalizers"]);
    let new = items(&after["metadata"]["finalizers"]);
    let old: BTreeSet<Option<&str>> = old.map(Value::as_str).collect();
    let added: Vec<String> = new
        .filter(|finalizer| !old.contains(&finalizer.as_str()))
        .take(MAX_PROBLEMS)
        .map(Value::to_string)
        .collect();
    if added.is_empty() {
        return None;
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        added.join(", ")
    );
    Some(Cause::forbidden("metadata.finalizers", why))
}

fn owners(metadata: &Value) -> Vec<Cause> {
    let mut found = Vec::new();
    let mut controllers = 0;
    for (index, owner) in items(&metadata["ownerReferences"]).enumerate() {
        if found.len() > MAX_PROBLEMS {
            break;
        }
        let field_path = format!("metadata.ownerReferences[{index}]");
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            let value = owner[field].as_str().unwrap_or("");
            if value.is_empty() {
                found.push(Cause::invalid(
                    format!("{field_path}.{field}"),
                    &value.into(),
                    why,
                ));
            }
        }
        controllers += usize::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let why =
            format!("Only one reference can have Controller set to true. Found {controllers}");
        let owners = &metadata["ownerReferences"];
        found.push(Cause::invalid("metadata.ownerReferences", owners, why));
    }
    found
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.as_str(), value))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
