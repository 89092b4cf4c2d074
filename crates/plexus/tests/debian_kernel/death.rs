//! The agent dies at the k-th effect of an ADD, and of a DEL: with one request for all kinds of links at once, each on a
//! master of its own. An emulated machine takes seconds for each death, so not every place is taken: the crash test proper
//! (`testkit/tests/crash`) takes all of them, with links that every kernel has.

use crate::case::Case;
use crate::harness::{Harness, Queue};
use plexus_testkit::{Node, config};
use serde_json::{Value, json};

/// Of so many places to die one is taken.
const PLACES: usize = 9;

pub(crate) fn all_at_once() {
    let harness = Harness::new(Case::new("stacked links", networks)).every(PLACES, 0);
    let add = harness.agent_dies_in_add();
    let add = add.unwrap_or_else(|why| panic!("{why}"));
    let del = harness.agent_dies_in_del(Queue::Removed);
    let del = del.unwrap_or_else(|why| panic!("{why}"));
    println!("died {add} times in ADD, {del} times in DEL");
    assert!(
        add > 0 && del > 0,
        "it never died: is it built with the feature faults?"
    );
}

fn networks(node: &Node) -> Value {
    let kinds = [
        json!({"provider": "ipvlan", "mode": "l2"}),
        json!({"provider": "ipvlan", "mode": "l3"}),
        json!({"provider": "ipvlan", "mode": "l3s"}),
        json!({"provider": "vlan", "vlanId": 5}),
    ];
    let network = |(number, mut network): (usize, Value)| {
        let master = format!("m{number}");
        node.ns().sh(&format!(
            "ip link add {master} type veth peer name {master}p; ip link set {master}p up; ip link set {master} up"
        ));
        network["name"] = format!("n{number}").into();
        network["master"] = master.into();
        network["ipam"] = config::host_local(node, &format!("10.1{number}.0.0/24"));
        network
    };
    let networks: Vec<Value> = kinds.into_iter().enumerate().map(network).collect();
    config::standalone("all", &networks)
}
