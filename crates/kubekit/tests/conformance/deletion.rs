//! Finalizers: deletion waits for them, and ends with the last.

use crate::test_namespace::{refused, test, version};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

const OURS: &str = "conformance.example/wait";

#[test]
fn deletion_waits_for_the_last_finalizer() {
    test("finalizer", |ns| async move {
        let maps = ns.maps();
        let made = ns.map_with("a", json!({"finalizers": [OURS]})).await;
        let answer = maps.delete("a", &DeleteParams::default()).await.unwrap();
        let dying = answer.left().expect("the object, not a status");
        assert!(dying.metadata.deletion_timestamp.is_some());
        assert!(version(&dying) > version(&made));
        let still = maps.get("a").await.unwrap();
        assert_eq!(still.finalizers(), [OURS]);

        let again = maps.delete("a", &DeleteParams::default()).await.unwrap();
        assert!(again.left().is_some(), "deleting twice is fine");
        let more = json!({"metadata": {"finalizers": [OURS, "conformance.example/more"]}});
        let more = maps
            .patch("a", &PatchParams::default(), &Patch::Merge(more))
            .await;
        refused(more, 422, "Invalid");

        let none = json!({"metadata": {"finalizers": null}});
        maps.patch("a", &PatchParams::default(), &Patch::Merge(none))
            .await
            .unwrap();
        assert!(maps.get_opt("a").await.unwrap().is_none());
    });
}

#[test]
fn without_finalizers_it_is_gone_at_once() {
    test("gone", |ns| async move {
        let made = ns.map("a").await;
        let answer = ns
            .maps()
            .delete("a", &DeleteParams::default())
            .await
            .unwrap();
        let status = answer.right().expect("a status, not the object");
        let details = status.details.expect("whom it was about");
        assert_eq!(details.uid, made.uid().unwrap());
        assert!(ns.maps().get_opt("a").await.unwrap().is_none());
        assert_ne!(ns.map("a").await.uid(), made.uid());
    });
}

#[test]
fn a_dying_object_can_still_be_changed() {
    test("dying", |ns| async move {
        ns.map_with("a", json!({"finalizers": [OURS]})).await;
        ns.maps()
            .delete("a", &DeleteParams::default())
            .await
            .unwrap();
        let label = json!({"metadata": {"labels": {"x": "1"}}});
        let patched = ns
            .maps()
            .patch("a", &PatchParams::default(), &Patch::Merge(label))
            .await
            .unwrap();
        assert!(patched.metadata.deletion_timestamp.is_some());
        let none = json!([
            {"op": "test", "path": "/metadata/finalizers/0", "value": OURS},
            {"op": "remove", "path": "/metadata/finalizers/0"},
        ]);
        let removed = Patch::Json::<()>(serde_json::from_value(none).unwrap());
        ns.maps()
            .patch("a", &PatchParams::default(), &removed)
            .await
            .unwrap();
        assert!(ns.maps().get_opt("a").await.unwrap().is_none());
    });
}

#[test]
fn the_finalizer_helper_of_kube_adds_and_removes() {
    use kube::runtime::finalizer::{Event, finalizer};
    use std::sync::Arc;
    test("helper", |ns| async move {
        let maps = ns.maps();
        let made = Arc::new(ns.map("a").await);
        let done = finalizer(&maps, OURS, made, |event| async move {
            match event {
                Event::Apply(_) => Ok(kube::runtime::controller::Action::await_change()),
                Event::Cleanup(_) => Err(std::io::Error::other("not yet")),
            }
        });
        done.await.unwrap();
        assert_eq!(maps.get("a").await.unwrap().finalizers(), [OURS]);
        maps.delete("a", &DeleteParams::default()).await.unwrap();
        let dying = Arc::new(maps.get("a").await.unwrap());
        let done = finalizer(&maps, OURS, dying, |_| async {
            Ok::<_, std::io::Error>(kube::runtime::controller::Action::await_change())
        });
        done.await.unwrap();
        assert!(maps.get_opt("a").await.unwrap().is_none());
    });
}
