//! The definitions in `deploy/crds` are those that the types give. `UPDATE=1` writes them.

#![cfg(feature = "objects")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use plexus_api::objects::crds;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../deploy/crds")
}

/// File name and content of every definition.
fn files() -> BTreeMap<String, String> {
    let file = |crd| {
        let value = serde_json::to_value(crd).unwrap();
        let name = value["metadata"]["name"].as_str().unwrap();
        let text = serde_yaml_ng::to_string(&value).unwrap();
        (format!("{name}.yaml"), text)
    };
    crds().iter().map(file).collect()
}

#[test]
fn the_committed_definitions_are_these() {
    let wanted = files();
    assert_eq!(wanted.len(), 10);
    if std::env::var_os("UPDATE").is_some() {
        for (name, text) in &wanted {
            std::fs::write(folder().join(name), text).unwrap();
        }
    }
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        found.insert(name, std::fs::read_to_string(&path).unwrap());
    }
    for (name, text) in &wanted {
        assert_eq!(
            found.remove(name).as_ref(),
            Some(text),
            "{name} is out of date: run UPDATE=1 cargo test -p plexus-api --features objects"
        );
    }
    assert!(found.is_empty(), "of no kind: {:?}", found.keys());
}

/// What apiextensions wants of a structural schema.
#[test]
fn the_schemas_are_structural() {
    for crd in crds() {
        let value = serde_json::to_value(&crd).unwrap();
        for version in value["spec"]["versions"].as_array().unwrap() {
            let schema = &version["schema"]["openAPIV3Schema"];
            assert_eq!(schema["type"], "object");
            structural(schema, "");
        }
    }
}

fn structural(schema: &Value, path: &str) {
    let map = schema.as_object().unwrap();
    for key in [
        "$ref",
        "definitions",
        "$defs",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "const",
    ] {
        assert!(!map.contains_key(key), "{path} has {key}");
    }
    assert!(map["type"].is_string(), "{path} has no type");
    if let Some(format) = map.get("format").and_then(Value::as_str) {
        assert!(
            ["int32", "int64", "date-time"].contains(&format),
            "{path}: {format}"
        );
    }
    let open = map.contains_key("x-kubernetes-preserve-unknown-fields");
    assert_eq!(
        open,
        path.ends_with("spec.config") && open,
        "{path} is open"
    );
    assert!(
        !(map.contains_key("properties") && map.contains_key("additionalProperties")),
        "{path} has both"
    );
    for (key, inner) in map
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        structural(inner, &format!("{path}.{key}"));
    }
    if let Some(inner) = map.get("items") {
        structural(inner, &format!("{path}[]"));
    }
    if let Some(inner) = map.get("additionalProperties") {
        structural(inner, &format!("{path}{{}}"));
    }
}
