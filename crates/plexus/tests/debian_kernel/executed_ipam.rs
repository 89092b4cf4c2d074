//! An IPAM plugin that is executed below these links: ADD, CHECK and DEL reach it, and the link has what it gave.

use crate::talk::stacked;
use plexus_testkit::{Agent, Node, fake_ipam};
use serde_json::{Value, json};

pub(crate) fn below_each() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    for (provider, options) in [
        ("ipvlan", json!({"mode": "l2"})),
        ("ipvlan", json!({"mode": "l3"})),
        ("ipvlan", json!({"mode": "l3s"})),
        ("vlan", json!({"vlanId": 5})),
    ] {
        below(&node, provider, &options);
    }
}

fn below(node: &Node, provider: &str, options: &Value) {
    let what = format!("{provider} {options}");
    let pod = node.pod("c1");
    let mut config = stacked(provider, options, "11");
    config["ipam"] = fake_ipam(node);
    let calls = node.ipam_calls().len();
    let result = pod.add(&config);
    assert_eq!(result["ips"][0]["address"], "10.40.0.2/24", "{what}");
    let link = pod.ns().sh("ip -d link show eth0");
    assert!(link.contains(provider), "{what}: {link}");
    let addresses = pod.ns().sh("ip -4 -o address show dev eth0");
    assert!(addresses.contains("10.40.0.2/24"), "{what}: {addresses}");

    let mut checked = config.clone();
    checked["prevResult"] = result;
    pod.cni("CHECK", &checked).done();
    let file = node.fake_dir().join("10.40.0.2");
    let owner = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let (code, text) = pod.cni("CHECK", &checked).error();
    assert_eq!(code, 101, "{what}: {text}");
    std::fs::write(&file, owner).unwrap();

    pod.del(&config);
    assert!(!file.exists(), "{what}: the plugin still has the address");
    assert!(!pod.ns().sh("ip link").contains("eth0"), "{what}");
    let calls = &node.ipam_calls()[calls..];
    let verbs: Vec<&str> = calls.iter().filter_map(|c| c.split(' ').next()).collect();
    assert_eq!(verbs, ["ADD", "CHECK", "CHECK", "DEL"], "{what}");
}
