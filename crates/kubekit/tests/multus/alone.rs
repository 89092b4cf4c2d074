//! (container id, network, interface) is the attachment: one call, made as Multus makes it, concerns
//! one interface and leaves the others alone.

use crate::below::Networks;
use crate::common;
use crate::lab::MultusLab;
use plexus_kubekit::{Cluster, Object, Output};
use serde_json::{Value, json};
use std::time::Duration;

/// One of the left pod's two interfaces on a network goes and returns.
pub(crate) fn check(lab: &MultusLab, networks: &Networks, left: &Object, right: &Object) {
    let kube = &lab.kube;
    let timeout = Duration::from_secs(30);
    let record = || common::interfaces(kube, left);
    let before = record();
    let to = common::address(kube, right, "net3", false);

    // Of a network that has no such interface: nothing.
    let other = call(lab, left, "DEL", "again", "network-a");
    let still = common::output_of(
        kube,
        left,
        "ip -o link show dev again; ip -o link show dev net1",
    );
    assert_eq!(still.lines().count(), 2, "{other:?} {still}");

    call(lab, left, "DEL", "again", "network-b")
        .text()
        .expect("DEL");
    let links = common::output_of(kube, left, "ls /sys/class/net 2>/dev/null; ip -o link");
    assert!(!links.contains("again"), "{links}");
    common::holds("three in the record", timeout, || {
        record() == before[..before.len() - 1]
    });
    for address in [to.as_str(), &common::address(kube, right, "net4", false)] {
        assert!(common::pings(kube, left, address), "{address}");
    }
    // Nothing is there any more: fine.
    call(lab, left, "DEL", "again", "network-b")
        .text()
        .expect("DEL");

    let text = call(lab, left, "ADD", "again", "network-b")
        .text()
        .expect("ADD");
    let result: Value = serde_json::from_str(&text).expect("a result");
    assert_eq!(result["ips"].as_array().map(Vec::len), Some(2), "{result}");
    common::holds("four in the record", timeout, || record() == before);
    let repeated = call(lab, left, "ADD", "again", "network-b")
        .text()
        .expect("ADD again");
    assert_eq!(text, repeated, "the same answer");
    assert!(common::pings(kube, left, &format!("-I again {to}")), "{to}");
    let namespaces = common::attachments(kube, left);
    let own = namespaces
        .iter()
        .filter(|one| one["network"]["namespace"] == networks.own.as_str());
    assert_eq!(own.count(), 3, "{namespaces:?}");
}

/// Calls Plexus by the seed's name of it, as Multus does.
fn call(lab: &MultusLab, pod: &Object, verb: &str, interface: &str, network: &str) -> Output {
    let kube = &lab.kube;
    let seen = kube.get(pod).expect("asked").expect("is there");
    let uid = seen["metadata"]["uid"].as_str().expect("a UID");
    let sandbox = kube.sandbox(pod).expect("a sandbox");
    let netns = kube.netns(pod).expect("a namespace");
    let config = json!({"cniVersion": "0.3.1", "name": network, "type": "contrail-k8s-cni"});
    let arguments = format!(
        "IgnoreUnknown=1;K8S_POD_NAMESPACE={};K8S_POD_NAME={};K8S_POD_INFRA_CONTAINER_ID={sandbox};K8S_POD_UID={uid}",
        pod.namespace, pod.name
    );
    let script = format!(
        "echo '{config}' | CNI_COMMAND={verb} CNI_CONTAINERID={sandbox} CNI_NETNS={netns} CNI_IFNAME={interface} \
         CNI_PATH=/opt/cni/bin CNI_ARGS='{arguments}' /opt/cni/bin/contrail-k8s-cni"
    );
    let node = kube.node_of(pod).expect("a node");
    kube.on_node(&node, &["sh", "-c", &script])
        .expect("it runs")
}
