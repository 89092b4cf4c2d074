//! Objects of our own kinds that nobody writes by hand, looked at by their definition's schema: all of their
//! problems at once, as an API server finds them.

use super::typed::{self, UNKNOWN};
use crate::manifest::finding::{Findings, joined};
use crate::manifest::kinds::RoundTrip;
use crate::objects::crds;
use serde_json::{Map, Value};

/// `kind` names the definition. Metadata is somebody else's to check.
pub(super) fn check(
    kind: &str,
    object: &Value,
    round_trip: RoundTrip,
    findings: &mut Findings<'_>,
) {
    let Some(schema) = schema(kind) else {
        return;
    };
    let mut problems = Vec::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match (key.as_str(), property(&schema, key)) {
            ("apiVersion" | "kind" | "metadata", _) => {}
            (_, Some(schema)) => check_value(value, schema, key, &mut problems),
            (_, None) => problems.push((key.clone(), UNKNOWN.to_owned())),
        }
    }
    missing(object, &schema, "", &mut problems);
    // What only the type knows: addresses, for example.
    if problems.is_empty()
        && let Err(error) = round_trip(object)
    {
        problems.push(("spec".to_owned(), error.to_string()));
    }
    typed::tell("", problems, findings);
}

type FieldProblems = Vec<(String, String)>;

fn schema(kind: &str) -> Option<Value> {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == kind)?;
    let version = crd.spec.versions.into_iter().next()?;
    serde_json::to_value(version.schema?.open_api_v3_schema?).ok()
}

fn property<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let properties = schema.get("properties");
    let own = properties.and_then(|properties| properties.get(key));
    own.or_else(|| schema.get("additionalProperties"))
}

fn check_value(value: &Value, schema: &Value, path: &str, problems: &mut FieldProblems) {
    let wanted = schema.get("type").and_then(Value::as_str).unwrap_or("");
    let fits = match (wanted, value) {
        // An API server takes null for nothing.
        (_, Value::Null) => return,
        ("object", value) => value.is_object(),
        ("array", value) => value.is_array(),
        ("string", value) => value.is_string(),
        ("boolean", value) => value.is_boolean(),
        ("integer", value) => value.is_i64() || value.is_u64(),
        ("number", value) => value.is_number(),
        _ => true,
    };
    if !fits {
        let found = short(value);
        let text = format!("has the wrong type: must be of type {wanted}, not {found}");
        return problems.push((path.to_owned(), text));
    }
    match value {
        Value::Object(map) => fields(map, schema, path, problems),
        Value::Array(items) => {
            let schema = schema.get("items").unwrap_or(&Value::Null);
            for (i, item) in items.iter().enumerate() {
                check_value(item, schema, &format!("{path}[{i}]"), problems);
            }
        }
        value => bounds(value, schema, path, problems),
    }
    missing(value, schema, path, problems);
}

fn fields(map: &Map<String, Value>, schema: &Value, path: &str, problems: &mut FieldProblems) {
    for (key, value) in map {
        let path = format!("{path}.{key}");
        match property(schema, key) {
            Some(schema) => check_value(value, schema, &path, problems),
            None if schema.get("properties").is_none() => {}
            None => problems.push((path, UNKNOWN.to_owned())),
        }
    }
}

fn missing(value: &Value, schema: &Value, path: &str, problems: &mut FieldProblems) {
    let required = schema.get("required").and_then(Value::as_array);
    for key in required.into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(key).is_none_or(Value::is_null) {
            problems.push((joined(path, key), "is missing".to_owned()));
        }
    }
}

fn bounds(value: &Value, schema: &Value, path: &str, problems: &mut FieldProblems) {
    let bound = |key: &str| Some((value.as_f64()?, schema.get(key)?.as_f64()?));
    let choices = schema.get("enum").and_then(Value::as_array);
    let text = match (choices, bound("minimum"), bound("maximum")) {
        (Some(choices), _, _) if !choices.contains(value) => {
            let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
            format!("is {}: must be one of {}", short(value), choices.join(", "))
        }
        (_, Some((number, least)), _) if number < least => {
            format!("is {value}: must be at least {least}")
        }
        (_, _, Some((number, most))) if number > most => {
            format!("is {value}: must be at most {most}")
        }
        _ => return,
    };
    problems.push((path.to_owned(), text));
}

/// A value as far as a line has room for it.
fn short(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
        Value::String(text) => crate::text::quoted(text),
        other => other.to_string(),
    }
}
