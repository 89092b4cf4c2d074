//! What is not about one value: items of sets and maps occur once; embedded resources say what they are.

use super::node::{ListType, Node};
use crate::path::Path;
use crate::status::{Cause, MAX_PROBLEMS, cut};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Items that occur more than once, where a list is a set, or a map by key.
pub(super) fn problems(schema: &Node, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    walk(
        schema,
        object,
        &mut Path::default(),
        &mut |schema, value, path| {
            if let Value::Array(items) = value {
                match &schema.list_type {
                    ListType::Atomic => {}
                    ListType::Set => repeated(items, path, &mut causes),
                    ListType::Map(keys) => repeated_keys(items, keys, path, &mut causes),
                }
            }
        },
    );
    causes
}

/// Resources inside of the object that lack what every resource has.
pub(super) fn embedded(schema: &Node, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    walk(
        schema,
        object,
        &mut Path::default(),
        &mut |schema, value, path| {
            if causes.len() > MAX_PROBLEMS {
                return;
            }
            if let (true, Value::Object(members)) = (schema.embedded, value) {
                for name in ["apiVersion", "kind"] {
                    let field = path.member(name, |path| path.shortened());
                    match members.get(name) {
                        None => causes.push(Cause::required(field, "")),
                        Some(Value::String(text)) if text.is_empty() => {
                            causes.push(Cause::invalid(field, &"".into(), "must not be empty"));
                        }
                        Some(Value::String(_)) => {}
                        Some(other) => {
                            causes.push(Cause::invalid(field, other, "must be a string"))
                        }
                    }
                }
            }
        },
    );
    causes
}

/// Every value that has a schema, parents first.
fn walk<'a>(
    schema: &'a Node,
    value: &'a Value,
    path: &mut Path,
    visit: &mut dyn FnMut(&'a Node, &'a Value, &mut Path),
) {
    visit(schema, value, path);
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(known) = schema.properties.get(name) {
                    path.member(name, |path| walk(known, member, path, visit));
                } else if let Some(known) = schema.others.each() {
                    path.item(name, |path| walk(known, member, path, visit));
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.item() {
                for (index, item) in items.iter().enumerate() {
                    path.item(index, |path| walk(schema, item, path, visit));
                }
            }
        }
        _ => {}
    }
}

/// Says of each value that is there again, once, the place of its second occurrence.
fn repeated(items: &[Value], path: &mut Path, causes: &mut Vec<Cause>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let times = seen.entry(item.to_string()).or_default();
        *times += 1;
        if *times == 2 && causes.len() <= MAX_PROBLEMS {
            causes.push(Cause {
                reason: "FieldValueDuplicate",
                message: format!("Duplicate value: {}", cut(&item.to_string())),
                field: path.item(index, |path| path.shortened()),
            });
        }
    }
}

fn repeated_keys(items: &[Value], keys: &[String], path: &mut Path, causes: &mut Vec<Cause>) {
    let odd = |item: &Value| !item.is_object() && !item.is_null();
    if let Some(index) = items.iter().position(odd) {
        causes.push(Cause::invalid(
            path.item(index, |path| path.shortened()),
            &items[index],
            "must be an object for an array of list-type map",
        ));
        return;
    }
    let keys_of = |item: &Value| {
        let key = |name: &String| Some((name.clone(), item.get(name)?.clone()));
        Value::Object(keys.iter().filter_map(key).collect::<Map<_, _>>())
    };
    let keys: Vec<Value> = items.iter().map(keys_of).collect();
    repeated(&keys, path, causes);
}
