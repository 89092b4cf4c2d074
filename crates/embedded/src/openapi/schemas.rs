//! The schemas of a document: those of the kinds, and of everything that they refer to.

use super::document::{identity, reference};
use super::merging;
use crate::kinds::Kind;
use crate::patch::Shape;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta};
use k8s_openapi::schemars::generate::SchemaSettings;
use k8s_openapi::schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The name of a kind's schema: that of its type, else its group turned round, as Kubernetes names
/// those of definitions.
pub(super) fn component(kind: &Kind) -> String {
    kind.type_name().unwrap_or_else(|| {
        let group: Vec<&str> = kind
            .group
            .rsplit('.')
            .filter(|part| !part.is_empty())
            .collect();
        let group = if group.is_empty() {
            "core".to_owned()
        } else {
            group.join(".")
        };
        format!("{group}.{}.{}", kind.version, kind.kind)
    })
}

pub(super) fn list_component(kind: &Kind) -> String {
    format!("{}List", component(kind))
}

pub(super) fn components(kinds: &[&Kind]) -> Value {
    let mut generator = generator();
    generator.subschema_for::<ListMeta>();
    generator.subschema_for::<ObjectMeta>();
    for kind in kinds {
        kind.describe(&mut generator);
    }
    let mut schemas = generator.take_definitions(false);
    networks_of_pods(&mut schemas);
    for kind in kinds {
        let name = component(kind);
        if let Some(definition) = described(kind) {
            schemas.insert(name.clone(), definition);
        }
        if let Some(schema) = schemas.get_mut(&name) {
            identified(kind, schema);
        }
        schemas.insert(list_component(kind), list(kind));
    }
    let mut schemas = Value::Object(schemas);
    for kind in kinds.iter().filter(|kind| kind.core) {
        merging::add_merge_keys(&mut schemas, &component(kind), Shape::of(kind));
    }
    references_alone(&mut schemas);
    schemas
}

fn generator() -> SchemaGenerator {
    let set_definitions_path = |settings: &mut SchemaSettings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        settings.transforms.clear();
    };
    SchemaSettings::draft07()
        .with(set_definitions_path)
        .into_generator()
}

/// The schema of a kind that has a definition, with what every object has.
fn described(kind: &Kind) -> Option<Value> {
    let definition = kind.definition.as_deref()?;
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    // An alias shows the version that is stored.
    let version = versions
        .iter()
        .find(|version| version["name"] == kind.version.as_str())
        .or_else(|| versions.iter().find(|version| version["storage"] == true))?;
    let mut schema = version.pointer("/schema/openAPIV3Schema")?.clone();
    let properties = schema.as_object_mut()?.entry("properties");
    let properties = properties.or_insert_with(|| json!({})).as_object_mut()?;
    properties.insert(
        "apiVersion".to_owned(),
        json!({"type": "string", "description": "Group and version of the kind."}),
    );
    properties.insert(
        "kind".to_owned(),
        json!({"type": "string", "description": "The kind of the object."}),
    );
    let mut metadata = reference(&ObjectMeta::schema_name());
    metadata["description"] = "Name, labels, and everything else that every object has.".into();
    properties.insert("metadata".to_owned(), metadata);
    Some(schema)
}

fn identified(kind: &Kind, schema: &mut Value) {
    schema["x-kubernetes-group-version-kind"] = json!([identity(kind, &kind.kind)]);
    // Clients need not write it.
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|field| field != "metadata");
        if required.is_empty() {
            schema
                .as_object_mut()
                .map(|fields| fields.remove("required"));
        }
    } else if let Some(fields) = schema.as_object_mut() {
        fields.remove("required");
    }
}

fn list(kind: &Kind) -> Value {
    json!({
        "type": "object",
        "description": format!("A list of {}.", kind.plural),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Group and version of the kind."},
            "kind": {"type": "string", "description": "The kind of the list."},
            "metadata": reference(&ListMeta::schema_name()),
            "items": {
                "type": "array", "description": "The objects.",
                "items": reference(&component(kind)),
            },
        },
        "x-kubernetes-group-version-kind": [identity(kind, &kind.list_kind)],
    })
}

/// No field of Kubernetes: see the room of kinds.
fn networks_of_pods(schemas: &mut Map<String, Value>) {
    let spec = schemas.get_mut("io.k8s.api.core.v1.PodSpec");
    let properties = spec
        .and_then(|spec| spec.get_mut("properties"))
        .and_then(Value::as_object_mut);
    if let Some(properties) = properties {
        properties.insert(
            "networks".to_owned(),
            json!({
                "type": "array", "items": {"type": "string"},
                "description": "Networks that the pod is attached to, each as [namespace/]name. Only \
                                the embedded API has this field; elsewhere the annotation \
                                plexus.dev/networks says the same.",
            }),
        );
    }
}

/// OpenAPI 3.0 ignores what stands beside a reference: then the reference stands in an `allOf`.
fn references_alone(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.len() > 1 && fields.get("$ref").is_some_and(Value::is_string) {
                let reference = fields.remove("$ref");
                fields.insert("allOf".to_owned(), json!([{"$ref": reference}]));
            }
            fields.values_mut().for_each(references_alone);
        }
        Value::Array(items) => items.iter_mut().for_each(references_alone),
        _ => {}
    }
}
