//! Which objects a list has, by label and by field.

use crate::place::{Place, refused, test};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

#[test]
fn labels_equal_unequal_in_sets_and_existing() {
    test("labels", |place| async move {
        place
            .map_with("a", json!({"labels": {"x": "1", "y": "1"}}))
            .await;
        place.map_with("b", json!({"labels": {"x": "2"}})).await;
        place.map_with("c", json!({"labels": {"z": "1"}})).await;
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
            assert_eq!(names_of(&place, &list).await, names, "{selector}");
        }
        refused(
            place
                .maps()
                .list(&ListParams::default().labels("x in"))
                .await,
            400,
            "BadRequest",
        );
    });
}

#[test]
fn names_and_namespaces_are_fields() {
    test("fields", |place| async move {
        place.map("a").await;
        place.map("b").await;
        let named = ListParams::default().fields("metadata.name=a");
        assert_eq!(names_of(&place, &named).await, "a");
        let others =
            ListParams::default().fields("metadata.name!=a,metadata.name!=kube-root-ca.crt");
        assert_eq!(names_of(&place, &others).await, "b");
        let here = format!("metadata.namespace={},metadata.name=b", place.namespace);
        assert_eq!(
            names_of(&place, &ListParams::default().fields(&here)).await,
            "b"
        );
        let unknown = place
            .maps()
            .list(&ListParams::default().fields("data.a=1"))
            .await;
        refused(unknown, 400, "BadRequest");
        let custom = place
            .networks()
            .list(&ListParams::default().fields("spec.mtu=1"))
            .await;
        refused(custom, 400, "BadRequest");
    });
}

#[test]
fn pods_are_found_by_node() {
    test("node", |place| async move {
        let pods = place.core("pods");
        for query in [
            "fieldSelector=spec.nodeName%3Dn1",
            "fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%21%3DFailed",
        ] {
            let list = place
                .get_as(&pods, query, "application/json")
                .await
                .unwrap();
            assert_eq!(list["items"].as_array().map_or(0, Vec::len), 0);
        }
        let unknown = place
            .get_as(&pods, "fieldSelector=spec.image%3Dx", "application/json")
            .await;
        refused(unknown, 400, "BadRequest");
    });
}

async fn names_of(place: &Place, list: &ListParams) -> String {
    let list = place.maps().list(list).await.unwrap();
    list.iter()
        .map(ResourceExt::name_any)
        .collect::<Vec<_>>()
        .join(" ")
}
