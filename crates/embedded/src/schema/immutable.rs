//! The rule `self == oldSelf`: what has it cannot change once it is there.

use super::node::{ListType, Node};
use crate::status::Cause;
use serde_json::Value;

pub(super) fn problems(schema: &Node, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    compare(schema, old, new, "", &mut causes);
    causes
}

fn compare(schema: &Node, old: &Value, new: &Value, path: &str, causes: &mut Vec<Cause>) {
    if old == new {
        return;
    }
    for message in &schema.immutable {
        let value = match new {
            Value::Object(_) | Value::Array(_) => String::new(),
            scalar => format!("{scalar}: "),
        };
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}{message}"),
            field: path.to_owned(),
        });
    }
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, new) in after {
                let Some(old) = before.get(name) else {
                    continue;
                };
                if let Some(known) = schema.properties.get(name) {
                    let path = match path {
                        "" => name.clone(),
                        path => format!("{path}.{name}"),
                    };
                    compare(known, old, new, &path, causes);
                } else if let Some(known) = schema.others.each() {
                    compare(known, old, new, &format!("{path}[{name}]"), causes);
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            let Some(item) = schema.item() else { return };
            for (index, new) in after.iter().enumerate() {
                if let Some(old) = same_item(&schema.list_type, before, new) {
                    compare(item, old, new, &format!("{path}[{index}]"), causes);
                }
            }
        }
        _ => {}
    }
}

/// What an item was before, which only a list that is a map by key can tell.
pub(super) fn same_item<'a>(
    list_type: &ListType,
    before: &'a [Value],
    item: &Value,
) -> Option<&'a Value> {
    let ListType::Map(keys) = list_type else {
        return None;
    };
    let same = |old: &&Value| {
        let key = |key| item.get(key).is_some() && old.get(key) == item.get(key);
        keys.iter().all(key)
    };
    before.iter().find(same)
}
