//! Adds to the schemas of core kinds how their lists are merged: `kubectl` makes its strategic merge
//! patches by that, and the server applies them by the same table.

use crate::patch::{Identity, Items, Shape, Strategy};
use serde_json::{Map, Value, json};

/// Adds the merge keys to the schema of a kind, and to all schemas that it refers to.
pub(super) fn add_merge_keys(schemas: &mut Value, component: &str, shape: &Shape) {
    walk(schemas, &format!("/{component}"), shape);
}

fn walk(schemas: &mut Value, at: &str, shape: &Shape) {
    let at = resolved(schemas, at);
    match shape {
        Shape::Map(members) => {
            for (name, member) in &members.fields {
                walk(schemas, &format!("{at}/properties/{name}"), member);
            }
        }
        Shape::List(items) => {
            if let Some(schema) = schemas.pointer_mut(&at).and_then(Value::as_object_mut) {
                list(schema, items, at.ends_with("PodSpec/properties/volumes"));
            }
            walk(schemas, &format!("{at}/items"), &items.item);
        }
        Shape::Atomic => {
            if let Some(schema) = schemas.pointer_mut(&at).and_then(Value::as_object_mut) {
                schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
            }
        }
        Shape::Open | Shape::Typed | Shape::Scalar(_) => {}
    }
}

/// Where the schema is that stands at a place, or that the place refers to.
fn resolved(schemas: &Value, at: &str) -> String {
    let reference = schemas
        .pointer(at)
        .and_then(|schema| schema["$ref"].as_str());
    match reference.and_then(|reference| reference.strip_prefix("#/components/schemas/")) {
        Some(component) => format!("/{component}"),
        None => at.to_owned(),
    }
}

/// One volume is of one sort: its old fields go when it changes.
fn list(schema: &mut Map<String, Value>, items: &Items, retain_keys: bool) {
    let mut add_merge_keys = |key: &str, value: Value| {
        schema.insert(format!("x-kubernetes-{key}"), value);
    };
    match &items.identity {
        Identity::None => add_merge_keys("list-type", "atomic".into()),
        Identity::Value => add_merge_keys("list-type", "set".into()),
        Identity::Keys(keys) => {
            add_merge_keys("list-type", "map".into());
            let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
            add_merge_keys("list-map-keys", json!(names));
        }
    }
    let merge = if retain_keys {
        "merge,retainKeys"
    } else {
        "merge"
    };
    match &items.strategy {
        Strategy::Replace => {}
        Strategy::Union => add_merge_keys("patch-strategy", merge.into()),
        Strategy::Merge(key) => {
            add_merge_keys("patch-strategy", merge.into());
            add_merge_keys("patch-merge-key", key.clone().into());
        }
    }
}
