//! A kind from its definition (`CustomResourceDefinition`), as JSON.

use super::view::View;
use super::{Column, Kind, Storage};
use crate::schema::Schema;
use serde_json::Value;
use std::sync::Arc;

/// Definitions of kinds that are stored for what comes later; nobody generates them.
pub(crate) const MORE: &[&str] = &[include_str!("cniconfigs.json")];

/// The kind in every version that is served. One version is stored, the others are views of it.
pub(super) fn kinds(definition: &Value) -> Result<Vec<Kind>, String> {
    let name = text(definition, "/metadata/name").unwrap_or("a definition without a name");
    let wrong = |what: String| format!("{name}: {what}");
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .ok_or_else(|| wrong("spec.versions is not a list".to_owned()))?;
    let stored = versions
        .iter()
        .find(|version| version["storage"] == true)
        .and_then(|version| text(version, "/name"))
        .ok_or_else(|| wrong("no version is stored".to_owned()))?;
    let whole = Arc::new(definition.clone());
    versions
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| kind(&whole, version, stored).map_err(wrong))
        .collect()
}

fn kind(definition: &Arc<Value>, version: &Value, stored: &str) -> Result<Kind, String> {
    let needed = |value: &Value, at: &str| {
        text(value, at).map(str::to_owned).ok_or_else(|| {
            format!(
                "{} is not a text",
                at.trim_start_matches('/').replace('/', ".")
            )
        })
    };
    let group = needed(definition, "/spec/group")?;
    let name = needed(definition, "/spec/names/kind")?;
    let plural = needed(definition, "/spec/names/plural")?;
    let in_version = needed(version, "/name")?;
    let storage = if in_version == stored {
        Storage::Own
    } else {
        Storage::View(View::version(&group, &plural, &in_version, stored))
    };
    let schema = version
        .pointer("/schema/openAPIV3Schema")
        .ok_or_else(|| format!("version {in_version} has no schema"))?;
    let schema = Schema::parse(schema).map_err(|error| format!("version {in_version}: {error}"))?;
    Ok(Kind {
        singular: text(definition, "/spec/names/singular")
            .map_or_else(|| name.to_lowercase(), str::to_owned),
        list_kind: text(definition, "/spec/names/listKind")
            .map_or_else(|| format!("{name}List"), str::to_owned),
        short: texts(definition, "/spec/names/shortNames"),
        categories: texts(definition, "/spec/names/categories"),
        namespaced: needed(definition, "/spec/scope")? == "Namespaced",
        has_status: version.pointer("/subresources/status").is_some(),
        has_generation: true,
        core: false,
        schema: Some(Arc::new(schema)),
        definition: Some(Arc::clone(definition)),
        columns: columns(version),
        selectable: selectable(version),
        storage,
        typed: None,
        version: in_version,
        kind: name,
        plural,
        group,
    })
}

/// A definition without columns has the age alone.
fn columns(version: &Value) -> Vec<Column> {
    let column = |column: &Value| Column {
        name: text(column, "/name").unwrap_or_default().to_owned(),
        kind: text(column, "/type").unwrap_or("string").to_owned(),
        format: text(column, "/format").unwrap_or_default().to_owned(),
        description: text(column, "/description").unwrap_or_default().to_owned(),
        priority: column["priority"].as_i64().unwrap_or(0),
        path: text(column, "/jsonPath").unwrap_or_default().to_owned(),
    };
    match version["additionalPrinterColumns"].as_array() {
        Some(columns) if !columns.is_empty() => columns.iter().map(column).collect(),
        _ => vec![Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            description: "When it was made".to_owned(),
            path: ".metadata.creationTimestamp".to_owned(),
            ..Column::default()
        }],
    }
}

fn selectable(version: &Value) -> Vec<String> {
    let fields = version["selectableFields"].as_array();
    fields
        .into_iter()
        .flatten()
        .filter_map(|field| text(field, "/jsonPath"))
        .map(|path| path.trim_start_matches('.').to_owned())
        .collect()
}

fn text<'a>(value: &'a Value, at: &str) -> Option<&'a str> {
    value.pointer(at).and_then(Value::as_str)
}

fn texts(value: &Value, at: &str) -> Vec<String> {
    let items = value.pointer(at).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
