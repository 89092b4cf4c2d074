//! What Kubernetes fills into core kinds and clients rely on. Adds only what is absent.

use super::Kind;
use serde_json::{Map, Value, json};

pub(super) fn fill(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => namespace(object),
        ("", "Pod") => pod(object),
        ("", "Event") => event(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("resource.k8s.io", "ResourceClaim") => claim(object, "/spec/devices/requests"),
        ("resource.k8s.io", "ResourceClaimTemplate") => {
            claim(object, "/spec/spec/devices/requests");
        }
        _ => {}
    }
}

fn namespace(object: &mut Value) {
    let name = object.pointer("/metadata/name").cloned();
    if let Some(name) = name.filter(Value::is_string) {
        let labels = within(object, &["metadata", "labels"]);
        absent(labels, "kubernetes.io/metadata.name", || name);
    }
    absent(within(object, &["spec"]), "finalizers", || {
        json!(["kubernetes"])
    });
    absent(within(object, &["status"]), "phase", || "Active".into());
}

fn pod(object: &mut Value) {
    for (key, value) in [
        ("dnsPolicy", json!("ClusterFirst")),
        ("enableServiceLinks", json!(true)),
        ("restartPolicy", json!("Always")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("terminationGracePeriodSeconds", json!(30)),
    ] {
        absent(within(object, &["spec"]), key, || value);
    }
    for list in ["/spec/containers", "/spec/initContainers"] {
        items(object, list).for_each(container_of);
    }
    for (key, value) in [("phase", "Pending"), ("qosClass", "BestEffort")] {
        absent(within(object, &["status"]), key, || value.into());
    }
}

fn container_of(container: &mut Value) {
    let image = container.get("image").and_then(Value::as_str);
    let last = image
        .unwrap_or_default()
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let moving = last.ends_with(":latest") || !last.contains([':', '@']);
    let policy = if moving { "Always" } else { "IfNotPresent" };
    for (key, value) in [
        ("imagePullPolicy", json!(policy)),
        ("resources", json!({})),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
    ] {
        absent(Some(container), key, || value);
    }
    items(container, "/ports").for_each(|port| absent(Some(port), "protocol", || "TCP".into()));
}

fn event(object: &mut Value) {
    for key in ["reportingComponent", "reportingInstance"] {
        absent(Some(object), key, || "".into());
    }
}

fn definition(object: &mut Value) {
    let kind = object.pointer("/spec/names/kind").and_then(Value::as_str);
    let kind = kind.unwrap_or_default().to_owned();
    let singular = kind.to_lowercase();
    let names = &["spec", "names"];
    absent(within(object, names), "listKind", || {
        format!("{kind}List").into()
    });
    absent(within(object, names), "singular", || singular.into());
    absent(
        within(object, &["spec"]),
        "conversion",
        || json!({"strategy": "None"}),
    );
}

fn claim(object: &mut Value, requests: &str) {
    for request in items(object, requests) {
        let Some(exactly) = request.get_mut("exactly").filter(|one| one.is_object()) else {
            continue;
        };
        absent(Some(exactly), "allocationMode", || "ExactCount".into());
        if exactly["allocationMode"] == "ExactCount" {
            absent(Some(exactly), "count", || 1.into());
        }
    }
}

/// Sets a field that is not there.
fn absent(parent: Option<&mut Value>, key: &str, value: impl FnOnce() -> Value) {
    let Some(fields) = parent.and_then(Value::as_object_mut) else {
        return;
    };
    if fields.get(key).is_none_or(Value::is_null) {
        fields.insert(key.to_owned(), value());
    }
}

/// The map at a place; made if nothing is there, none if something else is.
fn within<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |here, key| {
        let inner = here.as_object_mut()?.entry(*key).or_insert(Value::Null);
        if inner.is_null() {
            *inner = Value::Object(Map::new());
        }
        inner.is_object().then_some(inner)
    })
}

/// The items of a list, if there is one.
fn items<'a>(object: &'a mut Value, at: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.pointer_mut(at).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}
