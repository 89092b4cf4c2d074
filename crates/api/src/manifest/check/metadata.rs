//! `metadata`, which every object has.

use super::typed;
use crate::manifest::finding::Findings;
use crate::manifest::kinds::{Scope, round_trip};
use crate::pod::{check_namespace, check_object};
use crate::text::quoted;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

/// What the API allows of all annotations together.
const MOST: usize = 256 << 10;

pub(super) fn check(map: &Map<String, Value>, scope: Option<Scope>, findings: &mut Findings<'_>) {
    let metadata = match map.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => {
            return findings.problem("metadata", "is missing: write at least a name");
        }
        Some(_) => return findings.problem("metadata", "must be an object with a name"),
    };
    name(metadata, findings);
    if let Some(namespace) = text(metadata, "namespace", findings) {
        if let Err(text) = check_namespace(namespace) {
            findings.problem("metadata.namespace", text);
        } else if scope == Some(Scope::Cluster) {
            let text = "is not for this kind, whose objects are in no namespace: remove it";
            findings.problem("metadata.namespace", text);
        }
    }
    texts(metadata, "annotations", findings);
    texts(metadata, "labels", findings);
    others(metadata, findings);
}

fn name(metadata: &Map<String, Value>, findings: &mut Findings<'_>) {
    let name = text(metadata, "name", findings);
    let generated = text(metadata, "generateName", findings);
    let has = |key: &str| metadata.get(key).is_some_and(|value| !value.is_null());
    if let Some(name) = name {
        if let Err(text) = check_object(name) {
            let lower = name.to_ascii_lowercase();
            let text = match check_object(&lower) {
                Ok(()) => format!("{} has upper case: write {lower}", quoted(name)),
                Err(_) => text,
            };
            findings.problem("metadata.name", text);
        }
    } else if generated.is_none() && !has("name") && !has("generateName") {
        findings.problem("metadata.name", "is missing: write the object's name");
    }
}

fn text<'m>(
    metadata: &'m Map<String, Value>,
    key: &str,
    findings: &mut Findings<'_>,
) -> Option<&'m str> {
    let value = metadata.get(key).filter(|value| !value.is_null())?;
    if !value.is_string() {
        let text = format!("must be a string, not {value}: quote it");
        findings.problem(&format!("metadata.{key}"), text);
    }
    value.as_str()
}

/// Annotations and labels have texts as values, and nothing else.
fn texts(metadata: &Map<String, Value>, key: &str, findings: &mut Findings<'_>) {
    let map = match metadata.get(key) {
        None | Some(Value::Null) => return,
        Some(Value::Object(map)) => map,
        Some(_) => {
            let text = "must be an object whose values are texts";
            return findings.problem(&format!("metadata.{key}"), text);
        }
    };
    for (name, value) in map {
        let path = format!("metadata.{key}.{name}");
        match value {
            Value::String(_) => {}
            Value::Null => findings.problem(&path, "has no value: write \"\" for an empty one"),
            Value::Bool(_) | Value::Number(_) => {
                let text = format!("must be text, not {value}: write \"{}\"", as_written(value));
                findings.problem(&path, text);
            }
            Value::Array(_) | Value::Object(_) => {
                let what = if value.is_array() { "a list" } else { "a map" };
                let text = format!("must be text, not {what}: put the whole value in quotes");
                findings.problem(&path, text);
            }
        }
    }
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    let size: usize = map.iter().map(size).sum();
    if size > MOST {
        let text = format!("have {size} bytes together: the API allows {MOST}");
        findings.problem(&format!("metadata.{key}"), text);
    }
}

/// A boolean as Python and the documents write it, so that the content stays what was meant.
fn as_written(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}

/// All others, by their type.
fn others(metadata: &Map<String, Value>, findings: &mut Findings<'_>) {
    let mut others = metadata.clone();
    for key in ["name", "generateName", "namespace", "annotations", "labels"] {
        others.remove(key);
    }
    let others = Value::Object(others);
    typed::check_at("metadata", &others, round_trip::<ObjectMeta>, findings);
}
