//! The registry, definitions, types, defaults and required fields.

use super::{Kind, Kinds, Storage};
use serde_json::{Value, json};
use std::sync::Arc;

fn kind(group: &str, plural: &str) -> Arc<Kind> {
    let kinds = Kinds::builtin().unwrap();
    Arc::clone(kinds.get(group, "v1", plural).unwrap())
}

fn pruned(kind: &Kind, mut object: Value) -> (Value, Vec<String>) {
    let unknown = kind.prune_typed(&mut object).unwrap();
    (object, unknown)
}

/// A definition with a stored version and an older one.
fn definition() -> Value {
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
        "net.cogadvisor.io/v1/MultiNicNetwork",
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
    assert_eq!(kinds.views_of(new).len(), 1);
    let Storage::View(view) = &old.storage else {
        panic!("{old:?}");
    };
    let shown = json!({"apiVersion": "example.org/v1beta1", "kind": "Thing"});
    let stored = view.inward(&shown);
    assert_eq!(stored["apiVersion"], "example.org/v1");
    assert_eq!(view.outward(&stored), shown);
    assert_eq!(new.list_kind, "ThingList");
    assert_eq!(new.singular, "thing");
    assert_eq!(new.selectable, ["spec.colour"]);
    assert_eq!(new.columns[0].name, "Age");
    let twice = kinds.with_crd(&definition()).unwrap_err();
    assert!(twice.contains("things.example.org"), "{twice}");
}

#[test]
fn what_is_no_definition_is_refused_with_the_reason() {
    for (at, value, said) in [
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
        assert!(error.contains(said), "{error}");
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

#[test]
fn unknown_fields_of_core_kinds_are_named_and_dropped() {
    let pod = json!({
        "metadata": {"name": "a", "nonsense": 1, "creationTimestamp": null},
        "spec": {"containers": [{"name": "c", "image": "i", "imagee": "j"}], "nodeSelector": {"any": "x"}},
        "extra": {},
    });
    let (settled, unknown) = pruned(&kind("", "pods"), pod);
    assert_eq!(
        unknown,
        ["extra", "metadata.nonsense", "spec.containers[0].imagee"]
    );
    let expected = json!({
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"any": "x"}},
    });
    assert_eq!(settled, expected);
}

#[test]
fn quantities_and_times_are_written_as_kubernetes_does() {
    let pod = json!({"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}});
    let (settled, _) = pruned(&kind("", "pods"), pod);
    assert_eq!(
        settled["spec"]["containers"][0]["resources"]["limits"]["cpu"],
        "1"
    );
    let lease = json!({"spec": {"renewTime": "2026-01-01T00:00:00Z"}});
    let (settled, _) = pruned(&kind("coordination.k8s.io", "leases"), lease);
    assert_eq!(settled["spec"]["renewTime"], "2026-01-01T00:00:00.000000Z");
}

#[test]
fn a_wrong_type_is_refused_with_its_place() {
    let pods = kind("", "pods");
    let pod = json!({"spec": {"containers": [
        {"name": "a", "env": [{"name": "fine", "value": "1"}, {"name": true}]},
    ]}});
    let error = pods.check_typed(&pod).unwrap_err();
    assert_eq!(
        error,
        "Pod in version \"v1\" cannot be handled as a Pod: spec.containers[0].env[1].name: \
         invalid type: boolean `true`, expected a string"
    );
    for object in [json!([]), json!("x"), Value::Null] {
        pods.check_typed(&object).unwrap_err();
    }
}

#[test]
fn metadata_of_kinds_with_a_schema_is_typed() {
    let kinds = Kinds::builtin().unwrap().with_crd(&definition()).unwrap();
    let things = kinds.get("example.org", "v1", "things").unwrap();
    let thing = json!({"metadata": {"name": "a", "labels": {"x": 1}}, "spec": {"any": null}});
    let error = things.check_typed(&thing).unwrap_err();
    assert!(error.contains("metadata.labels.x: invalid type"), "{error}");
    let thing = json!({"metadata": {"name": "a", "more": 1}, "spec": {"any": null}});
    let (settled, unknown) = pruned(things, thing);
    assert_eq!(unknown, ["metadata.more"]);
    assert_eq!(
        settled,
        json!({"metadata": {"name": "a"}, "spec": {"any": null}})
    );
}

#[test]
fn the_networks_of_a_pod_are_kept_as_written() {
    let pods = kind("", "pods");
    let (settled, unknown) = pruned(
        &pods,
        json!({"spec": {"networks": ["a", "b/c"], "other": 1}}),
    );
    assert_eq!(settled["spec"]["networks"], json!(["a", "b/c"]));
    assert_eq!(unknown, ["spec.other"]);
    let error = pods
        .check_typed(&json!({"spec": {"networks": [1]}}))
        .unwrap_err();
    assert!(error.contains("spec.networks"), "{error}");
}

#[test]
fn managed_fields_and_opaque_parameters_pass_unchanged() {
    let fields = json!({"f:data": {".": {}, "f:a": {}}});
    let managed = json!([{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    let map = json!({"metadata": {"name": "a", "managedFields": managed}, "data": {"a": "1"}});
    assert_eq!(pruned(&kind("", "configmaps"), map.clone()), (map, vec![]));
    let claim = json!({"spec": {"devices": {"config": [{"opaque": {
        "driver": "d", "parameters": {"any": [1, {"null": null}]},
    }}]}}});
    let claims = kind("resource.k8s.io", "resourceclaims");
    assert_eq!(pruned(&claims, claim.clone()), (claim, vec![]));
}

#[test]
fn defaults_that_clients_rely_on() {
    let mut namespace = json!({"metadata": {"name": "x", "labels": {"a": "b"}}});
    kind("", "namespaces").defaults(&mut namespace);
    assert_eq!(
        namespace["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "x"
    );
    assert_eq!(namespace["status"]["phase"], "Active");
    let mut pod = json!({"spec": {"restartPolicy": "Never", "containers": [
        {"name": "a", "image": "host:5000/i", "ports": [{"containerPort": 1}]},
        {"name": "b", "image": "i:1"},
    ]}});
    let pods = kind("", "pods");
    pods.defaults(&mut pod);
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
    assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(pod["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
    assert_eq!(
        pod["spec"]["containers"][1]["imagePullPolicy"],
        "IfNotPresent"
    );
    assert_eq!(pod["status"]["phase"], "Pending");
    let once = pod.clone();
    pods.defaults(&mut pod);
    assert_eq!(pod, once);
    pods.check_typed(&pod).unwrap();
}

#[test]
fn what_a_core_kind_must_have() {
    let fields = |kind: &Kind, object: Value| -> Vec<String> {
        kind.missing(&object)
            .into_iter()
            .map(|cause| cause.field)
            .collect()
    };
    let pods = kind("", "pods");
    assert_eq!(fields(&pods, json!({"spec": {}})), ["spec.containers"]);
    let pod = json!({"spec": {"containers": [{"name": "a", "image": "i"}, {"name": ""}]}});
    let expected = ["spec.containers[1].name", "spec.containers[1].image"];
    assert_eq!(fields(&pods, pod), expected);
    let old = json!({"spec": {"devices": {"requests": [{"name": "a", "deviceClassName": "c"}]}}});
    let claims = kind("resource.k8s.io", "resourceclaims");
    assert_eq!(fields(&claims, old), ["spec.devices.requests[0]"]);
    let templates = kind("resource.k8s.io", "resourceclaimtemplates");
    let template =
        json!({"spec": {"spec": {"devices": {"requests": [{"name": "a", "exactly": {}}]}}}});
    let expected = ["spec.spec.devices.requests[0].exactly.deviceClassName"];
    assert_eq!(fields(&templates, template), expected);
    assert_eq!(
        fields(&kind("", "configmaps"), json!({})),
        Vec::<String>::new()
    );
}
