//! From client-side apply to server-side apply: what kubectl does, and must not be told.

use super::{NOW, conflicts};
use crate::patch::apply::{ApplyError, Writer, apply, update};
use crate::patch::json as json_patch;
use crate::patch::shape::core_kind;
use serde_json::{Value, json};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        api_version: "v1",
        subresource: "",
        status_apart: false,
        now: NOW,
    }
}

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
}

/// As `kubectl apply` without `--server-side` has left it.
fn left(data: Value, expected: &Value) -> Value {
    let mut object = map(data);
    object["metadata"]["annotations"] = json!({ANNOTATION: expected.to_string()});
    update(
        core_kind("", "ConfigMap"),
        None,
        &mut object,
        &writer("kubectl-client-side-apply"),
    );
    object
}

fn applied(live: &Value, data: Value, manager: &str) -> Result<Value, ApplyError> {
    let shape = core_kind("", "ConfigMap");
    apply(shape, Some(live), &map(data), &writer(manager), false)
}

#[test]
fn what_kubectl_had_applied_before_is_no_conflict_for_kubectl() {
    let live = left(
        json!({"a": "1", "b": "1"}),
        &map(json!({"a": "1", "b": "1"})),
    );
    let done = applied(&live, json!({"a": "2", "b": "1"}), "kubectl").unwrap();
    assert_eq!(done["data"]["a"], "2");
    let other = applied(&live, json!({"a": "2"}), "flux").map(|_| super::Thing::default());
    let expected = "conflict with \"kubectl-client-side-apply\" using v1: .data.a";
    assert_eq!(conflicts(other), [expected]);
}

#[test]
fn what_has_changed_since_is_a_conflict() {
    let mut live = left(
        json!({"a": "1", "b": "1"}),
        &map(json!({"a": "1", "b": "1"})),
    );
    let before = live.clone();
    live["data"]["b"] = json!("edited");
    update(
        core_kind("", "ConfigMap"),
        Some(&before),
        &mut live,
        &writer("kubectl-edit"),
    );
    let answer = applied(&live, json!({"a": "2", "b": "2"}), "kubectl");
    let expected = "conflict with \"kubectl-edit\" using v1: .data.b";
    assert_eq!(
        conflicts(answer.map(|_| super::Thing::default())),
        [expected]
    );
}

#[test]
fn the_annotation_stays_true() {
    let live = left(json!({"a": "1"}), &map(json!({"a": "1"})));
    let done = applied(&live, json!({"a": "1", "b": "2"}), "kubectl").unwrap();
    let expected = done["metadata"]["annotations"][ANNOTATION]
        .as_str()
        .unwrap();
    let expected: Value = serde_json::from_str(expected).unwrap();
    assert_eq!(expected["data"], json!({"a": "1", "b": "2"}));
    let untouched = applied(&live, json!({"b": "2"}), "flux").unwrap();
    assert_eq!(
        untouched["metadata"]["annotations"],
        live["metadata"]["annotations"]
    );
}

#[test]
fn the_migration_of_kubectl_moves_ownership() {
    let live = left(json!({"a": "1"}), &map(json!({"a": "1"})));
    let first = applied(&live, json!({"a": "1"}), "kubectl").unwrap();
    let mut entries = first["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .clone();
    entries.retain(|entry| entry["manager"] == "kubectl");
    let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": entries}]);
    let mut moved = first.clone();
    json_patch(&mut moved, &patch).unwrap();
    update(
        core_kind("", "ConfigMap"),
        Some(&first),
        &mut moved,
        &writer("kubectl"),
    );
    assert_eq!(moved["metadata"]["managedFields"], Value::Array(entries));
    let dropped = applied(&moved, json!({"b": "1"}), "kubectl").unwrap();
    assert_eq!(
        dropped["data"],
        json!({"b": "1"}),
        "nobody else holds it any more"
    );
}
