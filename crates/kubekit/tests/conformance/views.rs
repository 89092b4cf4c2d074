//! The same objects in other forms: as a table with our columns, and as metadata alone.

use crate::test_namespace::test;
use futures::{TryStreamExt, pin_mut};
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[test]
fn our_columns_are_in_the_table() {
    test("table", |ns| async move {
        let block = ns.block("a").await;
        ns.blocks()
            .create(&PostParams::default(), &block)
            .await
            .unwrap();
        let path = "/apis/plexus.dev/v1alpha1/blocks";
        let query = format!("labelSelector=conformance%3D{}", ns.namespace);
        let table = ns.get_as(path, &query, TABLE).await.unwrap();
        assert_eq!(table["kind"], "Table");
        let columns = table["columnDefinitions"].as_array().unwrap();
        let names: Vec<&str> = columns
            .iter()
            .filter_map(|column| column["name"].as_str())
            .collect();
        for wanted in ["Name", "Network", "CIDR", "Node", "Age"] {
            assert!(names.contains(&wanted), "{names:?}");
        }
        let rows = table["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["cells"][0], block.name_any().as_str());
        assert!(
            rows[0]["cells"]
                .as_array()
                .unwrap()
                .contains(&json!("192.0.2.0/28"))
        );
        assert_eq!(rows[0]["object"]["kind"], "PartialObjectMetadata");
    });
}

#[test]
fn metadata_alone() {
    test("metadata", |ns| async move {
        let made = ns.map_with("a", json!({"labels": {"x": "1"}})).await;
        let alone = ns.maps().get_metadata("a").await.unwrap();
        assert_eq!(alone.metadata, made.metadata);
        let path = ns.core("configmaps/a");
        let only = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let raw = ns.get_as(&path, "", only);
        let raw = raw.await.unwrap();
        assert_eq!(raw["kind"], "PartialObjectMetadata");
        assert!(raw.get("data").is_none());
        let list = ns
            .maps()
            .list_metadata(&ListParams::default().labels("x=1"))
            .await
            .unwrap();
        assert_eq!(list.items.len(), 1);
        let patch = Patch::Merge(json!({"metadata": {"labels": {"y": "2"}}}));
        let patched = ns
            .maps()
            .patch_metadata("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
        assert_eq!(patched.labels()["y"], "2");
    });
}

#[test]
fn metadata_alone_can_be_watched() {
    test("watched", |ns| async move {
        let before = ns.map("a").await;
        let from = before.resource_version().unwrap();
        let events = ns
            .maps()
            .watch_metadata(&WatchParams::default().timeout(10), &from)
            .await
            .unwrap();
        pin_mut!(events);
        ns.map("b").await;
        loop {
            match events.try_next().await.unwrap().expect("an event") {
                WatchEvent::Added(map) if map.name_any() == "b" => break,
                WatchEvent::Error(status) => panic!("{status:?}"),
                _ => {}
            }
        }
    });
}
