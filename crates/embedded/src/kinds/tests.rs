//! The registry: builtin kinds, definitions, versions and aliases.

use super::{Kinds, Storage};
use serde_json::{Value, json};

/// A definition with a stored version and an older one.
pub(super) fn definition() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object"}},
            "selectableFields": [{"jsonPath": ".spec.colour"}],
        })
    };
    json!({
        "metadata": {"name": "things.example.org"},
        "spec": {
            "group": "example.org", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1beta1", false), version("v1", true)],
        },
    })
}

#[test]
fn the_kinds_of_every_server() {
    let kinds = Kinds::builtin().unwrap();
    let names: Vec<String> = kinds
        .iter()
        .map(|kind| format!("{}/{}", kind.api_version(), kind.kind))
        .collect();
    let expected = [
        "v1/ConfigMap",
        "v1/Event",
        "v1/Namespace",
        "v1/Node",
        "v1/Pod",
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
        "authentication.k8s.io/v1/SelfSubjectReview",
        "authorization.k8s.io/v1/SelfSubjectAccessReview",
        "authorization.k8s.io/v1/SelfSubjectRulesReview",
        "cni.networking.x-k8s.io/v1alpha1/CNIConfig",
        "coordination.k8s.io/v1/Lease",
        "events.k8s.io/v1/Event",
        "resource.k8s.io/v1/DeviceClass",
        "resource.k8s.io/v1/ResourceClaim",
        "resource.k8s.io/v1/ResourceClaimTemplate",
    ];
    assert_eq!(names, expected);
    for kind in kinds.iter() {
        let cluster = matches!(
            kind.kind.as_str(),
            "Namespace"
                | "Node"
                | "CustomResourceDefinition"
                | "DeviceClass"
                | "CNIConfig"
                | "MultiNicNetwork"
                | "SelfSubjectReview"
                | "SelfSubjectAccessReview"
                | "SelfSubjectRulesReview"
        );
        assert_eq!(kind.namespaced, !cluster, "{}", kind.kind);
    }
}

#[test]
fn a_definition_gives_a_kind_per_version_and_one_store() {
    let kinds = Kinds::builtin().unwrap().with_crd(&definition()).unwrap();
    let old = kinds.get("example.org", "v1beta1", "things").unwrap();
    let new = kinds.get("example.org", "v1", "things").unwrap();
    assert_eq!(kinds.stored_as(old).version, "v1");
    assert!(matches!(new.storage, Storage::Own));
    let Storage::View(view) = &old.storage else {
        panic!("{old:?}");
    };
    let served = json!({"apiVersion": "example.org/v1beta1", "kind": "Thing"});
    let stored = view.inward(&served);
    assert_eq!(stored["apiVersion"], "example.org/v1");
    assert_eq!(view.outward(&stored), served);
    assert_eq!(new.list_kind, "ThingList");
    assert_eq!(new.singular, "thing");
    assert_eq!(new.selectable, ["spec.colour"]);
    assert_eq!(new.columns[0].name, "Age");
    let twice = kinds.with_crd(&definition()).unwrap_err();
    assert!(twice.contains("things.example.org"), "{twice}");
}

#[test]
fn what_is_no_definition_is_refused_with_the_reason() {
    for (at, value, expected) in [
        ("/spec/versions", json!(1), "spec.versions is not a list"),
        (
            "/spec/versions/1/storage",
            json!(false),
            "no version is stored",
        ),
        ("/spec/group", json!(7), "spec.group is not a text"),
        (
            "/spec/versions/1/schema",
            json!({}),
            "version v1 has no schema",
        ),
    ] {
        let mut wrong = definition();
        *wrong.pointer_mut(at).unwrap() = value;
        let error = Kinds::default().with_crd(&wrong).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("things.example.org"), "{error}");
    }
}

#[test]
fn an_alias_is_a_kind_of_its_own_over_the_same_store() {
    let networks = json!({
        "metadata": {"name": "networks.plexus.dev"},
        "spec": {
            "group": "plexus.dev", "scope": "Namespaced",
            "names": {"plural": "networks", "kind": "Network", "shortNames": ["pnet"]},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}, "subresources": {"status": {}},
            }],
        },
    });
    let alone = Kinds::builtin().unwrap();
    alone
        .clone()
        .with_alias(crate::alias::CORE_NETWORK)
        .unwrap_err();
    let kinds = alone
        .with_crd(&networks)
        .unwrap()
        .with_alias(crate::alias::CORE_NETWORK)
        .unwrap();
    let alias = kinds.by_kind("", "v1", "Network").unwrap();
    assert!(alias.namespaced && alias.has_status && alias.short.is_empty());
    assert_eq!(kinds.stored_as(alias).group, "plexus.dev");
}
