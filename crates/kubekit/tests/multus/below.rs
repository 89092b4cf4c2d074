//! A pod on each node with five networks by Multus: Plexus, the reference `macvlan`, Plexus again, a
//! namesake of another namespace, and one network a second time.

use crate::lab::MultusLab;
use crate::{alone, common};
use ipnet::IpNet;
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::multus::Flavour;
use plexus_kubekit::{Cluster, Object};
use serde_json::{Value, json};
use std::path::Path;

/// The interfaces that are Plexus's, which network each must be on, and from which subnet.
const PLEXUS: [(&str, &str, &str); 4] = [
    ("net1", "network-a", "10.1.1.0/24"),
    ("net3", "network-b", "10.1.2.0/24"),
    ("net4", "network-b", "10.7.2.0/24"),
    ("again", "network-b", "10.1.2.0/24"),
];

/// The namespaces and their networks. The namespaces go with the lab.
pub(crate) struct Networks {
    pub(crate) own: String,
    pub(crate) other: String,
}

impl Networks {
    /// `network-a` is the seed's, routed; `network-b` is there in both namespaces, isolated; `wire` is
    /// a macvlan of the reference plugins.
    pub(crate) fn make(lab: &MultusLab) -> Self {
        let (own, other) = ("plug-own", "plug-other");
        let macvlan = json!({
            "cniVersion": "1.0.0", "type": "macvlan", "master": "eth1",
            "capabilities": {"ips": true}, "ipam": {"type": "static"},
        });
        let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        common::apply(
            &lab.kube,
            &[
                namespace(own),
                namespace(other),
                seed_network(own),
                common::contrail_nad(own, "network-b", r#"["10.1.2.0/24", "fd00:1:2::/64"]"#, &[]),
                common::contrail_nad(other, "network-b", r#"["10.7.2.0/24"]"#, &[]),
                common::nad(own, "wire", &[], &macvlan.to_string()),
            ],
        );
        for (namespace, name) in [(own, "network-a"), (own, "network-b"), (other, "network-b")] {
            let network = common::network_object(namespace, name);
            let active = |seen: &Value| seen["status"]["phase"] == "Active";
            let waited = lab.kube.wait_for(&network, TIMEOUT, &active);
            waited.expect("a network for the NAD");
        }
        Self {
            own: own.to_owned(),
            other: other.to_owned(),
        }
    }
}

/// Two pods come, talk on every network, and go.
pub(crate) fn check(lab: &MultusLab, networks: &Networks, flavour: Flavour) {
    let kube = &lab.kube;
    let before = lab.all_traces();
    let pods = ["left", "right"].map(|name| Object::pod(&networks.own, name));
    let nodes = kube.nodes().expect("nodes");
    let made: Vec<Value> = (1..)
        .zip(pods.iter().zip(&nodes))
        .map(|(number, (pod, node))| {
            let asked = selections(networks, number).to_string();
            common::pod(
                &pod.namespace,
                &pod.name,
                node,
                &[(common::NETWORKS, &asked)],
            )
        })
        .collect();
    common::apply(kube, &made);
    common::ready(kube, &[&pods[0], &pods[1]]);
    for pod in &pods {
        has_the_right_networks(lab, networks, pod);
        status_is_multus(lab, networks, pod, flavour);
    }
    let [left, right] = &pods;
    everybody_talks(lab, left, right);
    alone::check(lab, networks, left, right);
    common::gone(kube, &[left, right]);
    nothing_is_recorded(lab, networks);
    lab.wait_traces(&before);
}

/// No attachment of the namespace is recorded, and its networks have given no address.
pub(crate) fn nothing_is_recorded(lab: &MultusLab, networks: &Networks) {
    let kube = &lab.kube;
    common::holds("no record", TIMEOUT, || {
        let left = kube.list("plexus.dev/v1alpha1", "PodAttachments", &networks.own);
        left.is_ok_and(|left| left.is_empty())
    });
    common::holds("no address in use", TIMEOUT, || {
        let blocks = kube.list("plexus.dev/v1alpha1", "Block", "");
        let unused = |block: &Value| block["status"]["allocated"].as_u64().unwrap_or(0) == 0;
        blocks.is_ok_and(|blocks| blocks.iter().all(unused))
    });
}

/// As the document has it, but for the quotes: Multus refuses the others before it calls anybody.
fn seed_network(namespace: &str) -> Value {
    let path = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo"))
        .join("../../examples/seed-000/21-network-a.yaml");
    let text = std::fs::read_to_string(path).expect("the example");
    let text = text.replace(['\u{201c}', '\u{201d}'], "\"");
    let mut nad: Value = serde_yaml_ng::from_str(&text).expect("YAML");
    nad["metadata"]["namespace"] = json!(namespace);
    assert_eq!(nad["metadata"]["name"], "network-a");
    nad
}

fn selections(networks: &Networks, number: u8) -> Value {
    json!([
        {"name": "network-a"},
        {"name": "wire", "ips": [format!("10.9.0.{number}/24")]},
        {"name": "network-b"},
        {"name": "network-b", "namespace": networks.other},
        {"name": "network-b", "interface": "again"},
    ])
}

/// The record has all of Plexus's and nothing else, each on its network, by address too.
fn has_the_right_networks(lab: &MultusLab, networks: &Networks, pod: &Object) {
    common::holds("a complete record", TIMEOUT, || {
        common::attachments(&lab.kube, pod).len() >= PLEXUS.len()
    });
    let recorded = common::attachments(&lab.kube, pod);
    assert_eq!(recorded.len(), PLEXUS.len(), "{recorded:?}");
    for (interface, network, subnet) in PLEXUS {
        let one = recorded.iter().find(|one| one["interface"] == interface);
        let one = one.unwrap_or_else(|| panic!("no {interface}: {recorded:?}"));
        let namespace = if interface == "net4" {
            &networks.other
        } else {
            &networks.own
        };
        assert_eq!(one["network"]["namespace"], namespace.as_str(), "{one}");
        assert_eq!(one["network"]["name"], network, "{one}");
        assert_eq!(one["state"], "Attached", "{one}");
        let address = common::address(&lab.kube, pod, interface, false);
        let subnet: IpNet = subnet.parse().expect("a subnet");
        assert!(
            subnet.contains(&address.parse::<std::net::IpAddr>().expect("an address")),
            "{one}"
        );
        let printed =
            common::output_of(&lab.kube, pod, &format!("ip -o addr show dev {interface}"));
        assert!(printed.contains(&format!(" {address}/")), "{printed}");
    }
}

/// Multus says what the pod has got; Plexus has written nothing to the pod.
fn status_is_multus(lab: &MultusLab, networks: &Networks, pod: &Object, flavour: Flavour) {
    let seen = lab.kube.get(pod).expect("asked").expect("is there");
    let text = seen["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"].as_str();
    let status: Vec<Value> = serde_json::from_str(text.expect("a status")).expect("JSON");
    let own = |name: &str| format!("{}/{name}", networks.own);
    let expected = [
        ("bridge".to_owned(), "eth0"),
        (own("network-a"), "net1"),
        (own("wire"), "net2"),
        (own("network-b"), "net3"),
        (format!("{}/network-b", networks.other), "net4"),
        (own("network-b"), "again"),
    ];
    let named: Vec<(String, &str)> = status
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or_default();
            (text("name").to_owned(), text("interface"))
        })
        .collect();
    assert_eq!(named, expected, "{status:?}");
    for recorded in common::attachments(&lab.kube, pod) {
        let one = status
            .iter()
            .find(|one| one["interface"] == recorded["interface"]);
        let one = one.expect("in the status");
        assert_eq!(one["mac"], recorded["mac"]);
        let bare = |ip: &Value| {
            ip.as_str()
                .and_then(|ip| ip.split('/').next())
                .map(str::to_owned)
        };
        let ips = |value: &Value| -> Vec<_> {
            value["ips"]
                .as_array()
                .into_iter()
                .flatten()
                .map(bare)
                .collect()
        };
        assert_eq!(ips(one), ips(&recorded));
    }
    let managers = seen["metadata"]["managedFields"]
        .as_array()
        .expect("managers");
    let writers: Vec<&str> = managers
        .iter()
        .filter(|entry| entry.to_string().contains("network-status"))
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    let writer = match flavour {
        Flavour::Thin => "multus",
        Flavour::Thick => "multus-daemon",
    };
    assert_eq!(writers, [writer], "{managers:?}");
}

/// Packets on every interface, to the same interface of the other pod, across nodes; none to a
/// network of another.
fn everybody_talks(lab: &MultusLab, left: &Object, right: &Object) {
    let kube = &lab.kube;
    for (interface, ..) in PLEXUS {
        let to = common::address(kube, right, interface, false);
        assert!(
            common::pings(kube, left, &format!("-I {interface} {to}")),
            "{left} to {to} by {interface}"
        );
    }
    let to = common::address(kube, right, "net3", true);
    assert!(common::pings(kube, left, &format!("-I net3 {to}")), "{to}");
    for wire in ["-I net2 10.9.0.2", "10.9.0.2"] {
        assert!(common::pings(kube, left, wire), "{wire}");
    }
    let namesake = common::address(kube, right, "net4", false);
    assert!(common::silent(kube, left, &format!("-I net3 {namesake}")));
    let of_pod = kube.get(right).expect("asked").expect("is there");
    let default = of_pod["status"]["podIP"].as_str().expect("an address");
    assert!(common::pings(kube, left, default), "{default}");
}
