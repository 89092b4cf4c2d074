//! `metadata.managedFields` of an object, taken off and put back.

use super::Writer;
use super::managers::Managers;
use crate::patch::shape::Shape;
use serde_json::{Map, Value};

/// The owners from which a plain write starts.
pub(super) fn known_managers(
    before: Option<&Value>,
    after: &Value,
    writer: &Writer<'_>,
) -> Managers {
    let previous = || before.map(Managers::of).unwrap_or_default();
    if !writer.subresource.is_empty() {
        return previous();
    }
    match after.pointer("/metadata/managedFields") {
        Some(Value::Array(entries)) if is_reset(entries) => Managers::default(),
        Some(entries) => Managers::parse(entries)
            .filter(|sent| !sent.owned.is_empty())
            .unwrap_or_else(previous),
        None => previous(),
    }
}

fn is_reset(entries: &[Value]) -> bool {
    match entries {
        [] => true,
        [one] => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// What an object is before it is: typed ones always have their parts.
pub(super) fn blank(shape: &Shape, object: &Value) -> Value {
    let parts = ["spec", "status"]
        .into_iter()
        .filter(|part| shape.is_typed() && object.get(part).is_some_and(Value::is_object));
    Value::Object(parts.map(|part| (part.to_owned(), empty())).collect())
}

pub(super) fn empty() -> Value {
    Value::Object(Map::new())
}

pub(super) fn unmanaged(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let _ = metadata.remove("managedFields");
    }
    object
}

pub(super) fn set_managers(object: &mut Value, managers: &Managers) {
    if managers.owned.is_empty() {
        return;
    }
    let Value::Object(object) = object else {
        return;
    };
    let metadata = object.entry("metadata").or_insert_with(empty);
    if metadata.is_null() {
        *metadata = empty();
    }
    if let Value::Object(metadata) = metadata {
        let _ = metadata.insert("managedFields".to_owned(), managers.wire());
    }
}
