//! Finalizers: deletion waits for them, and ends with the last.

use crate::place::{refused, test, version};
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

const OURS: &str = "conformance.example/wait";

#[test]
fn deletion_waits_for_the_last_finalizer() {
    test("finalizer", |place| async move {
        let maps = place.maps();
        let made = place.map_with("a", json!({"finalizers": [OURS]})).await;
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
    test("gone", |place| async move {
        let made = place.map("a").await;
        let answer = place
            .maps()
            .delete("a", &DeleteParams::default())
            .await
            .unwrap();
        let status = answer.right().expect("a status, not the object");
        let details = status.details.expect("whom it was about");
        assert_eq!(details.uid, made.uid().unwrap());
        assert!(place.maps().get_opt("a").await.unwrap().is_none());
        assert_ne!(place.map("a").await.uid(), made.uid());
    });
}

#[test]
fn a_dying_object_can_still_be_changed() {
    test("dying", |place| async move {
        place.map_with("a", json!({"finalizers": [OURS]})).await;
        place
            .maps()
            .delete("a", &DeleteParams::default())
            .await
            .unwrap();
        let label = json!({"metadata": {"labels": {"x": "1"}}});
        let patched = place
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
        place
            .maps()
            .patch("a", &PatchParams::default(), &removed)
            .await
            .unwrap();
        assert!(place.maps().get_opt("a").await.unwrap().is_none());
    });
}

#[test]
fn the_finalizer_helper_of_kube_adds_and_removes() {
    use kube::runtime::finalizer::{Event, finalizer};
    use std::sync::Arc;
    test("helper", |place| async move {
        let maps = place.maps();
        let made = Arc::new(place.map("a").await);
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
