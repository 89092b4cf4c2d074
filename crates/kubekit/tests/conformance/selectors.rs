//! Which objects a list has, by label and by field.

use crate::test_namespace::{TestNamespace, refused, test};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

#[test]
fn labels_equal_unequal_in_sets_and_existing() {
    test("labels", |ns| async move {
        ns.map_with("a", json!({"labels": {"x": "1", "y": "1"}}))
            .await;
        ns.map_with("b", json!({"labels": {"x": "2"}})).await;
        ns.map_with("c", json!({"labels": {"z": "1"}})).await;
        for (selector, names) in [
            ("x=1", "a"),
            ("x==1,y=1", "a"),
            ("x!=1,mine", ""),
            ("x", "a b"),
            ("!x,z", "c"),
            ("x in (1,2)", "a b"),
            ("x in (2,3)", "b"),
            ("x,x notin (1)", "b"),
            ("x=none", ""),
        ] {
            let list = ListParams::default().labels(selector);
            assert_eq!(names_of(&ns, &list).await, names, "{selector}");
        }
        refused(
            ns.maps().list(&ListParams::default().labels("x in")).await,
            400,
            "BadRequest",
        );
    });
}

#[test]
fn names_and_namespaces_are_fields() {
    test("fields", |ns| async move {
        ns.map("a").await;
        ns.map("b").await;
        let named = ListParams::default().fields("metadata.name=a");
        assert_eq!(names_of(&ns, &named).await, "a");
        let others =
            ListParams::default().fields("metadata.name!=a,metadata.name!=kube-root-ca.crt");
        assert_eq!(names_of(&ns, &others).await, "b");
        let here = format!("metadata.namespace={},metadata.name=b", ns.namespace);
        assert_eq!(
            names_of(&ns, &ListParams::default().fields(&here)).await,
            "b"
        );
        let unknown = ns
            .maps()
            .list(&ListParams::default().fields("data.a=1"))
            .await;
        refused(unknown, 400, "BadRequest");
        let custom = ns
            .networks()
            .list(&ListParams::default().fields("spec.mtu=1"))
            .await;
        refused(custom, 400, "BadRequest");
    });
}

#[test]
fn pods_are_found_by_node() {
    test("node", |ns| async move {
        let pods = ns.core("pods");
        for query in [
            "fieldSelector=spec.nodeName%3Dn1",
            "fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%21%3DFailed",
        ] {
            let list = ns.get_as(&pods, query, "application/json").await.unwrap();
            assert_eq!(list["items"].as_array().map_or(0, Vec::len), 0);
        }
        let unknown = ns
            .get_as(&pods, "fieldSelector=spec.image%3Dx", "application/json")
            .await;
        refused(unknown, 400, "BadRequest");
    });
}

async fn names_of(ns: &TestNamespace, list: &ListParams) -> String {
    let list = ns.maps().list(list).await.unwrap();
    list.iter()
        .map(ResourceExt::name_any)
        .collect::<Vec<_>>()
        .join(" ")
}
