//! Discovery in both forms, as clients read it.

use super::{AGGREGATED, Discovery, preference};
use crate::kinds::Kinds;
use serde_json::{Value, json};

const KUBECTL: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

fn discovery() -> Discovery {
    Discovery::new(&Kinds::builtin().unwrap())
}

fn read(discovery: &Discovery, path: &str, accept: Option<&str>) -> Value {
    serde_json::from_slice(&discovery.page(path, accept).unwrap().body).unwrap()
}

#[test]
fn the_aggregated_form_names_itself_in_its_type() {
    let discovery = discovery();
    for path in ["/api", "/apis", "/apis/"] {
        assert_eq!(
            discovery.page(path, Some(KUBECTL)).unwrap().content_type,
            AGGREGATED
        );
        assert_eq!(
            read(&discovery, path, Some(KUBECTL))["kind"],
            "APIGroupDiscoveryList"
        );
    }
    for accept in [
        None,
        Some("application/json"),
        Some("*/*"),
        Some(
            "application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        ),
    ] {
        assert_eq!(
            discovery.page("/apis", accept).unwrap().content_type,
            "application/json"
        );
    }
    let beta = Some(
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
    );
    assert_eq!(read(&discovery, "/apis", beta)["kind"], "APIGroupList");
    let turned =
        Some("application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io;q=0.9");
    assert_eq!(
        discovery.page("/api", turned).unwrap().content_type,
        AGGREGATED
    );
}

#[test]
fn a_resource_has_all_that_kubectl_reads() {
    let core = read(&discovery(), "/api", Some(KUBECTL));
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    let resources = core["items"][0]["versions"][0]["resources"]
        .as_array()
        .unwrap();
    let pods = resources
        .iter()
        .find(|one| one["resource"] == "pods")
        .unwrap();
    assert_eq!(
        pods["responseKind"],
        json!({"group": "", "version": "v1", "kind": "Pod"})
    );
    assert_eq!(
        (&pods["scope"], &pods["singularResource"]),
        (&json!("Namespaced"), &json!("pod"))
    );
    assert_eq!(
        (&pods["shortNames"], &pods["categories"]),
        (&json!(["po"]), &json!(["all"]))
    );
    assert_eq!(pods["subresources"][0]["subresource"], "status");
    assert!(pods["verbs"].as_array().unwrap().contains(&json!("watch")));
    let others = read(&discovery(), "/apis", Some(KUBECTL));
    let groups = others["items"].as_array().unwrap();
    let reviews = groups
        .iter()
        .find(|one| one["metadata"]["name"] == "authorization.k8s.io");
    assert_eq!(
        reviews.unwrap()["versions"][0]["resources"][0]["verbs"],
        json!(["create"])
    );
    for group in groups {
        for version in group["versions"].as_array().unwrap() {
            assert!(
                !version["resources"].as_array().unwrap().is_empty(),
                "{group}"
            );
        }
    }
}

#[test]
fn the_older_form_has_a_page_for_every_version() {
    let discovery = discovery();
    assert_eq!(read(&discovery, "/api", None)["versions"], json!(["v1"]));
    let groups = read(&discovery, "/apis", None);
    for group in groups["groups"].as_array().unwrap() {
        let name = group["name"].as_str().unwrap();
        assert_eq!(
            read(&discovery, &format!("/apis/{name}"), None)["kind"],
            "APIGroup"
        );
        for version in group["versions"].as_array().unwrap() {
            let version = version["groupVersion"].as_str().unwrap();
            let list = read(&discovery, &format!("/apis/{version}"), None);
            assert_eq!(list["kind"], "APIResourceList");
            assert_eq!(list["groupVersion"], version);
            assert!(!list["resources"].as_array().unwrap().is_empty());
        }
    }
    let core = read(&discovery, "/api/v1", Some(KUBECTL));
    let names: Vec<&str> = core["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(
        names.contains(&"pods") && names.contains(&"pods/status"),
        "{names:?}"
    );
    assert!(discovery.page("/apis/none", None).is_none());
    assert!(discovery.page("/", None).is_none());
}

#[test]
fn the_stable_version_is_preferred() {
    let mut versions = [
        "v1alpha1", "foo", "v1", "v2beta1", "v10", "v1beta2", "v1beta10", "bar",
    ];
    versions.sort_by(|a, b| preference(a, b));
    let expected = [
        "v10", "v1", "v2beta1", "v1beta10", "v1beta2", "v1alpha1", "bar", "foo",
    ];
    assert_eq!(versions, expected);
}
