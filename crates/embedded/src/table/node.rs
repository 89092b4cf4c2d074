//! The row of a node.

use super::core::{ago, text};
use serde_json::Value;

pub(super) const COLUMNS: &[(&str, &str, i64, &str)] = &[
    ("Name", "string", 0, "Unique."),
    ("Status", "string", 0, "Whether pods can run there."),
    ("Roles", "string", 0, "By its labels."),
    ("Age", "string", 0, "How long ago it was made."),
    ("Version", "string", 0, "Of what runs its pods."),
    ("Internal-IP", "string", 1, "Its address inside."),
    ("External-IP", "string", 1, "Its address outside."),
    ("OS-Image", "string", 1, "What it runs."),
    ("Kernel-Version", "string", 1, "Its kernel."),
    (
        "Container-Runtime",
        "string",
        1,
        "Who starts its containers.",
    ),
];

pub(super) fn cells(node: &Value, now: i64) -> Vec<Value> {
    let none = |text: &str, otherwise: &str| match text {
        "" => Value::from(otherwise),
        text => Value::from(text),
    };
    let info = |key: &str| text(node, &format!("/status/nodeInfo/{key}"));
    vec![
        text(node, "/metadata/name").into(),
        status(node).into(),
        roles(node).into(),
        ago(text(node, "/metadata/creationTimestamp"), now).into(),
        info("kubeletVersion").into(),
        none(address(node, "InternalIP"), "<none>"),
        none(address(node, "ExternalIP"), "<none>"),
        none(info("osImage"), "<unknown>"),
        none(info("kernelVersion"), "<unknown>"),
        none(info("containerRuntimeVersion"), "<unknown>"),
    ]
}

fn status(node: &Value) -> String {
    let ready = items(node, "/status/conditions").find(|one| one["type"] == "Ready");
    let ready = match ready.map(|one| text(one, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match node.pointer("/spec/unschedulable") {
        Some(Value::Bool(true)) => format!("{ready},SchedulingDisabled"),
        _ => ready.to_owned(),
    }
}

fn roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None if key == "kubernetes.io/role" => value.as_str(),
                None => None,
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles.join(",")
    }
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    items(node, "/status/addresses")
        .find(|one| one["type"] == kind)
        .map_or("", |one| text(one, "/address"))
}

fn items<'a>(object: &'a Value, at: &str) -> impl Iterator<Item = &'a Value> {
    let list = object.pointer(at).and_then(Value::as_array);
    list.into_iter().flatten()
}
