//! Every example of `examples/seed-000`, applied as it is and looked at with packets. Its namespaces have
//! fixed names, so this is one test; it leaves nothing of them.
#![cfg(feature = "e2e")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod common;

use common::{address, event, interfaces, nad_object, network_object, output_of, pings, ready};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Object, test_cluster};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::path::Path;

const DEFINITION: &str = "CustomResourceDefinition";

/// Interfaces after eth0, with their networks, as the examples' README says.
/// Namespace, name, and each interface with its network.
type Expected = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const PODS: [Expected; 8] = [
    (
        "my-namespace",
        "my-pod",
        &[("net1", "net-a"), ("net2", "net-b"), ("net3", "net-c")],
    ),
    (
        "my-namespace",
        "my-pod-contrail",
        &[("eth1", "network-a"), ("eth2", "network-b")],
    ),
    (
        "default",
        "multi-network-pod",
        &[("net1", "network-a"), ("net2", "network-b")],
    ),
    (
        "default",
        "multi-network-pod-contrail",
        &[("eth1", "network-a"), ("eth2", "network-b")],
    ),
    (
        "my-namespace",
        "short-form",
        &[("net1", "net-a"), ("net2", "net-b")],
    ),
    ("my-namespace", "snat-pod", &[("net1", "snat-network")]),
    ("default", "extns-pod", &[("net1", "extns-network")]),
    (
        "default",
        "extns-pod-contrail",
        &[("eth1", "k8s-extns-pod-network")],
    ),
];

#[test]
fn every_example_works() {
    let kube = test_cluster::shared().expect("a lab");
    let examples = Examples::new(kube);
    examples.remove();
    for text in &examples.texts {
        kube.apply(text).expect("applied as it is");
    }
    let pods = PODS.map(|(namespace, name, _)| Object::pod(namespace, name));
    ready(kube, &pods.iter().collect::<Vec<_>>());
    for (pod, (_, _, expected)) in pods.iter().zip(PODS) {
        let found = interfaces(kube, pod);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(found[0].0, "eth0");
        assert_eq!(&found[1..], expected, "{pod}");
        let links = output_of(
            kube,
            pod,
            "ip -br link | cut -d' ' -f1 | cut -d@ -f1 | sort | xargs",
        );
        assert_eq!(
            links.split_whitespace().count(),
            expected.len() + 2,
            "{links}"
        );
    }
    pods_reach_each_other(kube);
    the_fabric_forwards_and_translates(kube);
    for (namespace, name) in [
        ("default", "network-a"),
        ("my-namespace", "snat-network"),
        ("default", "extns-network"),
    ] {
        event(
            kube,
            &nad_object(namespace, name),
            "ConfigWarning",
            &["typographic quotes"],
        );
    }
}

/// Pods that name the same network in different ways.
fn pods_reach_each_other(kube: &dyn Cluster) {
    let mine = |name: &str| Object::pod("my-namespace", name);
    let default = |name: &str| Object::pod("default", name);
    let pairs = [
        (mine("my-pod"), "net1", mine("short-form"), "net1", false),
        (mine("my-pod"), "net2", mine("short-form"), "net2", false),
        (
            mine("my-pod-contrail"),
            "eth1",
            default("multi-network-pod-contrail"),
            "eth1",
            false,
        ),
        (
            mine("my-pod-contrail"),
            "eth2",
            default("multi-network-pod-contrail"),
            "eth2",
            false,
        ),
        (
            mine("my-pod-contrail"),
            "eth2",
            default("multi-network-pod-contrail"),
            "eth2",
            true,
        ),
        (
            default("extns-pod"),
            "net1",
            default("extns-pod-contrail"),
            "eth1",
            false,
        ),
    ];
    for (from, link, to, other, v6) in pairs {
        let there = address(kube, &to, other, v6);
        assert!(
            pings(kube, &from, &format!("-I {link} {there}")),
            "{from} {link} {there}"
        );
    }
    let multi = default("multi-network-pod");
    assert!(
        pings(kube, &multi, "-I net2 10.1.2.254"),
        "the gateway of network-b"
    );
    assert!(address(kube, &multi, "net2", true).starts_with("fd00:1:2:"));
}

/// network-a is reached from every node; snat-network reaches the outside.
fn the_fabric_forwards_and_translates(kube: &dyn Cluster) {
    let multi = Object::pod("default", "multi-network-pod");
    let there = address(kube, &multi, "net1", false);
    assert!(there.starts_with("10.1.1."), "{there}");
    for node in kube.nodes().expect("nodes") {
        let reached = kube.on_node(&node, &["ping", "-c1", "-W2", &there]);
        assert!(reached.expect("runs").ok(), "{node} {there}");
    }
    let snat = Object::pod("my-namespace", "snat-pod");
    let script =
        "ip route add 203.0.113.1 via 169.254.1.1 dev net1 onlink && ping -c1 -W2 203.0.113.1";
    output_of(kube, &snat, script);
    let plain = Object::pod("my-namespace", "short-form");
    let refused = script.replace("&& ping", "&& ! ping");
    output_of(kube, &plain, &refused);
}

/// The files, and the definition as it was before one of them replaced it.
struct Examples<'a> {
    kube: &'a dyn Cluster,
    texts: Vec<String>,
    definition: Value,
}

impl<'a> Examples<'a> {
    fn new(kube: &'a dyn Cluster) -> Self {
        let dir = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo"))
            .join("../../examples/seed-000");
        let entries = fs::read_dir(dir).expect("the examples");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
        paths.sort();
        let texts = paths
            .iter()
            .map(|path| fs::read_to_string(path).expect("text"));
        let name = "network-attachment-definitions.k8s.cni.cncf.io";
        let object = Object::new("apiextensions.k8s.io/v1", DEFINITION, "", name);
        Examples {
            kube,
            texts: texts.collect(),
            definition: kube.get(&object).expect("asked").expect("is defined"),
        }
    }

    /// Every object in them, except the definition.
    fn objects(&self) -> Vec<Object> {
        let mut all = Vec::new();
        for document in self
            .texts
            .iter()
            .flat_map(|text| serde_yaml_ng::Deserializer::from_str(text))
        {
            let value = Value::deserialize(document).expect("YAML");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let metadata = &value["metadata"];
            let namespace = match text(&metadata["namespace"]) {
                empty if empty.is_empty() => "default".to_owned(),
                namespace => namespace,
            };
            let (version, kind) = (text(&value["apiVersion"]), text(&value["kind"]));
            if kind != DEFINITION {
                all.push(Object::new(
                    &version,
                    &kind,
                    &namespace,
                    &text(&metadata["name"]),
                ));
            }
        }
        // Pods first, namespaces last: so does nothing wait for something else.
        all.reverse();
        all
    }

    fn remove(&self) {
        let objects = self.objects();
        for object in &objects {
            let grace = (object.kind == "Pod").then_some(1);
            self.kube.api().delete(object, grace).expect("deleted");
        }
        for object in &objects {
            self.kube.wait_gone(object, TIMEOUT).expect("gone");
        }
        for (namespace, name) in [("default", "network-a"), ("default", "network-b")] {
            let made = network_object(namespace, name);
            self.kube
                .wait_gone(&made, TIMEOUT)
                .expect("gone with its NAD");
        }
    }
}

impl Drop for Examples<'_> {
    fn drop(&mut self) {
        for object in self.objects() {
            let grace = (object.kind == "Pod").then_some(1);
            if let Err(error) = self.kube.api().delete(&object, grace) {
                eprintln!("{object} stays: {error:#}");
            }
        }
        let mut definition = self.definition.clone();
        if let Some(metadata) = definition["metadata"].as_object_mut() {
            metadata.retain(|key, _| ["name", "annotations", "labels"].contains(&key.as_str()));
        }
        let replaced = self
            .kube
            .kubectl(&["replace", "-f", "-"], &definition.to_string());
        if let Err(error) = replaced.and_then(plexus_kubekit::Output::text) {
            eprintln!("the definition is not as it was: {error:#}");
        }
    }
}
