//! Create, read, replace, delete.

use crate::test_namespace::{a_map, refused, test, version};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

#[test]
fn the_server_fills_in_what_is_its_own() {
    test("fill", |ns| async move {
        let metadata =
            json!({"uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z"});
        let made = ns.map_with("a", metadata).await;
        let uid = made.uid().unwrap();
        assert!(uid.len() == 36 && uid != "mine", "{uid}");
        assert!(version(&made) > 0);
        let since = serde_json::to_value(made.creation_timestamp()).unwrap();
        assert!(!since.to_string().contains("2001"), "{since}");
        let read = ns.maps().get("a").await.unwrap();
        assert_eq!(read, made);
        let network = serde_json::from_value(ns.network("n")).unwrap();
        let network = ns
            .networks()
            .create(&PostParams::default(), &network)
            .await
            .unwrap();
        assert_eq!(network.metadata.generation, Some(1));
    });
}

#[test]
fn a_name_is_taken_once() {
    test("taken", |ns| async move {
        ns.map("a").await;
        let again = ns
            .maps()
            .create(&PostParams::default(), &a_map("a", json!({})))
            .await;
        refused(again, 409, "AlreadyExists");
    });
}

#[test]
fn what_is_not_there_is_not_found() {
    test("missing", |ns| async move {
        let maps = ns.maps();
        let message = refused(maps.get("a").await, 404, "NotFound");
        assert!(message.contains("\"a\" not found"), "{message}");
        refused(
            maps.delete("a", &DeleteParams::default()).await,
            404,
            "NotFound",
        );
        assert!(maps.get_opt("a").await.unwrap().is_none());
        let elsewhere: Api<ConfigMap> =
            Api::namespaced(ns.client.clone(), "conf-no-such-namespace");
        let made = elsewhere
            .create(&PostParams::default(), &a_map("a", json!({})))
            .await;
        refused(made, 404, "NotFound");
        assert!(
            elsewhere
                .list(&Default::default())
                .await
                .unwrap()
                .items
                .is_empty()
        );
    });
}

#[test]
fn a_generated_name_begins_as_asked_and_is_new() {
    test("generate", |ns| async move {
        let mut map = a_map("", json!({"generateName": "made-"}));
        map.metadata.name = None;
        let one = ns
            .maps()
            .create(&PostParams::default(), &map)
            .await
            .unwrap();
        let two = ns
            .maps()
            .create(&PostParams::default(), &map)
            .await
            .unwrap();
        assert!(one.name_any().starts_with("made-") && one.name_any().len() == 10);
        assert_ne!(one.name_any(), two.name_any());
    });
}

#[test]
fn replacing_changes_the_whole() {
    test("replace", |ns| async move {
        let made = ns.map_with("a", json!({"labels": {"x": "1"}})).await;
        let mut map = a_map("a", json!({}));
        map.data = Some([("b".to_owned(), "2".to_owned())].into());
        let replaced = ns
            .maps()
            .replace("a", &PostParams::default(), &map)
            .await
            .unwrap();
        assert_eq!(replaced.data, map.data);
        assert!(replaced.labels().is_empty());
        assert_eq!(replaced.uid(), made.uid());
        assert!(version(&replaced) > version(&made));
    });
}

#[test]
fn names_are_checked() {
    test("names", |ns| async move {
        for bad in ["A", "a_b", "-a", "a/b"] {
            let answer = ns
                .maps()
                .create(&PostParams::default(), &a_map(bad, json!({})))
                .await;
            refused(answer, 422, "Invalid");
        }
        let other = ns
            .maps()
            .replace("b", &PostParams::default(), &a_map("a", json!({})))
            .await;
        refused(other, 400, "BadRequest");
    });
}

#[test]
fn a_dry_run_answers_and_leaves_nothing() {
    test("dry", |ns| async move {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let made = ns
            .maps()
            .create(&dry, &a_map("a", json!({})))
            .await
            .unwrap();
        assert!(made.uid().is_some());
        assert!(ns.maps().get_opt("a").await.unwrap().is_none());
        ns.map("b").await;
        let away = DeleteParams {
            dry_run: true,
            ..DeleteParams::default()
        };
        ns.maps().delete("b", &away).await.unwrap();
        assert!(ns.maps().get_opt("b").await.unwrap().is_some());
    });
}
