//! One answer for everything: `APIGroupDiscoveryList`.

use super::Group;
use crate::kinds::Kind;
use serde_json::{Value, json};

pub(super) fn list(groups: impl Iterator<Item = Value>) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": groups.collect::<Vec<_>>(),
    })
}

pub(super) fn group(name: &str, group: &Group<'_>) -> Value {
    let versions = group.iter().map(|(version, kinds)| {
        json!({
            "version": version, "freshness": "Current",
            "resources": kinds.iter().map(|kind| resource(kind)).collect::<Vec<_>>(),
        })
    });
    let metadata = match name {
        "" => json!({}),
        name => json!({"name": name}),
    };
    json!({"metadata": metadata, "versions": versions.collect::<Vec<_>>()})
}

fn resource(kind: &Kind) -> Value {
    let response = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs(),
    });
    if !kind.short.is_empty() {
        resource["shortNames"] = kind.short.clone().into();
    }
    if !kind.categories.is_empty() {
        resource["categories"] = kind.categories.clone().into();
    }
    if kind.has_status {
        resource["subresources"] = json!([{
            "subresource": "status", "responseKind": response,
            "verbs": ["get", "patch", "update"],
        }]);
    }
    resource
}
