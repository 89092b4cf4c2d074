//! Fills defaults in, and drops nulls that mean nothing.

use super::node::Node;
use serde_json::Value;

/// A null where there can be none is as good as absent; if there is a default, [`fill`] takes that.
pub(super) fn drop_nulls(schema: &Node, value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|name, member| {
            let Some(known) = schema.member(name) else {
                return true;
            };
            if member.is_null() && !known.nullable && known.default.is_none() {
                return false;
            }
            drop_nulls(known, member);
            true
        }),
        Value::Array(items) => {
            if let Some(schema) = schema.item() {
                for item in items {
                    drop_nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}

pub(super) fn fill(schema: &Node, value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, known) in &schema.properties {
                let Some(default) = &known.default else {
                    continue;
                };
                let missing = match members.get(name) {
                    None => true,
                    Some(member) => member.is_null() && !known.nullable,
                };
                if missing {
                    let _ = members.insert(name.clone(), default.clone());
                }
            }
            for (name, member) in members.iter_mut() {
                if let Some(known) = schema.member(name) {
                    replace_null(known, member);
                    fill(known, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.item() {
                for item in items {
                    replace_null(schema, item);
                    fill(schema, item);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(schema: &Node, value: &mut Value) {
    if let (Value::Null, false, Some(default)) = (&*value, schema.nullable, &schema.default) {
        *value = default.clone();
    }
}
