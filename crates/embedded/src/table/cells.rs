//! Headings and cells: of kinds with a definition by its columns, of core kinds by their own rules.

use super::{age, core, path};
use crate::kinds::{Column, Kind};
use serde_json::Value;

/// A heading as the table sends it.
pub(super) struct Heading {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) description: String,
    pub(super) priority: i64,
}

impl Heading {
    pub(super) fn new(name: &str, kind: &str, priority: i64, description: &str) -> Self {
        let format = if name == "Name" { "name" } else { "" };
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            format: format.to_owned(),
            description: description.to_owned(),
            priority,
        }
    }
}

pub(super) fn headings(kind: &Kind) -> Vec<Heading> {
    if kind.core {
        return core::headings(kind);
    }
    let name = Heading::new(
        "Name",
        "string",
        0,
        "Unique in its namespace, for its kind.",
    );
    let column = |column: &Column| Heading {
        name: column.name.clone(),
        kind: column.kind.clone(),
        format: column.format.clone(),
        description: column.description.clone(),
        priority: column.priority,
    };
    std::iter::once(name)
        .chain(kind.columns.iter().map(column))
        .collect()
}

pub(super) fn cells(kind: &Kind, object: &Value, now: i64) -> Vec<Value> {
    if kind.core {
        return core::cells(kind, object, now);
    }
    let name = object
        .pointer("/metadata/name")
        .cloned()
        .unwrap_or_default();
    let cells = kind.columns.iter().map(|column| cell(column, object, now));
    std::iter::once(name).chain(cells).collect()
}

fn cell(column: &Column, object: &Value, now: i64) -> Value {
    let found = path::find(object, &column.path);
    let Some(&first) = found.first().filter(|value| !value.is_null()) else {
        return Value::Null;
    };
    match column.kind.as_str() {
        "date" => first
            .as_str()
            .map_or(Value::Null, |time| age::since(time, now).into()),
        "integer" => match first.as_f64() {
            Some(_) if first.is_i64() || first.is_u64() => first.clone(),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it saturates, and is only shown"
            )]
            Some(number) => Value::from(number as i64),
            None => Value::Null,
        },
        "number" if first.is_number() => first.clone(),
        "boolean" if first.is_boolean() => first.clone(),
        "number" | "boolean" => Value::Null,
        _ => {
            let texts: Vec<String> = found.into_iter().map(path::text).collect();
            texts.join(",").into()
        }
    }
}
