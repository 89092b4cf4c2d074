//! Below a plugin that calls others one after the other, as CNI-Genie does: each with its own
//! configuration and its own interface, and with no annotation that says which network is meant.

use crate::below::{Networks, nothing_is_recorded};
use crate::common;
use crate::lab::MultusLab;
use plexus_kubekit::{Cluster, Object, multus};
use serde_json::{Value, json};

/// Configurations are called `<number>.<plugin>`; the first one's answer is the answer.
const PROGRAM: &str = r#"#!/bin/sh
cat >/dev/null
number=0
for file in /etc/cni/net.d/sequence.d/*; do
    answer=$(CNI_IFNAME=eth$number "$CNI_PATH/${file##*.}" <"$file") || { echo "$answer"; exit 1; }
    [ $number -gt 0 ] || first=$answer
    number=$((number + 1))
done
echo "$first"
"#;

/// eth1 and eth4 are on one network, eth2 is a macvlan of the reference plugins.
const PLEXUS: [(&str, &str); 3] = [
    ("eth1", "network-b"),
    ("eth3", "network-a"),
    ("eth4", "network-b"),
];

pub(crate) fn check(lab: &MultusLab, networks: &Networks) {
    let kube = &lab.kube;
    let nodes = kube.nodes().expect("nodes");
    for (number, node) in (1..).zip(&nodes) {
        install(lab, node, number);
    }
    let before = lab.all_traces();
    let pods = ["first", "second"].map(|name| Object::pod(&networks.own, name));
    let made: Vec<Value> = pods
        .iter()
        .zip(&nodes)
        .map(|(pod, node)| common::pod(&pod.namespace, &pod.name, node, &[]))
        .collect();
    common::apply(kube, &made);
    let [first, second] = &pods;
    common::ready(kube, &[first, second]);
    for pod in &pods {
        common::holds(
            "a complete record",
            plexus_kubekit::cluster::TIMEOUT,
            || common::attachments(kube, pod).len() == PLEXUS.len(),
        );
        let mut interfaces = common::interfaces(kube, pod);
        interfaces.sort();
        assert_eq!(
            interfaces,
            PLEXUS.map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
    }
    for (interface, _) in PLEXUS {
        let to = common::address(kube, second, interface, false);
        assert!(
            common::pings(kube, first, &format!("-I {interface} {to}")),
            "{to} by {interface}"
        );
    }
    assert!(common::pings(kube, first, "-I eth2 10.9.0.12"));
    let seen = kube.get(second).expect("asked").expect("is there");
    let default = seen["status"]["podIP"].as_str().expect("an address");
    assert!(common::pings(kube, first, default), "{default}");
    assert!(!seen.to_string().contains("network-status"), "{seen}");
    common::gone(kube, &[first, second]);
    nothing_is_recorded(lab, networks);
    lab.wait_traces(&before);
}

fn install(lab: &MultusLab, node: &str, number: u8) {
    let list = lab.default_network(node);
    let mut bridge = list["plugins"][0].clone();
    bridge["cniVersion"] = json!("1.0.0");
    bridge["name"] = list["name"].clone();
    let plexus = |name: &str| json!({"cniVersion": "1.0.0", "name": name, "type": "plexus-cni"});
    let macvlan = json!({
        "cniVersion": "1.0.0", "name": "wire", "type": "macvlan", "master": "eth1",
        "ipam": {"type": "static", "addresses": [{"address": format!("10.9.0.{}/24", number + 10)}]},
    });
    let calls = [
        bridge,
        plexus("network-b"),
        macvlan,
        plexus("network-a"),
        plexus("network-b"),
    ];
    let mut script =
        "mkdir -p /etc/cni/net.d/sequence.d; cd /etc/cni/net.d/sequence.d\n".to_owned();
    for (index, call) in calls.iter().enumerate() {
        let plugin = call["type"].as_str().expect("a plugin");
        script.push_str(&format!("echo '{call}' >{index}.{plugin}\n"));
    }
    script.push_str(&format!(
        "cat >/opt/cni/bin/sequence <<'END'\n{PROGRAM}END\nchmod 755 /opt/cni/bin/sequence"
    ));
    lab.on(node, &script);
    let configuration = json!({"cniVersion": "1.0.0", "name": "sequence", "type": "sequence"});
    multus::put_first(lab.kube.lab(), node, &configuration).expect("the sequence in use");
}
