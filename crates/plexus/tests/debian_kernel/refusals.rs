//! What does not go together on one master: refused, with the name of whoever is there, whose link stays as it is.

use crate::talk::stacked;
use plexus_testkit::{Agent, Node, Pod};
use serde_json::{Value, json};

pub(crate) fn second_mode() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    let (l2, l3) = (
        stacked("ipvlan", &json!({"mode": "l2"}), "11"),
        stacked("ipvlan", &json!({"mode": "l3"}), "12"),
    );
    one.add(&l2);
    let mode_of = |pod: &Pod<'_>| pod.ns().sh("ip -d link show eth0");
    let says = [
        "ipvlan mode l3",
        "eth1",
        "ipvlan mode l2",
        "interface eth0 of container c1",
        "network blue",
    ];
    refused(&two, &l3, &says);
    // Also by an agent that remembers nothing.
    drop(agent);
    let agent = Agent::start(&node);
    refused(&two, &l3, &says);
    // Also by one that has lost its journal.
    agent.kill();
    std::fs::remove_dir_all(node.state_dir()).unwrap();
    std::fs::create_dir_all(node.state_dir()).unwrap();
    let _agent = Agent::start(&node);
    refused(&two, &l3, &says);
    assert!(mode_of(&one).contains("mode l2"), "it was switched");
    one.del(&l2);
    two.add(&l3);
    assert!(mode_of(&two).contains("mode l3"));
    refused(&one, &l2, &["ipvlan mode l3", "container c2"]);
    two.del(&l3);
    // Of the node itself, and two of one call.
    node.ns()
        .sh("ip link add i0 link eth1 type ipvlan mode l3s");
    refused(&one, &l2, &["ipvlan mode l3s", "the node's own link i0"]);
    node.ns().sh("ip link del i0");
    let both = json!({"cniVersion": "1.1.0", "name": "all", "type": "plexus-cni", "networks": [
        entry(&l2, "a"), entry(&l3, "b")]});
    refused(
        &one,
        &both,
        &["interface net1", "ipvlan mode l2", "container c1"],
    );
    one.add(&l2);
    one.del(&l2);
}

pub(crate) fn beside_ipvlan() {
    beside("ipvlan", "macvlan", "ipvlan mode l2");
}

pub(crate) fn beside_macvlan() {
    beside("macvlan", "ipvlan", "macvlan mode bridge");
}

fn beside(first: &str, second: &str, shown: &str) {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    let (there, late) = (
        stacked(first, &json!({}), "11"),
        stacked(second, &json!({}), "12"),
    );
    one.add(&there);
    refused(&two, &late, &[shown, "eth1", "container c1"]);
    one.del(&there);
    two.add(&late);
    two.del(&late);
}

pub(crate) fn second_vlan() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    let vlan = |id: u32, address| stacked("vlan", &json!({"vlanId": id}), address);
    one.add(&vlan(5, "11"));
    refused(&two, &vlan(5, "12"), &["vlan id 5", "eth1", "container c1"]);
    two.add(&vlan(6, "12"));
    two.del(&vlan(6, "12"));
    node.ns()
        .sh("ip link add link eth1 name eth1.7 type vlan id 7");
    refused(
        &two,
        &vlan(7, "12"),
        &["vlan id 7", "the node's own link eth1.7"],
    );
    one.del(&vlan(5, "11"));
    two.add(&vlan(5, "12"));
    two.del(&vlan(5, "12"));
}

/// The ADD is refused with all of these words, and leaves nothing.
fn refused(pod: &Pod<'_>, config: &Value, words: &[&str]) {
    let before = pod.ns().sh("ip -o link");
    let (_, text) = pod.cni("ADD", config).error();
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert_eq!(pod.ns().sh("ip -o link"), before);
}

fn entry(config: &Value, name: &str) -> Value {
    let mut entry = config.clone();
    for key in ["cniVersion", "type"] {
        entry.as_object_mut().unwrap().remove(key);
    }
    entry["name"] = name.into();
    entry
}
