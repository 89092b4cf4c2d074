//! Shapes: the table of core kinds, and what a schema says.

use super::shape::{Form, Identity, Shape, Strategy, core_kind};
use crate::schema::Schema;
use serde_json::{Value, json};

/// Follows a path such as `spec.containers[].env`.
fn at<'a>(mut shape: &'a Shape, path: &str) -> &'a Shape {
    for part in path.split('.') {
        shape = shape.member(part.trim_end_matches("[]")).unwrap().0;
        if part.ends_with("[]") {
            shape = &shape.items().unwrap().item;
        }
    }
    shape
}

fn keys(shape: &Shape) -> Vec<&str> {
    match &shape.items().unwrap().identity {
        Identity::Keys(keys) => keys.iter().map(|key| key.name.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_of_core_kinds_have_their_keys() {
    let pod = core_kind("", "Pod");
    for (path, wanted, merge) in [
        ("spec.containers", &["name"][..], Some("name")),
        (
            "spec.containers[].ports",
            &["containerPort", "protocol"],
            Some("containerPort"),
        ),
        ("spec.initContainers[].env", &["name"], Some("name")),
        (
            "spec.ephemeralContainers[].volumeMounts",
            &["mountPath"],
            Some("mountPath"),
        ),
        ("spec.containers[].resources.claims", &["name"], None),
        ("spec.volumes", &["name"], Some("name")),
        ("status.conditions", &["type"], Some("type")),
        ("metadata.ownerReferences", &["uid"], Some("uid")),
    ] {
        let list = at(pod, path);
        assert_eq!(keys(list), wanted, "{path}");
        let strategy = merge.map_or(Strategy::Replace, |by| Strategy::Merge(by.to_owned()));
        assert_eq!(list.items().unwrap().strategy, strategy, "{path}");
    }
    assert_eq!(*at(pod, "spec.nodeSelector"), Shape::Atomic);
    assert_eq!(*at(pod, "spec.tolerations"), Shape::Typed);
    assert_eq!(*at(pod, "metadata.ownerReferences[]"), Shape::Atomic);
}

#[test]
fn every_kind_has_metadata_and_entries_are_not_fields() {
    for (group, kind) in [
        ("", "Namespace"),
        ("", "Node"),
        ("", "ConfigMap"),
        ("", "Event"),
        ("events.k8s.io", "Event"),
        ("coordination.k8s.io", "Lease"),
        ("some.example", "Unknown"),
    ] {
        let shape = core_kind(group, kind);
        let finalizers = at(shape, "metadata.finalizers").items().unwrap();
        assert_eq!(finalizers.identity, Identity::Value, "{kind}");
        let labels = at(shape, "metadata.labels");
        assert!(!labels.member("app").unwrap().1, "{kind}");
        assert!(shape.member("spec").unwrap().1, "{kind}");
    }
    assert!(
        !at(core_kind("", "ConfigMap"), "data")
            .member("a")
            .unwrap()
            .1
    );
}

#[test]
fn a_schema_says_what_is_whole_shared_or_refused() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
            "items": {"type": "object", "properties": {
                "k": {"type": "string"}, "p": {"type": "string", "default": "TCP"},
            }},
        },
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "entries": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "either": {"x-kubernetes-int-or-string": true},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }}}});
    let schema = Schema::parse(&schema).unwrap();
    let shape = schema.shape();
    assert_eq!(*at(shape, "spec.list"), Shape::Atomic);
    assert_eq!(*at(shape, "spec.whole"), Shape::Atomic);
    assert_eq!(*at(shape, "spec.either"), Shape::Open);
    let set = at(shape, "spec.set").items().unwrap();
    assert_eq!(set.identity, Identity::Value);
    assert_eq!(keys(at(shape, "spec.map")), ["k", "p"]);
    let Identity::Keys(keys) = &at(shape, "spec.map").items().unwrap().identity else {
        panic!("no keys");
    };
    assert_eq!(keys[1].default, Some(json!("TCP")));
    assert!(at(shape, "spec").member("unknown").is_none());
    assert!(at(shape, "spec.free").member("unknown").is_some());
    assert!(!at(shape, "spec.entries").member("x").unwrap().1);
    assert!(
        at(shape, "spec.template.metadata")
            .member("labels")
            .unwrap()
            .1
    );
    assert!(at(shape, "metadata.finalizers").items().is_some());
}

#[test]
fn empty_maps_and_lists_of_core_kinds_are_none() {
    let mut pod = json!({
        "metadata": {"labels": {}, "finalizers": []},
        "spec": {
            "nodeSelector": {}, "tolerations": [], "hostAliases": [],
            "containers": [{"name": "c", "env": [], "resources": {"limits": {}}, "securityContext": {}}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    });
    core_kind("", "Pod").drop_empties(&mut pod);
    let left = json!({
        "metadata": {},
        "spec": {
            "nodeSelector": {}, "tolerations": [],
            "containers": [{"name": "c", "resources": {}, "securityContext": {}}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    });
    assert_eq!(pod, left);
    let schema = json!({"type": "object", "properties": {"m": {"type": "object"}}});
    let mut custom = json!({"m": {}});
    Schema::parse(&schema)
        .unwrap()
        .shape()
        .drop_empties(&mut custom);
    assert_eq!(custom, json!({"m": {}}), "to a schema they are something");
}

#[test]
fn only_what_has_an_identity_is_taken_apart() {
    let list = json!(["a"]);
    let form = |shape: &Shape, value: &Value| format!("{:?}", shape.form(value));
    let finalizers = at(core_kind("", "Pod"), "metadata.finalizers");
    assert!(form(finalizers, &list).starts_with("List"));
    assert!(matches!(Shape::Open.form(&list), Form::Leaf));
    assert!(matches!(Shape::Atomic.form(&json!({})), Form::Leaf));
    assert!(matches!(Shape::Open.form(&json!({})), Form::Map(_)));
    let hosts = at(core_kind("", "Pod"), "status.hostIPs");
    assert!(matches!(hosts.form(&list), Form::Leaf));
}
