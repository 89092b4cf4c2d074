//! Ports of a node that lead to a pod: as long as the pod is there, from everywhere, both families.

use crate::common;
use crate::stage;
use crate::web::{HttpClient, answer, node_ips, pod, wait_silent};
use plexus_kubekit::cluster::TIMEOUT;
use serde_json::{Value, json};

const PORT: u16 = 18_282;

#[test]
fn a_port_of_the_node_leads_to_the_pod_while_it_is_there() {
    stage!("hostport" => kube, namespace, nodes);
    let ns = namespace.name();
    let first = with_port(ns, "first", &nodes[0]);
    common::apply(kube, &[first, pod(ns, "client", &nodes[1], &[])]);
    let (first, client) = (namespace.pod("first"), namespace.pod("client"));
    common::ready(kube, &[&first, &client]);

    let node = node_ips(kube, &nodes[0]);
    for (address, outside) in node.iter().zip(kube.outside_addresses()) {
        let seen = answer(kube, HttpClient::Outside, address, PORT);
        assert_eq!(
            (seen.name.as_str(), seen.source.as_str()),
            ("first", outside)
        );
        // From a pod elsewhere, from both nodes, and from the pod to itself.
        for asker in [
            HttpClient::Pod(&client),
            HttpClient::Node(&nodes[1]),
            HttpClient::Node(&nodes[0]),
            HttpClient::Pod(&first),
        ] {
            assert_eq!(
                answer(kube, asker, address, PORT).name,
                "first",
                "{asker:?}"
            );
        }
    }
    let here = HttpClient::Node(&nodes[0]);
    assert_eq!(answer(kube, here, "127.0.0.1", PORT).name, "first");
    // Only this node's.
    for address in node_ips(kube, &nodes[1]) {
        wait_silent(kube, HttpClient::Outside, &address, PORT);
    }

    // Who may have a port of a node twice is the scheduler's business: nobody. Then it moves on.
    common::apply(kube, &[with_port(ns, "second", &nodes[0])]);
    let second = namespace.pod("second");
    common::event(kube, &second, "FailedScheduling", &["free ports"]);
    common::gone(kube, &[&first]);
    common::ready(kube, &[&second]);
    for address in &node {
        assert_eq!(
            answer(kube, HttpClient::Outside, address, PORT).name,
            "second"
        );
    }
    common::gone(kube, &[&second]);
    for address in &node {
        wait_silent(kube, HttpClient::Outside, address, PORT);
    }
}

#[test]
fn a_port_may_be_of_one_address_or_udp_but_not_the_tunnels() {
    stage!("udpport" => kube, namespace, nodes);
    let ns = namespace.name();
    let node = node_ips(kube, &nodes[0]);
    let mut both = pod(ns, "both", &nodes[0], &[]);
    both["spec"]["containers"][0]["ports"] = json!([
        {"containerPort": 80, "hostPort": PORT + 1, "hostIP": node[0]},
        {"containerPort": 5353, "hostPort": PORT + 2, "protocol": "UDP"},
    ]);
    let mut greedy = pod(ns, "greedy", &nodes[0], &[]);
    let tunnels = json!([{"containerPort": 80, "hostPort": 4789, "protocol": "UDP"}]);
    greedy["spec"]["containers"][0]["ports"] = tunnels;
    common::apply(kube, &[both, greedy]);
    let (both, greedy) = (namespace.pod("both"), namespace.pod("greedy"));
    common::ready(kube, &[&both]);
    assert_eq!(
        answer(kube, HttpClient::Outside, &node[0], PORT + 1).name,
        "both"
    );
    wait_silent(kube, HttpClient::Outside, &node[1], PORT + 1);

    // Nobody listens there, which the pod counts.
    let count = "awk '/^Udp: [0-9]/ {print $3}' /proc/net/snmp";
    let before = common::output_of(kube, &both, count);
    for port in [PORT + 1, PORT + 2] {
        let send = format!("echo hello > /dev/udp/{}/{port}", node[0]);
        let sent = kube.outside(&["bash", "-c", &send]).expect("runs");
        assert!(sent.ok(), "{sent:?}");
    }
    let arrived = |text: &str| text.trim().parse::<u64>().expect("a number");
    common::holds("the packet is there", TIMEOUT, || {
        arrived(&common::output_of(kube, &both, count)) == arrived(&before) + 1
    });
    common::event(kube, &greedy, "FailedAttach", &["4789/udp"]);
}

/// Scheduled to that node, not bound to it: the scheduler sees to its ports.
fn with_port(namespace: &str, name: &str, node: &str) -> Value {
    let mut pod = pod(namespace, name, node, &[]);
    let spec = &mut pod["spec"];
    spec["nodeName"] = Value::Null;
    spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    spec["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": PORT}]);
    pod
}
