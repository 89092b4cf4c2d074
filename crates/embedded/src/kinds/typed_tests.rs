//! Core kinds by their types: what is dropped, refused, filled in and required.

use super::{Kind, Kinds};
use crate::table::{self, Form, Include};
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
    let kinds = Kinds::builtin()
        .unwrap()
        .with_crd(&super::tests::definition())
        .unwrap();
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

#[test]
fn nothing_of_the_wrong_form_makes_it_panic() {
    for kind in Kinds::builtin().unwrap().iter() {
        for wrong in [
            json!(1),
            json!([]),
            json!({"metadata": 1, "spec": [], "status": "x"}),
        ] {
            let mut object = wrong.clone();
            kind.defaults(&mut object);
            let _ = kind.missing(&object);
            let _ = kind.prune_typed(&mut object);
            let _ = table::object(kind, Form::Table(Include::Object), &wrong, 0);
            crate::crds::establish(&mut object, "");
            let _ = crate::crds::check(&Kinds::default(), &object);
        }
    }
    let mut template = json!({"spec": {"spec": {"devices": {"requests": [{"exactly": {}}, 7]}}}});
    kind("resource.k8s.io", "resourceclaimtemplates").defaults(&mut template);
    let exactly = json!({"allocationMode": "ExactCount", "count": 1});
    assert_eq!(
        template["spec"]["spec"]["devices"]["requests"][0]["exactly"],
        exactly
    );
}
