//! Whether an object has the fields and the types that Kubernetes gives its kind.

use crate::manifest::finding::Findings;
use crate::manifest::kinds::RoundTrip;
use serde_json::{Map, Value, json};

/// Attempts that the search for a wrong value may make.
const MOST: usize = 4096;
/// Unknown fields that are named; who writes another kind's object has many.
const SHOWN: usize = 20;

/// Metadata is somebody else's to check.
pub(super) fn check(object: &Value, round_trip: RoundTrip, findings: &mut Findings<'_>) {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.insert("metadata".to_owned(), json!({}));
    }
    match round_trip(&object) {
        Ok(back) => {
            let mut unknown = Vec::new();
            compare(&object, &back, "", &mut unknown);
            for path in unknown.into_iter().take(SHOWN) {
                let text = "is not a field of this kind: remove it, or correct its name";
                findings.problem(&path, text);
            }
        }
        Err(error) => {
            let (path, text) = culprit(&object, round_trip).unwrap_or_default();
            let text = if text.is_empty() {
                error.to_string()
            } else {
                text
            };
            findings.problem(&path, format!("has the wrong type: {text}"));
        }
    }
}

/// What was there and did not come back.
fn compare(before: &Value, after: &Value, path: &str, unknown: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let path = below(path, key);
                match after.get(key) {
                    Some(after) => compare(value, after, &path, unknown),
                    None if is_nothing(value) => {}
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (i, (before, after)) in before.iter().zip(after).enumerate() {
                compare(before, after, &format!("{path}[{i}]"), unknown);
            }
        }
        _ => {}
    }
}

/// What a type may leave out when it is written again.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn below(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

/// The smallest part of the object that is refused by itself, and why: ever smaller parts are
/// tried, each alone at its place.
fn culprit(object: &Value, round_trip: RoundTrip) -> Option<(String, String)> {
    let mut path: Vec<Step<'_>> = Vec::new();
    let (mut here, mut found, mut left) = (object, None, MOST);
    loop {
        let children: Vec<(Step<'_>, &Value)> = match here {
            Value::Object(map) => map.iter().map(|(k, v)| (Step::Key(k), v)).collect(),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(i, v)| (Step::Item(i), v))
                .collect(),
            _ => break,
        };
        let wrong = children.into_iter().find_map(|(step, child)| {
            left = left.checked_sub(1)?;
            let mut longer = path.clone();
            longer.push(step);
            let error = round_trip(&alone(&longer, child)).err()?;
            Some((longer, child, error))
        });
        let Some((longer, child, error)) = wrong else {
            break;
        };
        (path, here) = (longer, child);
        found = Some(error.to_string());
    }
    let text = path.iter().fold(String::new(), |text, step| match step {
        Step::Key(key) => below(&text, key),
        Step::Item(i) => format!("{text}[{i}]"),
    });
    Some((text, found?))
}

#[derive(Clone, Copy)]
enum Step<'v> {
    Key(&'v str),
    Item(usize),
}

/// A value at a path, with nothing beside it.
fn alone(path: &[Step<'_>], value: &Value) -> Value {
    path.iter()
        .rev()
        .fold(value.clone(), |inner, step| match step {
            Step::Key(key) => Value::Object(Map::from_iter([((*key).to_owned(), inner)])),
            Step::Item(_) => Value::Array(vec![inner]),
        })
}
