//! The rule `self == oldSelf`: what has it cannot change once it is there.

use super::node::{ListType, Node};
use crate::path::Path;
use crate::status::{Cause, MAX_PROBLEMS, cut};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn problems(schema: &Node, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    compare(schema, old, new, &mut Path::default(), &mut causes);
    causes
}

fn compare(schema: &Node, old: &Value, new: &Value, path: &mut Path, causes: &mut Vec<Cause>) {
    if causes.len() > MAX_PROBLEMS || old == new {
        return;
    }
    for message in &schema.immutable {
        let value = match new {
            Value::Object(_) | Value::Array(_) => String::new(),
            scalar => format!("{}: ", cut(&scalar.to_string())),
        };
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}{message}"),
            field: path.shortened(),
        });
    }
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, new) in after {
                let Some(old) = before.get(name) else {
                    continue;
                };
                if let Some(known) = schema.properties.get(name) {
                    path.member(name, |path| compare(known, old, new, path, causes));
                } else if let Some(known) = schema.others.each() {
                    path.item(name, |path| compare(known, old, new, path, causes));
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            let Some(item) = schema.item() else { return };
            let before = PreviousItems::of(&schema.list_type, before);
            for (index, new) in after.iter().enumerate() {
                if let Some(old) = before.item(new) {
                    path.item(index, |path| compare(item, old, new, path, causes));
                }
            }
        }
        _ => {}
    }
}

/// The items of a list as they were, which only a list that is a map by key can tell.
pub(super) struct PreviousItems<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> PreviousItems<'a> {
    pub(super) fn of(list_type: &'a ListType, items: &'a [Value]) -> Self {
        let mut before = Self {
            keys: match list_type {
                ListType::Map(keys) => keys,
                ListType::Atomic | ListType::Set => &[],
            },
            items: BTreeMap::new(),
        };
        for item in items {
            if let Some(name) = before.name(item) {
                let _ = before.items.entry(name).or_insert(item);
            }
        }
        before
    }

    /// What an item was.
    pub(super) fn item(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&self.name(item)?).copied()
    }

    /// The values of its keys; none if one of them is missing.
    fn name(&self, item: &Value) -> Option<String> {
        if self.keys.is_empty() {
            return None;
        }
        let values = self.keys.iter().map(|key| Some(item.get(key)?.to_string()));
        values
            .collect::<Option<Vec<String>>>()
            .map(|values| values.join(","))
    }
}
