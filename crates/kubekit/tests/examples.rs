//! The examples parse as kubectl parses them, say what their documents say, and every network that
//! one of their pods names is there.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

use plexus_api::nad::{self, Contrail};
use plexus_api::objects::NetworkSpec;
use plexus_api::pod::{CONTRAIL_NETWORK, NETWORKS, contrail_networks, networks};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// `(kind, namespace, name)`.
type Key = (String, String, String);

fn seed_000() -> BTreeMap<Key, Value> {
    let dir = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default())
        .join("../../examples/seed-000");
    let mut objects = BTreeMap::new();
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        assert!(
            path.extension().is_some_and(|ending| ending == "yaml"),
            "{path:?}"
        );
        let text = fs::read_to_string(&path).unwrap();
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            let object = Value::deserialize(document).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            let key = key(&object);
            assert!(
                objects.insert(key.clone(), object).is_none(),
                "{key:?} twice"
            );
        }
    }
    objects
}

fn key(object: &Value) -> Key {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    assert!(object["apiVersion"].is_string(), "{object}");
    let namespace = match text(&metadata["namespace"]) {
        empty if empty.is_empty() => "default".to_owned(),
        namespace => namespace,
    };
    (text(&object["kind"]), namespace, text(&metadata["name"]))
}

fn find<'a>(
    objects: &'a BTreeMap<Key, Value>,
    kind: &str,
    namespace: &str,
    name: &str,
) -> &'a Value {
    let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
    objects.get(&key).unwrap_or_else(|| panic!("no {key:?}"))
}

/// All values must be texts: an API server takes nothing else.
fn annotations(object: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap_or_default()
}

#[test]
fn names_are_legal_and_namespaces_are_there() {
    let objects = seed_000();
    for (kind, namespace, name) in objects.keys() {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        assert!(name.chars().all(legal), "{kind} {name}");
        if namespace != "default" {
            find(&objects, "Namespace", "default", namespace);
        }
    }
}

#[test]
fn annotations_are_texts() {
    for (key, object) in seed_000() {
        for (name, value) in object["metadata"]["annotations"]
            .as_object()
            .into_iter()
            .flatten()
        {
            assert!(value.is_string(), "{key:?}: {name}: {value}");
        }
    }
}

#[test]
fn the_definition_is_the_documents() {
    let objects = seed_000();
    let name = "network-attachment-definitions.k8s.cni.cncf.io";
    let spec = &find(&objects, "CustomResourceDefinition", "default", name)["spec"];
    assert_eq!(spec["group"], "k8s.cni.cncf.io");
    assert_eq!(spec["scope"], "Namespaced");
    assert_eq!(spec["names"]["plural"], "network-attachment-definitions");
    assert_eq!(spec["names"]["singular"], "network-attachment-definition");
    assert_eq!(spec["names"]["kind"], "NetworkAttachmentDefinition");
    assert_eq!(spec["names"]["shortNames"][0], "net-attach-def");
    let version = &spec["versions"][0];
    assert_eq!(version["name"], "v1");
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(
        schema["properties"]["spec"]["properties"]["config"]["type"],
        "string"
    );
}

#[test]
fn the_nads_say_what_the_document_says() {
    let objects = seed_000();
    let nad = |namespace, name| find(&objects, "NetworkAttachmentDefinition", namespace, name);
    let network_a = nad("default", "network-a");
    assert_eq!(annotations(network_a)[nad::CIDR], "['10.1.1.0/24']");
    let contrail = Contrail::read(&annotations(network_a)).unwrap();
    assert_eq!(contrail.cidrs, ["10.1.1.0/24".parse().unwrap()]);
    assert!(contrail.forwarding && !contrail.snat);
    let template = Contrail::read(&annotations(nad("my-namespace", "snat-network"))).unwrap();
    assert!(template.snat && !template.forwarding && template.cidrs.len() == 1);
    for (name, version) in [("network-a", "0.3.0"), ("extns-network", "0.3.1")] {
        let text = nad("default", name)["spec"]["config"].as_str().unwrap();
        assert!(text.contains('\u{201c}'), "the original's quotes: {text}");
        let (config, warnings) = nad::config(text).unwrap();
        assert_eq!(config["type"], "contrail-k8s-cni");
        assert_eq!(config["cniVersion"], version);
        assert!(
            nad::is_named(&config) && warnings.len() == 1,
            "{warnings:?}"
        );
    }
}

#[test]
fn every_network_of_every_pod_is_there() {
    let objects = seed_000();
    let mut interfaces = BTreeMap::new();
    for ((kind, namespace, name), pod) in &objects {
        if kind != "Pod" {
            continue;
        }
        let annotations = annotations(pod);
        let mut count = 0;
        for selection in annotations
            .get(NETWORKS)
            .map_or(vec![], |a| networks(a, namespace).unwrap())
        {
            let nad = find(
                &objects,
                "NetworkAttachmentDefinition",
                &selection.namespace,
                &selection.name,
            );
            let contrail = Contrail::read(&self::annotations(nad)).unwrap();
            match contrail.network {
                Some(fq_name) => drop(find(&objects, "Network", &fq_name.project, &fq_name.name)),
                None => assert!(!contrail.cidrs.is_empty(), "{nad}"),
            }
            count += 1;
        }
        for fq_name in annotations
            .get(CONTRAIL_NETWORK)
            .map_or(vec![], |a| contrail_networks(a).unwrap())
        {
            find(&objects, "Network", &fq_name.project, &fq_name.name);
            count += 1;
        }
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["image"], "busybox", "{name}");
        interfaces.insert(format!("{namespace}/{name}"), count);
    }
    let expected = [
        ("default/extns-pod", 1),
        ("default/extns-pod-contrail", 1),
        ("default/multi-network-pod", 2),
        ("default/multi-network-pod-contrail", 2),
        ("my-namespace/my-pod", 3),
        ("my-namespace/my-pod-contrail", 2),
        ("my-namespace/short-form", 2),
        ("my-namespace/snat-pod", 1),
    ];
    let expected = expected.map(|(pod, count)| (pod.to_owned(), count));
    assert_eq!(interfaces, BTreeMap::from(expected));
}

#[test]
fn networks_are_valid_and_no_two_subnets_meet() {
    let objects = seed_000();
    let mut seen = BTreeSet::new();
    let mut subnets = Vec::new();
    for ((kind, namespace, name), object) in &objects {
        let spec: NetworkSpec = match kind.as_str() {
            "Network" => serde_json::from_value(object["spec"].clone()).unwrap(),
            "NetworkAttachmentDefinition" => Contrail::read(&annotations(object)).unwrap().spec(),
            _ => continue,
        };
        let problems = spec.problems();
        let refers = spec.subnets.is_empty() && kind != "Network";
        assert!(refers || problems.0.is_empty(), "{name}: {problems:?}");
        seen.insert(format!("{kind} {namespace}/{name}"));
        subnets.extend(spec.subnets.values().map(|subnet| subnet.cidr));
    }
    assert!(seen.len() >= 9, "{seen:?}");
    for (i, one) in subnets.iter().enumerate() {
        for other in &subnets[i + 1..] {
            assert!(
                !one.contains(other) && !other.contains(one),
                "{one} {other}"
            );
        }
    }
}
