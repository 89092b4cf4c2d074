//! Field selectors: what each kind offers, and what it says of the rest.

use super::{Fields, value_of};
use crate::kinds::{Kind, Kinds};
use serde_json::{Value, json};
use std::sync::Arc;

fn kind(group: &str, version: &str, plural: &str) -> Arc<Kind> {
    let kinds = Kinds::builtin().unwrap();
    Arc::clone(kinds.get(group, version, plural).unwrap())
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "a", "namespace": "x"},
        "spec": {"nodeName": "n1"}, "status": {"phase": "Running"},
    })
}

#[test]
fn pods_are_found_by_what_describe_asks_for() {
    let pods = kind("", "v1", "pods");
    for (selector, found) in [
        ("", true),
        ("spec.nodeName=n1", true),
        (
            "spec.nodeName==n1,status.phase!=Failed,status.phase!=Succeeded",
            true,
        ),
        ("metadata.name=a,metadata.namespace=x", true),
        ("spec.nodeName=", false),
        ("spec.nodeName!=n1", false),
        ("status.phase=Failed", false),
        ("status.podIP=", true),
        ("spec.hostNetwork=false", true),
    ] {
        let fields = Fields::parse(&pods, selector).unwrap();
        assert_eq!(fields.matches(&pods, &pod()), found, "{selector}");
        let get = |label: &str| match label {
            "metadata.name" => Some("a"),
            "metadata.namespace" => Some("x"),
            "spec.nodeName" => Some("n1"),
            "status.phase" => Some("Running"),
            "spec.hostNetwork" => Some("false"),
            _ => None,
        };
        assert_eq!(fields.matches_with(&get), found, "{selector}");
    }
}

#[test]
fn a_label_that_is_not_offered_is_named() {
    for (kind, selector, expected) in [
        (
            kind("", "v1", "pods"),
            "spec.image=x",
            "field label not supported: spec.image",
        ),
        (
            kind("", "v1", "nodes"),
            "metadata.namespace=x",
            "field label not supported: metadata.namespace",
        ),
        (
            kind("", "v1", "configmaps"),
            "data.a=1",
            "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        (
            kind("cni.networking.x-k8s.io", "v1alpha1", "cniconfigs"),
            "spec.subnet=x",
            "field label not supported: spec.subnet",
        ),
        (
            kind("", "v1", "pods"),
            "spec.nodeName",
            "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'",
        ),
    ] {
        assert_eq!(Fields::parse(&kind, selector).unwrap_err(), expected);
    }
    let pods = kind("", "v1", "pods");
    for wrong in [
        "metadata.name=a=b",
        "metadata.name=a\\b",
        "metadata.name=a\\",
        "=",
        "x",
    ] {
        assert!(Fields::parse(&pods, wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_name_alone_is_known() {
    let pods = kind("", "v1", "pods");
    let name = |selector: &str| {
        Fields::parse(&pods, selector)
            .unwrap()
            .name()
            .map(str::to_owned)
    };
    assert_eq!(name("status.phase=x,metadata.name=a"), Some("a".to_owned()));
    assert_eq!(name("metadata.name=a\\,b\\=c"), Some("a,b=c".to_owned()));
    assert_eq!(name("metadata.name!=a"), None);
}

#[test]
fn events_are_found_in_both_groups() {
    let event = json!({
        "involvedObject": {"kind": "Pod", "uid": "u"}, "reason": "r", "type": "Warning",
        "reportingComponent": "plexus",
    });
    let core = kind("", "v1", "events");
    let selector = "involvedObject.kind=Pod,involvedObject.uid=u,source=plexus,reason=r";
    assert!(
        Fields::parse(&core, selector)
            .unwrap()
            .matches(&core, &event)
    );
    let other = kind("events.k8s.io", "v1", "events");
    let served = crate::events::from_core(&event);
    let selector = "regarding.uid=u,reportingController=plexus,type!=Normal";
    assert!(
        Fields::parse(&other, selector)
            .unwrap()
            .matches(&other, &served)
    );
    Fields::parse(&other, "involvedObject.uid=u").unwrap_err();
    assert_eq!(value_of(&core, &event, "involvedObject.uid"), "u");
}
