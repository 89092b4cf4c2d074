//! The forms in which objects are answered: whole, as rows of a table (`kubectl get`), or as
//! metadata alone. Owns the choice by `Accept`, the columns and the cells. Takes an object and the
//! time; never reads a clock or a store.

mod age;
mod cells;
mod core;
mod form;
mod node;
mod path;
mod pod;

#[cfg(test)]
mod tests;

pub use form::{Form, Include};

use crate::kinds::Kind;
use serde_json::{Map, Value, json};

const META: &str = "meta.k8s.io/v1";

/// One object in a form. `now` is in seconds since 1970.
#[must_use]
pub fn object(kind: &Kind, form: Form, object: &Value, now: i64) -> Value {
    match form {
        Form::Whole => typed(kind, object),
        Form::Metadata => metadata_alone(object),
        Form::Table(include) => {
            let version = object.pointer("/metadata/resourceVersion");
            let rows = vec![row(kind, include, object, now)];
            table(list_meta(version), definitions(kind), rows)
        }
    }
}

/// A list in a form. `meta` is its `ListMeta`.
#[must_use]
pub fn list<'a>(
    kind: &Kind,
    form: Form,
    meta: Value,
    items: impl IntoIterator<Item = &'a Value>,
    now: i64,
) -> Value {
    let (mut list, field) = frame(kind, form, meta);
    let items = items.into_iter();
    list[field] = items.map(|object| item(kind, form, object, now)).collect();
    list
}

/// A list in a form without its items, and the field that they are in.
pub(crate) fn frame(kind: &Kind, form: Form, meta: Value) -> (Value, &'static str) {
    let (version, name, field) = match form {
        Form::Whole => (kind.api_version(), kind.list_kind.as_str(), "items"),
        Form::Metadata => (META.to_owned(), "PartialObjectMetadataList", "items"),
        Form::Table(_) => (META.to_owned(), "Table", "rows"),
    };
    let mut frame = json!({"apiVersion": version, "kind": name, "metadata": meta});
    if let Form::Table(_) = form {
        frame["columnDefinitions"] = definitions(kind);
    }
    (frame, field)
}

/// One item of a list in a form.
pub(crate) fn item(kind: &Kind, form: Form, object: &Value, now: i64) -> Value {
    match form {
        Form::Whole => object.clone(),
        Form::Metadata => metadata_alone(object),
        Form::Table(include) => row(kind, include, object, now),
    }
}

/// The object of a watch event in a form. The first event of a stream has the columns. An object
/// without a name is a bookmark: a table has no row for it.
#[must_use]
pub fn event(kind: &Kind, form: Form, object: &Value, first: bool, now: i64) -> Value {
    let Form::Table(include) = form else {
        return self::object(kind, form, object, now);
    };
    let named = object.pointer("/metadata/name").is_some();
    let rows = named.then(|| row(kind, include, object, now));
    let columns = if first {
        definitions(kind)
    } else {
        Value::Null
    };
    let version = object.pointer("/metadata/resourceVersion");
    table(list_meta(version), columns, rows.into_iter().collect())
}

fn table(meta: Value, columns: Value, rows: Vec<Value>) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": meta,
        "columnDefinitions": columns, "rows": rows,
    })
}

fn definitions(kind: &Kind) -> Value {
    let definition = |column: &cells::Heading| {
        json!({
            "name": column.name, "type": column.kind, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    };
    cells::headings(kind).iter().map(definition).collect()
}

fn row(kind: &Kind, include: Include, object: &Value, now: i64) -> Value {
    let mut row = json!({"cells": cells::cells(kind, object, now)});
    match include {
        Include::None => {}
        Include::Metadata => row["object"] = metadata_alone(object),
        Include::Object => row["object"] = typed(kind, object),
    }
    row
}

fn metadata_alone(object: &Value) -> Value {
    let none = || Value::Object(Map::new());
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": object.get("metadata").cloned().unwrap_or_else(none),
    })
}

/// With its `apiVersion` and `kind`, whether or not it was stored with them.
fn typed(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.clone().into());
    }
    object
}

fn list_meta(version: Option<&Value>) -> Value {
    match version {
        Some(version) => json!({"resourceVersion": version}),
        None => json!({}),
    }
}
