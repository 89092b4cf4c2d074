//! Owners and what they own. These need a garbage collector (on a cluster: the controller-manager's).

use crate::place::{Place, test, until};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

const KEEP: &str = "conformance.example/keep";

#[test]
fn what_is_owned_goes_after_its_owner() {
    test("background", |place| async move {
        owned(&place, "child", &place.map("owner").await, &[]).await;
        place
            .maps()
            .delete("owner", &DeleteParams::background())
            .await
            .unwrap();
        assert!(place.maps().get_opt("owner").await.unwrap().is_none());
        gone(&place, "child").await;
    });
}

#[test]
fn in_the_foreground_the_owner_waits() {
    test("foreground", |place| async move {
        owned(&place, "child", &place.map("owner").await, &[KEEP]).await;
        let answer = place
            .maps()
            .delete("owner", &DeleteParams::foreground())
            .await
            .unwrap();
        let dying = answer.left().expect("it is still there");
        assert_eq!(dying.finalizers(), ["foregroundDeletion"]);
        let child = || async {
            let child = place.maps().get("child").await.unwrap();
            child.metadata.deletion_timestamp.map(drop)
        };
        until("the child is being deleted", child).await;
        assert!(place.maps().get_opt("owner").await.unwrap().is_some());
        release(&place, "child").await;
        gone(&place, "child").await;
        gone(&place, "owner").await;
    });
}

#[test]
fn orphans_stay_and_forget_their_owner() {
    test("orphan", |place| async move {
        owned(&place, "child", &place.map("owner").await, &[]).await;
        place
            .maps()
            .delete("owner", &DeleteParams::orphan())
            .await
            .unwrap();
        gone(&place, "owner").await;
        let child = place.maps().get("child").await.unwrap();
        assert!(child.owner_references().is_empty());
        assert!(child.metadata.deletion_timestamp.is_none());
    });
}

#[test]
fn whoever_has_another_owner_stays() {
    test("owners", |place| async move {
        let (one, two) = (place.map("one").await, place.map("two").await);
        owned(&place, "child", &one, &[]).await;
        let owners = json!({"metadata": {"ownerReferences": [reference(&one), reference(&two)]}});
        place
            .maps()
            .patch("child", &PatchParams::default(), &Patch::Merge(owners))
            .await
            .unwrap();
        place
            .maps()
            .delete("one", &DeleteParams::background())
            .await
            .unwrap();
        let forgotten = || async {
            let child = place.maps().get("child").await.unwrap();
            (child.owner_references().len() == 1).then_some(())
        };
        until("the owner that is gone is forgotten", forgotten).await;
        place
            .maps()
            .delete("two", &DeleteParams::background())
            .await
            .unwrap();
        gone(&place, "child").await;
    });
}

#[test]
fn an_owner_of_another_identity_is_no_owner() {
    test("identity", |place| async move {
        let mut owner = place.map("owner").await;
        owner.metadata.uid = Some("5b0c2b54-0000-4000-8000-000000000003".to_owned());
        owned(&place, "child", &owner, &[]).await;
        gone(&place, "child").await;
        assert!(place.maps().get_opt("owner").await.unwrap().is_some());
    });
}

fn reference(owner: &ConfigMap) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(),
        "blockOwnerDeletion": true,
    })
}

async fn owned(place: &Place, name: &str, owner: &ConfigMap, finalizers: &[&str]) {
    let metadata = json!({"ownerReferences": [reference(owner)], "finalizers": finalizers});
    place.map_with(name, metadata).await;
}

async fn release(place: &Place, name: &str) {
    let none = json!({"metadata": {"finalizers": null}});
    place
        .maps()
        .patch(name, &PatchParams::default(), &Patch::Merge(none))
        .await
        .unwrap();
}

async fn gone(place: &Place, name: &str) {
    let absent = || async {
        place
            .maps()
            .get_opt(name)
            .await
            .unwrap()
            .is_none()
            .then_some(())
    };
    until(&format!("{name} is gone"), absent).await;
}
