//! Descriptions of a pod and of a network, whole.

use super::*;
use serde_json::json;

fn world() -> World {
    let network = json!({
        "metadata": {"name": "blue", "namespace": "team-a", "uid": "uid-blue", "generation": 3},
        "spec": {"subnets": {"a": {"cidr": "10.1.0.0/16", "exclude": ["10.1.0.0/28"]}}, "snat": true,
            "routes": [{"dst": "192.168.0.0/16"}], "allowedNamespaces": {"from": "Same"}},
        "status": {"phase": "Active", "vni": 4097, "observedGeneration": 2, "conditions": [
            {"type": "Ready", "status": "True", "reason": "Active", "message": "pods can use it",
             "lastTransitionTime": "2024-01-01T00:00:00Z"}]},
    });
    let eth0 = json!({"index": 0, "total": 2, "ordinal": 0, "id": "i0", "interface": "eth0",
        "network": {"namespace": "", "name": "cluster-default", "uuid": "cluster-default"},
        "mac": "02:00:00:00:00:01", "ips": ["10.244.1.7/24"], "gateways": ["10.244.1.1"],
        "defaultRoute": ["ipv4"], "state": "Attached"});
    let net1 = json!({"index": 1, "total": 2, "ordinal": 0, "id": "i1", "interface": "net1",
        "network": {"namespace": "team-a", "name": "blue", "uuid": "uid-blue"},
        "mac": "02:00:00:00:00:02", "ips": ["10.1.0.65/16"], "gateways": ["10.1.255.254"],
        "defaultRoute": [], "state": "Attached"});
    World {
        now: 1_704_067_300,
        networks: vec![network],
        nodes: vec![json!({"metadata": {"name": "n1"}, "spec": {"podCIDRs": ["10.244.1.0/24"]}})],
        blocks: vec![
            json!({"spec": {"network": {"uid": "uid-blue"}, "cidr": "10.1.0.64/26",
            "node": "n1"}, "status": {"allocated": 1}}),
        ],
        records: vec![json!({"metadata": {"name": "pod-1", "namespace": "team-a"},
            "spec": {"pod": {"name": "web", "uid": "pod-1"}, "node": "n1"},
            "status": {"sandbox": "5f10", "attachments": [eth0, net1]}})],
        events: vec![
            json!({"type": "Warning", "reason": "Odd", "message": "something",
            "involvedObject": {"kind": "Pod", "name": "web", "namespace": "team-a"},
            "lastTimestamp": "2024-01-01T00:00:00Z"}),
        ],
        ..World::default()
    }
}

fn pod() -> Value {
    json!({"metadata": {"name": "web", "namespace": "team-a", "uid": "pod-1",
            "annotations": {"plexus.dev/networks": "blue"}},
        "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})
}

#[test]
fn a_pod_with_where_everything_came_from() {
    let text = describe_pod(&world(), &pod(), Screen::PIPE);
    for line in [
        "Pod team-a/web\n",
        "  node           n1\n",
        "  asks           plexus.dev/networks: blue\n",
        "  sandbox        5f10\n",
        "\neth0: Attached\n",
        "every pod (the cluster-wide default network, number 0 of 2)",
        "10.244.1.7/24, from podCIDR 10.244.1.0/24 of node n1",
        "  route          169.254.1.1/32\n",
        "default via 169.254.1.1 onlink",
        "\nnet1: Attached\n",
        "annotation plexus.dev/networks (number 1 of 2)",
        "Network team-a/blue, identity uid-blue",
        "  provider       overlay, VNI 4097\n",
        "10.1.0.65/16, subnet a (10.1.0.0/16), block 10.1.0.64/26 of node n1",
        "10.1.0.0/16 via 169.254.1.1 onlink",
        "192.168.0.0/16 via 169.254.1.1 onlink",
        "100s ago: something",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let (_, net1) = text.split_once("net1: Attached").unwrap();
    assert!(!net1.contains("default via"), "{net1}");
}

#[test]
fn a_pod_whose_annotations_name_another_network_now() {
    let mut world = world();
    let mut green = world.networks[0].clone();
    green["metadata"]["name"] = json!("green");
    green["metadata"]["uid"] = json!("uid-green");
    green["spec"]["routes"] = json!([{"dst": "172.16.0.0/12"}]);
    world.networks.push(green);
    let mut pod = pod();
    pod["metadata"]["annotations"]["plexus.dev/networks"] = json!("green");
    let text = describe_pod(&world, &pod, Screen::PIPE);
    let (_, net1) = text.split_once("net1: Attached").unwrap();
    assert!(
        net1.contains("no longer say so: they were edited"),
        "{net1}"
    );
    assert!(
        net1.contains("Network team-a/blue, identity uid-blue"),
        "{net1}"
    );
    assert!(
        !net1.contains("172.16.0.0/12"),
        "a route of another network: {net1}"
    );
}

#[test]
fn a_pod_that_has_nothing_yet() {
    let mut world = world();
    world.records.clear();
    let text = describe_pod(&world, &pod(), Screen::PIPE);
    assert!(text.contains("record     none"), "{text}");
    assert!(
        text.contains("net1: team-a/blue, by plexus.dev/networks"),
        "{text}"
    );
    world.networks.clear();
    let text = describe_pod(&world, &pod(), Screen::PIPE);
    assert!(
        text.contains("plexus explain pod tells what is missing"),
        "{text}"
    );
}

#[test]
fn a_network_with_who_has_it() {
    let world = world();
    let text = describe_network(&world, &world.networks[0], Screen::PIPE);
    for line in [
        "Network team-a/blue\n",
        "Active",
        "VNI",
        "the status is about an earlier spec",
        "overlay (by default)",
        "a: 10.1.0.0/16, gateway 10.1.255.254 (by default), blocks of /26, without 10.1.0.0/28",
        "to the node's address",
        "namespace team-a",
        "True, Active: pods can use it",
        "10.1.0.64/26 of node n1: 1 of 64",
        "team-a/web on node n1: 10.1.0.65/16",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let narrow = Screen {
        colour: true,
        width: Some(60),
    };
    let text = describe_network(&world, &world.networks[0], narrow);
    assert!(text.contains("\x1b[1mNetwork team-a/blue\x1b[0m"));
}
