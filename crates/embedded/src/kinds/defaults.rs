//! What Kubernetes fills into core kinds and clients rely on. Adds only what is absent.

use super::Kind;
use serde_json::{Map, Value, json};

pub(super) fn fill(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => namespace(object),
        ("", "Pod") => pod(object),
        ("", "Event") => event(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("resource.k8s.io", "ResourceClaim") => claim(object),
        ("resource.k8s.io", "ResourceClaimTemplate") => claim(&mut object["spec"]),
        _ => {}
    }
}

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if name.is_string() {
        absent(
            &mut object["metadata"]["labels"],
            "kubernetes.io/metadata.name",
            || name,
        );
    }
    absent(&mut object["spec"], "finalizers", || json!(["kubernetes"]));
    absent(&mut object["status"], "phase", || "Active".into());
}

fn pod(object: &mut Value) {
    let spec = &mut object["spec"];
    absent(spec, "dnsPolicy", || "ClusterFirst".into());
    absent(spec, "enableServiceLinks", || true.into());
    absent(spec, "restartPolicy", || "Always".into());
    absent(spec, "schedulerName", || "default-scheduler".into());
    absent(spec, "securityContext", || json!({}));
    absent(spec, "terminationGracePeriodSeconds", || 30.into());
    for list in ["containers", "initContainers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            container_of(container);
        }
    }
    absent(&mut object["status"], "phase", || "Pending".into());
    absent(&mut object["status"], "qosClass", || "BestEffort".into());
}

fn container_of(container: &mut Value) {
    if !container.is_object() {
        return;
    }
    let image = container["image"].as_str().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let moving = last.ends_with(":latest") || !last.contains([':', '@']);
    let policy = if moving { "Always" } else { "IfNotPresent" };
    absent(container, "imagePullPolicy", || policy.into());
    absent(container, "resources", || json!({}));
    absent(container, "terminationMessagePath", || {
        "/dev/termination-log".into()
    });
    absent(container, "terminationMessagePolicy", || "File".into());
    for port in container
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        absent(port, "protocol", || "TCP".into());
    }
}

fn event(object: &mut Value) {
    absent(object, "reportingComponent", || "".into());
    absent(object, "reportingInstance", || "".into());
}

fn definition(object: &mut Value) {
    let names = &mut object["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    absent(names, "listKind", || format!("{kind}List").into());
    absent(names, "singular", || kind.to_lowercase().into());
    absent(
        &mut object["spec"],
        "conversion",
        || json!({"strategy": "None"}),
    );
}

fn claim(object: &mut Value) {
    let requests = object
        .pointer_mut("/spec/devices/requests")
        .and_then(Value::as_array_mut);
    for request in requests.into_iter().flatten() {
        let Some(exactly) = request.get_mut("exactly").filter(|one| one.is_object()) else {
            continue;
        };
        absent(exactly, "allocationMode", || "ExactCount".into());
        if exactly["allocationMode"] == "ExactCount" {
            absent(exactly, "count", || 1.into());
        }
    }
}

/// Sets a field that is not there; a parent that is not there is made.
fn absent(parent: &mut Value, key: &str, value: impl FnOnce() -> Value) {
    if parent.is_null() {
        *parent = Value::Object(Map::new());
    }
    if let Some(fields) = parent.as_object_mut() {
        let known = fields.get(key).is_some_and(|field| !field.is_null());
        if !known {
            fields.insert(key.to_owned(), value());
        }
    }
}
