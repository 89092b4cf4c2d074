//! The older form: `APIVersions`, `APIGroupList`, and an `APIResourceList` per group and version.

use super::Group;
use crate::kinds::Kind;
use serde_json::{Value, json};

pub(super) fn versions() -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    })
}

pub(super) fn groups<'a>(groups: impl Iterator<Item = (&'a str, &'a Group<'a>)>) -> Value {
    let groups: Vec<Value> = groups
        .map(|(name, group)| self::group(name, group))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// A group with its type, as its own page has it.
pub(super) fn only_group(name: &str, group: &Group<'_>) -> Value {
    let mut group = self::group(name, group);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    group
}

fn group(name: &str, group: &Group<'_>) -> Value {
    let version =
        |version: &str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = group.iter().map(|(each, _)| version(each)).collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

pub(super) fn resources(group: &str, version: &str, kinds: &[&Kind]) -> Value {
    let group_version = match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    let resources: Vec<Value> = kinds.iter().flat_map(|kind| resource(kind)).collect();
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources,
    })
}

/// The kind, and its status.
fn resource(kind: &Kind) -> Vec<Value> {
    let mut whole = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": kind.verbs(),
    });
    if !kind.short.is_empty() {
        whole["shortNames"] = kind.short.clone().into();
    }
    if !kind.categories.is_empty() {
        whole["categories"] = kind.categories.clone().into();
    }
    let status = kind.has_status.then(|| {
        json!({
            "name": format!("{}/status", kind.plural), "singularName": "",
            "namespaced": kind.namespaced, "kind": kind.kind, "verbs": ["get", "patch", "update"],
        })
    });
    std::iter::once(whole).chain(status).collect()
}
