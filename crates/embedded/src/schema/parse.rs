//! Reads a schema as a definition has it. What is only for people (`description`, `title`, `example`) is
//! passed over; what a structural schema cannot have (`$ref`, unknown types) is an error.

use super::node::{Limits, ListType, Logic, Node, Others, Type};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Definitions come from files of ours, or from an administrator: deeper than this is a mistake.
const MAX_SCHEMA_DEPTH: usize = 64;

impl Node {
    pub(crate) fn parse(schema: &Value, path: &str) -> Result<Self, String> {
        node(schema, path, 0)
    }
}

fn node(schema: &Value, path: &str, depth: usize) -> Result<Node, String> {
    if depth > MAX_SCHEMA_DEPTH {
        return Err(format!("{path}: deeper than {MAX_SCHEMA_DEPTH} levels"));
    }
    let Value::Object(schema) = schema else {
        return Err(format!("{path}: must be an object"));
    };
    if schema.contains_key("$ref") {
        return Err(format!(
            "{path}.$ref: must not be used in a structural schema"
        ));
    }
    let deeper = depth + 1;
    let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    Ok(Node {
        types: types(schema, path)?,
        nullable: flag("nullable"),
        format: text(schema, "format").to_owned(),
        default: schema.get("default").cloned(),
        choices: schema.get("enum").and_then(Value::as_array).cloned(),
        properties: properties(schema, path, deeper)?,
        others: others(schema, path, deeper)?,
        required: texts(schema, "required"),
        items: match schema.get("items") {
            Some(items) => Some(Box::new(node(items, &format!("{path}.items"), deeper)?)),
            None => None,
        },
        limits: limits(schema),
        pattern: pattern(schema, path)?,
        unique_items: flag("uniqueItems"),
        logic: logic(schema, path, deeper)?,
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
        list_type: list_type(schema, path)?,
        whole_map: text(schema, "x-kubernetes-map-type") == "atomic",
        immutable: immutable(schema),
    })
}

fn types(schema: &Map<String, Value>, path: &str) -> Result<Vec<Type>, String> {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return Ok(vec![Type::Integer, Type::String]);
    }
    Ok(vec![match text(schema, "type") {
        "" => return Ok(Vec::new()),
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        other => return Err(format!("{path}.type: unknown type {other:?}")),
    }])
}

fn properties(
    schema: &Map<String, Value>,
    path: &str,
    depth: usize,
) -> Result<BTreeMap<String, Node>, String> {
    let mut properties = BTreeMap::new();
    let Some(Value::Object(members)) = schema.get("properties") else {
        return Ok(properties);
    };
    for (name, member) in members {
        let path = format!("{path}.properties[{name}]");
        let _ = properties.insert(name.clone(), node(member, &path, depth)?);
    }
    Ok(properties)
}

fn others(schema: &Map<String, Value>, path: &str, depth: usize) -> Result<Others, String> {
    Ok(match schema.get("additionalProperties") {
        None => Others::Undeclared,
        Some(Value::Bool(true)) => Others::Any,
        Some(Value::Bool(false)) => Others::None,
        Some(each) => {
            let path = format!("{path}.additionalProperties");
            Others::Each(Box::new(node(each, &path, depth)?))
        }
    })
}

fn limits(schema: &Map<String, Value>) -> Limits {
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    Limits {
        minimum: number("minimum"),
        maximum: number("maximum"),
        above_minimum: flag("exclusiveMinimum"),
        below_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
    }
}

fn pattern(schema: &Map<String, Value>, path: &str) -> Result<Option<Regex>, String> {
    match text(schema, "pattern") {
        "" => Ok(None),
        pattern => match Regex::new(pattern) {
            Ok(pattern) => Ok(Some(pattern)),
            Err(error) => Err(format!("{path}.pattern: {error}")),
        },
    }
}

fn logic(
    schema: &Map<String, Value>,
    path: &str,
    depth: usize,
) -> Result<Option<Box<Logic>>, String> {
    let branches = |name: &str| {
        let list = schema.get(name).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .enumerate()
            .map(|(index, branch)| node(branch, &format!("{path}.{name}[{index}]"), depth))
            .collect::<Result<Vec<Node>, String>>()
    };
    let logic = Logic {
        all: branches("allOf")?,
        any: branches("anyOf")?,
        one: branches("oneOf")?,
        not: match schema.get("not") {
            Some(not) => Some(node(not, &format!("{path}.not"), depth)?),
            None => None,
        },
    };
    let none =
        logic.all.is_empty() && logic.any.is_empty() && logic.one.is_empty() && logic.not.is_none();
    Ok((!none).then(|| Box::new(logic)))
}

fn list_type(schema: &Map<String, Value>, path: &str) -> Result<ListType, String> {
    match text(schema, "x-kubernetes-list-type") {
        "" | "atomic" => Ok(ListType::Atomic),
        "set" => Ok(ListType::Set),
        "map" => match texts(schema, "x-kubernetes-list-map-keys") {
            keys if keys.is_empty() => Err(format!(
                "{path}.x-kubernetes-list-map-keys: required, as the list type is map"
            )),
            keys => Ok(ListType::Map(keys)),
        },
        other => Err(format!(
            "{path}.x-kubernetes-list-type: unknown list type {other:?}"
        )),
    }
}

fn immutable(schema: &Map<String, Value>) -> Vec<String> {
    let rules = schema.get("x-kubernetes-validations");
    let rules = rules.and_then(Value::as_array);
    rules
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .filter(|rule| text(rule, "rule").trim() == "self == oldSelf")
        .map(|rule| match text(rule, "message") {
            "" => "failed rule: self == oldSelf".to_owned(),
            message => message.trim().to_owned(),
        })
        .collect()
}

fn text<'a>(schema: &'a Map<String, Value>, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts(schema: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = schema.get(name).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
