//! The documents, as `kubectl` reads them.

use super::OpenApi;
use crate::kinds::Kinds;
use serde_json::{Value, json};

fn api() -> OpenApi {
    OpenApi::new(Kinds::builtin().unwrap())
}

fn read(api: &OpenApi, path: &str) -> Value {
    serde_json::from_slice(&api.page(path, None).unwrap().body).unwrap()
}

/// Follows a path of fields as `kubectl explain` does.
fn explained<'a>(document: &'a Value, component: &str, path: &str) -> &'a Value {
    let schemas = &document["components"]["schemas"];
    let mut schema = &schemas[component];
    for field in path.split('.') {
        schema = resolved(schemas, &schema["properties"][field]);
    }
    schema
}

fn resolved<'a>(schemas: &'a Value, schema: &'a Value) -> &'a Value {
    let inner = if schema["items"].is_object() {
        &schema["items"]
    } else {
        schema
    };
    let reference = inner["$ref"]
        .as_str()
        .or_else(|| inner["allOf"][0]["$ref"].as_str());
    match reference {
        Some(reference) => &schemas[reference.trim_start_matches("#/components/schemas/")],
        None => inner,
    }
}

#[test]
fn the_index_leads_to_documents_that_never_change() {
    let api = api();
    let index = read(&api, "/openapi/v3");
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/coordination.k8s.io/v1"));
    for (name, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let (path, query) = url.split_once('?').unwrap();
        assert_eq!(path, format!("/openapi/v3/{name}"));
        let page = api.page(path, query.strip_prefix("hash=")).unwrap();
        assert!(page.immutable);
        assert!(!api.page(path, Some("0")).unwrap().immutable);
        assert!(!api.page(path, None).unwrap().immutable);
    }
    assert!(!api.page("/openapi/v3", None).unwrap().immutable);
    assert!(api.page("/openapi/v3/apis/none/v1", None).is_none());
    assert!(api.page("/openapi/v2", None).is_none());
}

#[test]
fn every_kind_can_be_patched_with_field_validation() {
    let api = api();
    for kind in Kinds::builtin().unwrap().iter() {
        let document = read(&api, &format!("/openapi/v3/{}", super::name(kind)));
        let wanted = super::document::identity(kind, &kind.kind);
        let paths = document["paths"].as_object().unwrap();
        let supported = paths.values().any(|path| {
            let patch = &path["patch"];
            let parameters = patch["parameters"].as_array();
            patch["x-kubernetes-group-version-kind"] == wanted
                && parameters
                    .is_some_and(|all| all.iter().any(|one| one["name"] == "fieldValidation"))
        });
        let reviewed = kind.verbs() == ["create"];
        assert_eq!(supported, !reviewed, "{}", kind.kind);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let described = schemas.values().filter(|schema| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.is_some_and(|kinds| kinds.contains(&wanted))
        });
        assert_eq!(described.count(), 1, "{}", kind.kind);
    }
}

#[test]
fn every_reference_leads_somewhere_and_stands_alone() {
    let api = api();
    for (name, _) in read(&api, "/openapi/v3")["paths"].as_object().unwrap() {
        let document = read(&api, &format!("/openapi/v3/{name}"));
        check(&document, &document["components"]["schemas"]);
    }

    fn check(value: &Value, schemas: &Value) {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            assert!(schemas.get(name).is_some(), "{reference}");
            assert_eq!(value.as_object().unwrap().len(), 1, "{value}");
        }
        let inner: Vec<&Value> = match value {
            Value::Object(fields) => fields.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        inner.into_iter().for_each(|value| check(value, schemas));
    }
}

#[test]
fn nested_fields_are_explained() {
    let api = api();
    let core = read(&api, "/openapi/v3/api/v1");
    let pod = "io.k8s.api.core.v1.Pod";
    for (path, kind) in [
        ("metadata.labels", "object"),
        (
            "spec.containers.env.valueFrom.configMapKeyRef.key",
            "string",
        ),
        ("spec.networks", "string"),
        ("status.podIPs.ip", "string"),
    ] {
        assert_eq!(explained(&core, pod, path)["type"], kind, "{path}");
    }
    let claims = read(&api, "/openapi/v3/apis/resource.k8s.io/v1");
    let claim = "io.k8s.api.resource.v1.ResourceClaim";
    let mode = explained(
        &claims,
        claim,
        "spec.devices.requests.exactly.allocationMode",
    );
    assert_eq!(mode["type"], "string");
    let multi = read(&api, "/openapi/v3/apis/cni.networking.x-k8s.io/v1alpha1");
    let config = "io.x-k8s.networking.cni.v1alpha1.CNIConfig";
    assert_eq!(
        explained(&multi, config, "spec.plugins.arguments.fieldPath")["type"],
        "string"
    );
    assert!(explained(&multi, config, "metadata.name")["description"].is_string());
    let definitions = read(&api, "/openapi/v3/apis/apiextensions.k8s.io/v1");
    let definition =
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
    let schema = explained(
        &definitions,
        definition,
        "spec.versions.schema.openAPIV3Schema",
    );
    assert_eq!(schema["type"], "object");
}

#[test]
fn the_schemas_say_how_lists_are_merged() {
    let core = read(&api(), "/openapi/v3/api/v1");
    let schemas = &core["components"]["schemas"];
    let list = |component: &str, field: &str| {
        let name = format!("io.k8s.api.core.v1.{component}");
        let schema = &schemas[name.as_str()]["properties"][field];
        let extension = |key: &str| schema[format!("x-kubernetes-{key}").as_str()].clone();
        (
            extension("patch-strategy"),
            extension("patch-merge-key"),
            extension("list-type"),
            extension("list-map-keys"),
        )
    };
    let by = |key: &str| (json!("merge"), json!(key), json!("map"), json!([key]));
    assert_eq!(list("PodSpec", "containers"), by("name"));
    assert_eq!(list("Container", "env"), by("name"));
    let ports = json!(["containerPort", "protocol"]);
    let expected = (json!("merge"), json!("containerPort"), json!("map"), ports);
    assert_eq!(list("Container", "ports"), expected);
    assert_eq!(list("PodSpec", "volumes").0, "merge,retainKeys");
    assert_eq!(
        list("PodSpec", "tolerations"),
        (Value::Null, Value::Null, Value::Null, Value::Null)
    );
    let patch = |path: &str| core["paths"][path]["patch"]["requestBody"]["content"].clone();
    let strategic = "application/strategic-merge-patch+json";
    assert!(
        patch("/api/v1/namespaces/{namespace}/pods/{name}")
            .get(strategic)
            .is_some()
    );
    let multi = read(&api(), "/openapi/v3/apis/cni.networking.x-k8s.io/v1alpha1");
    let path = "/apis/cni.networking.x-k8s.io/v1alpha1/cniconfigs/{name}";
    let content = &multi["paths"][path]["patch"]["requestBody"]["content"];
    assert!(content.get("application/merge-patch+json").is_some());
    assert!(content.get(strategic).is_none());
}
