//! The other kinds of patches, and what they can be made to depend on.

use crate::test_namespace::{TestNamespace, refused, test, until};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

#[test]
fn merge_sets_and_null_removes() {
    test("merge", |ns| async move {
        ns.map_with("m", json!({"annotations": {"x": "1", "y": "1"}}))
            .await;
        let patch = json!({"metadata": {"annotations": {"x": null, "z": "2"}}, "data": {"b": "2"}});
        let patched = merge(&ns, patch).await.unwrap();
        let annotations: Vec<_> = patched.annotations().iter().collect();
        assert_eq!(
            annotations,
            [
                (&"y".to_owned(), &"1".to_owned()),
                (&"z".to_owned(), &"2".to_owned())
            ]
        );
        assert_eq!(patched.data.unwrap().len(), 2);
    });
}

#[test]
fn a_patch_that_changes_nothing_keeps_the_version() {
    test("nothing", |ns| async move {
        let made = ns.map("m").await;
        let same = merge(&ns, json!({"data": {"a": "1"}})).await.unwrap();
        assert_eq!(same.resource_version(), made.resource_version());
    });
}

#[test]
fn a_version_or_an_identity_in_the_patch_is_a_condition() {
    test("condition", |ns| async move {
        let made = ns.map("m").await;
        merge(&ns, json!({"data": {"b": "1"}})).await.unwrap();
        let stale =
            json!({"metadata": {"resourceVersion": made.resource_version()}, "data": {"c": "1"}});
        refused(merge(&ns, stale).await, 409, "Conflict");
        let other = json!({"metadata": {"uid": "5b0c2b54-0000-4000-8000-000000000004"}, "data": {"c": "1"}});
        refused(merge(&ns, other).await, 422, "Invalid");
        let right = json!({"metadata": {"uid": made.uid()}, "data": {"c": "1"}});
        merge(&ns, right).await.unwrap();
    });
}

#[test]
fn json_patches_test_add_replace_remove() {
    test("json", |ns| async move {
        ns.map("m").await;
        let done = json_patch(
            &ns,
            json!([
                {"op": "test", "path": "/data/a", "value": "1"},
                {"op": "replace", "path": "/data/a", "value": "2"},
                {"op": "add", "path": "/data/b", "value": "3"},
                {"op": "add", "path": "/metadata/annotations", "value": {"k.v/x": "1"}},
                {"op": "remove", "path": "/metadata/annotations/k.v~1x"},
            ]),
        );
        let done = done.await.unwrap();
        let data: Vec<String> = done.data.unwrap().into_values().collect();
        assert_eq!(data, ["2", "3"]);
        let failed = json_patch(
            &ns,
            json!([
                {"op": "add", "path": "/data/c", "value": "1"},
                {"op": "test", "path": "/data/a", "value": "1"},
            ]),
        );
        refused(failed.await, 422, "Invalid");
        let data = ns.maps().get("m").await.unwrap().data.unwrap();
        assert!(!data.contains_key("c"), "all or nothing");
        let absent = json_patch(&ns, json!([{"op": "remove", "path": "/data/none"}]));
        refused(absent.await, 422, "Invalid");
    });
}

#[test]
fn what_is_absent_is_null_to_a_test() {
    test("null", |ns| async move {
        ns.map("m").await;
        let add = json!([
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": ["conformance.example/x"]},
        ]);
        let added = json_patch(&ns, add.clone()).await.unwrap();
        assert_eq!(added.finalizers().len(), 1);
        refused(json_patch(&ns, add).await, 422, "Invalid");
        let none = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
        json_patch(&ns, none).await.unwrap();
    });
}

#[test]
fn strategic_patches_merge_lists_by_key() {
    test("strategic", |ns| async move {
        let pods: Api<Pod> = Api::namespaced(ns.client.clone(), &ns.namespace);
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {
                "schedulerName": "conformance.example/none",
                "containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}],
            },
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        // Refused until the namespace has its service account.
        let made = || async { pods.create(&PostParams::default(), &pod).await.ok() };
        until("a pod can be made", made).await;
        let patch = json!({"spec": {"containers": [{"name": "b", "image": "y:2"}]}});
        let patched = pods
            .patch("p", &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .unwrap();
        let containers = patched.spec.unwrap().containers;
        let images: Vec<_> = containers
            .iter()
            .map(|c| c.image.as_deref().unwrap())
            .collect();
        assert_eq!(images, ["x:1", "y:2"]);
    });
}

#[test]
fn custom_objects_take_no_strategic_patch() {
    test("unsupported", |ns| async move {
        let network = serde_json::from_value(ns.network("n")).unwrap();
        ns.networks()
            .create(&PostParams::default(), &network)
            .await
            .unwrap();
        let patch = Patch::Strategic(json!({"metadata": {"labels": {"x": "1"}}}));
        let answer = ns
            .networks()
            .patch("n", &PatchParams::default(), &patch)
            .await;
        refused(answer, 415, "UnsupportedMediaType");
        let patch = Patch::Merge(json!({"spec": {"mtu": 1400}}));
        let patched = ns
            .networks()
            .patch("n", &PatchParams::default(), &patch)
            .await
            .unwrap();
        assert_eq!(patched.data["spec"]["mtu"], 1400);
    });
}

async fn merge(ns: &TestNamespace, patch: Value) -> Result<ConfigMap, kube::Error> {
    ns.maps()
        .patch("m", &PatchParams::default(), &Patch::Merge(patch))
        .await
}

async fn json_patch(ns: &TestNamespace, patch: Value) -> Result<ConfigMap, kube::Error> {
    let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
    ns.maps().patch("m", &PatchParams::default(), &patch).await
}
