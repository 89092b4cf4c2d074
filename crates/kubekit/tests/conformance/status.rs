//! The status is a resource of its own; the generation counts changes of the rest.

use crate::test_namespace::{refused, test, version};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

#[test]
fn a_new_object_has_no_status_whatever_is_sent() {
    test("none", |ns| async move {
        let mut block = ns.block("a").await;
        block.data["status"] = json!({"allocated": 3});
        let made = ns
            .blocks()
            .create(&PostParams::default(), &block)
            .await
            .unwrap();
        assert!(made.data.get("status").is_none(), "{}", made.data);
        assert_eq!(made.metadata.generation, Some(1));
    });
}

#[test]
fn writing_the_status_changes_nothing_else() {
    test("apart", |ns| async move {
        let block = ns.block("a").await;
        let name = block.name_any();
        let made = ns
            .blocks()
            .create(&PostParams::default(), &block)
            .await
            .unwrap();
        let patch = json!({
            "metadata": {"labels": {"sneaked": "in"}, "finalizers": ["conformance.example/x"]},
            "spec": {"node": "other"}, "status": {"allocated": 3},
        });
        let patched = ns
            .blocks()
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
        assert_eq!(patched.data["status"]["allocated"], 3);
        assert_eq!(patched.data["spec"], made.data["spec"]);
        assert!(!patched.labels().contains_key("sneaked") && patched.finalizers().is_empty());
        assert_eq!(patched.metadata.generation, Some(1));
        assert!(version(&patched) > version(&made));
    });
}

#[test]
fn writing_the_object_leaves_the_status() {
    test("kept", |ns| async move {
        let block = ns.block("a").await;
        let name = block.name_any();
        ns.blocks()
            .create(&PostParams::default(), &block)
            .await
            .unwrap();
        let status = Patch::Merge(json!({"status": {"allocated": 3}}));
        ns.blocks()
            .patch_status(&name, &PatchParams::default(), &status)
            .await
            .unwrap();
        let both =
            Patch::Merge(json!({"metadata": {"labels": {"x": "1"}}, "status": {"allocated": 4}}));
        let patched = ns
            .blocks()
            .patch(&name, &PatchParams::default(), &both)
            .await
            .unwrap();
        assert_eq!(patched.data["status"]["allocated"], 3);
        assert_eq!(patched.labels()["x"], "1");
        assert_eq!(
            patched.metadata.generation,
            Some(1),
            "a label is no change of the object"
        );
    });
}

#[test]
fn a_change_of_the_spec_is_a_generation() {
    test("generation", |ns| async move {
        let network = serde_json::from_value(ns.network("n")).unwrap();
        ns.networks()
            .create(&PostParams::default(), &network)
            .await
            .unwrap();
        let patch = |value: u32| Patch::Merge(json!({"spec": {"mtu": value}}));
        let changed = ns
            .networks()
            .patch("n", &PatchParams::default(), &patch(1400))
            .await
            .unwrap();
        assert_eq!(changed.metadata.generation, Some(2));
        let same = ns
            .networks()
            .patch("n", &PatchParams::default(), &patch(1400))
            .await
            .unwrap();
        assert_eq!(same.metadata.generation, Some(2));
    });
}

#[test]
fn a_status_is_applied_and_checked_like_the_rest() {
    test("applied", |ns| async move {
        let block = ns.block("a").await;
        let name = block.name_any();
        ns.blocks()
            .create(&PostParams::default(), &block)
            .await
            .unwrap();
        let message = |count: i32| json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block", "status": {"allocated": count}});
        let by = PatchParams::apply("owner").force();
        let applied = ns
            .blocks()
            .patch_status(&name, &by, &Patch::Apply(message(5)))
            .await
            .unwrap();
        assert_eq!(applied.data["status"]["allocated"], 5);
        let again = ns
            .blocks()
            .patch_status(&name, &by, &Patch::Apply(message(5)))
            .await
            .unwrap();
        assert_eq!(again.resource_version(), applied.resource_version());
        let wrong = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block", "status": {"allocated": "many"}});
        let wrong = ns
            .blocks()
            .patch_status(&name, &PatchParams::default(), &Patch::Merge(wrong))
            .await;
        refused(wrong, 422, "Invalid");
    });
}
