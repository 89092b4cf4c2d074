//! Owners and what they own. These need a garbage collector (on a cluster: the controller-manager's).

use crate::test_namespace::{TestNamespace, test, until};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

const KEEP: &str = "conformance.example/keep";

#[test]
fn what_is_owned_goes_after_its_owner() {
    test("background", |ns| async move {
        owned(&ns, "child", &ns.map("owner").await, &[]).await;
        ns.maps()
            .delete("owner", &DeleteParams::background())
            .await
            .unwrap();
        assert!(ns.maps().get_opt("owner").await.unwrap().is_none());
        gone(&ns, "child").await;
    });
}

#[test]
fn in_the_foreground_the_owner_waits() {
    test("foreground", |ns| async move {
        owned(&ns, "child", &ns.map("owner").await, &[KEEP]).await;
        let answer = ns
            .maps()
            .delete("owner", &DeleteParams::foreground())
            .await
            .unwrap();
        let dying = answer.left().expect("it is still there");
        assert_eq!(dying.finalizers(), ["foregroundDeletion"]);
        let child = || async {
            let child = ns.maps().get("child").await.unwrap();
            child.metadata.deletion_timestamp.map(drop)
        };
        until("the child is being deleted", child).await;
        assert!(ns.maps().get_opt("owner").await.unwrap().is_some());
        release(&ns, "child").await;
        gone(&ns, "child").await;
        gone(&ns, "owner").await;
    });
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    test("orphan", |ns| async move {
        owned(&ns, "child", &ns.map("owner").await, &[]).await;
        ns.maps()
            .delete("owner", &DeleteParams::orphan())
            .await
            .unwrap();
        gone(&ns, "owner").await;
        let child = ns.maps().get("child").await.unwrap();
        assert!(child.owner_references().is_empty());
        assert!(child.metadata.deletion_timestamp.is_none());
    });
}

#[test]
fn whoever_has_another_owner_stays() {
    test("owners", |ns| async move {
        let (one, two) = (ns.map("one").await, ns.map("two").await);
        owned(&ns, "child", &one, &[]).await;
        let owners = json!({"metadata": {"ownerReferences": [reference(&one), reference(&two)]}});
        ns.maps()
            .patch("child", &PatchParams::default(), &Patch::Merge(owners))
            .await
            .unwrap();
        ns.maps()
            .delete("one", &DeleteParams::background())
            .await
            .unwrap();
        let forgotten = || async {
            let child = ns.maps().get("child").await.unwrap();
            (child.owner_references().len() == 1).then_some(())
        };
        until("the owner that is gone is forgotten", forgotten).await;
        ns.maps()
            .delete("two", &DeleteParams::background())
            .await
            .unwrap();
        gone(&ns, "child").await;
    });
}

#[test]
fn an_owner_of_another_identity_is_no_owner() {
    test("identity", |ns| async move {
        let mut owner = ns.map("owner").await;
        owner.metadata.uid = Some("5b0c2b54-0000-4000-8000-000000000003".to_owned());
        owned(&ns, "child", &owner, &[]).await;
        gone(&ns, "child").await;
        assert!(ns.maps().get_opt("owner").await.unwrap().is_some());
    });
}

fn reference(owner: &ConfigMap) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(),
        "blockOwnerDeletion": true,
    })
}

async fn owned(ns: &TestNamespace, name: &str, owner: &ConfigMap, finalizers: &[&str]) {
    let metadata = json!({"ownerReferences": [reference(owner)], "finalizers": finalizers});
    ns.map_with(name, metadata).await;
}

async fn release(ns: &TestNamespace, name: &str) {
    let none = json!({"metadata": {"finalizers": null}});
    ns.maps()
        .patch(name, &PatchParams::default(), &Patch::Merge(none))
        .await
        .unwrap();
}

async fn gone(ns: &TestNamespace, name: &str) {
    let absent = || async {
        ns.maps()
            .get_opt(name)
            .await
            .unwrap()
            .is_none()
            .then_some(())
    };
    until(&format!("{name} is gone"), absent).await;
}
