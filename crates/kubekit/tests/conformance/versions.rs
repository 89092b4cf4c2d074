//! resourceVersion: what changes it, what it guards, and what a list's is for.

use crate::test_namespace::{a_map, refused, test, version};
use kube::ResourceExt;
use kube::api::{DeleteParams, GetParams, ListParams, PostParams, Preconditions};
use serde_json::json;

#[test]
fn whoever_read_an_older_version_is_refused() {
    test("stale", |ns| async move {
        let stale = ns.map("a").await;
        let mut newer = stale.clone();
        newer.labels_mut().insert("x".into(), "1".into());
        ns.maps()
            .replace("a", &PostParams::default(), &newer)
            .await
            .unwrap();
        let message = refused(
            ns.maps().replace("a", &PostParams::default(), &stale).await,
            409,
            "Conflict",
        );
        assert!(message.contains("has been modified"), "{message}");
    });
}

#[test]
fn another_identity_under_the_same_name_is_a_conflict() {
    test("uid", |ns| async move {
        let old = ns.map("a").await;
        ns.maps()
            .delete("a", &DeleteParams::default())
            .await
            .unwrap();
        ns.map("a").await;
        let mut other = old;
        other.metadata.resource_version = None;
        refused(
            ns.maps().replace("a", &PostParams::default(), &other).await,
            409,
            "Conflict",
        );
    });
}

#[test]
fn writing_the_same_again_changes_nothing() {
    test("noop", |ns| async move {
        let made = ns.map("a").await;
        let again = ns
            .maps()
            .replace("a", &PostParams::default(), &made)
            .await
            .unwrap();
        assert_eq!(again.resource_version(), made.resource_version());
    });
}

#[test]
fn a_custom_object_is_replaced_only_by_who_has_read_it() {
    test("blind", |ns| async move {
        let network = serde_json::from_value(ns.network("n")).unwrap();
        ns.networks()
            .create(&PostParams::default(), &network)
            .await
            .unwrap();
        let blind = ns
            .networks()
            .replace("n", &PostParams::default(), &network)
            .await;
        refused(blind, 422, "Invalid");
    });
}

#[test]
fn versions_grow_and_a_list_is_as_new_as_its_items() {
    test("grow", |ns| async move {
        let one = ns.map("a").await;
        let two = ns.map("b").await;
        assert!(version(&two) > version(&one));
        let list = ns.maps().list(&ListParams::default()).await.unwrap();
        let of_list: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
        assert!(of_list >= version(&two));
        let newest = GetParams::at(&two.resource_version().unwrap());
        assert_eq!(ns.maps().get_with("b", &newest).await.unwrap(), two);
        assert_eq!(
            ns.maps()
                .get_with("a", &GetParams::any())
                .await
                .unwrap()
                .name_any(),
            "a"
        );
    });
}

#[test]
fn a_new_object_has_no_version() {
    test("born", |ns| async move {
        let map = a_map("a", json!({"resourceVersion": "1"}));
        let answer = ns.maps().create(&PostParams::default(), &map).await;
        assert!(answer.is_err());
    });
}

#[test]
fn deletion_can_be_made_to_depend() {
    test("guarded", |ns| async move {
        let made = ns.map("a").await;
        let with = |uid: Option<&str>, version: Option<&str>| DeleteParams {
            preconditions: Some(Preconditions {
                uid: uid.map(str::to_owned),
                resource_version: version.map(str::to_owned),
            }),
            ..DeleteParams::default()
        };
        let other = "5b0c2b54-0000-4000-8000-000000000002";
        refused(
            ns.maps().delete("a", &with(Some(other), None)).await,
            409,
            "Conflict",
        );
        refused(
            ns.maps().delete("a", &with(None, Some("1"))).await,
            409,
            "Conflict",
        );
        let (uid, version) = (made.uid().unwrap(), made.resource_version().unwrap());
        ns.maps()
            .delete("a", &with(Some(&uid), Some(&version)))
            .await
            .unwrap();
        assert!(ns.maps().get_opt("a").await.unwrap().is_none());
    });
}
