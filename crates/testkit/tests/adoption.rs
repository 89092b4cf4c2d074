//! The journal is lost while pods live: what leads to them stays, what only looks like theirs is not believed, and what
//! one pod cannot have takes nothing from it that it has.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod common;
mod interop;

use common::Files;
use interop::connect;
use plexus_testkit::{Agent, NetNs, Node, Pod, Up, config};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The node's address on its uplink, and its loopback.
const ADDRESSES: [[u8; 4]; 2] = [[192, 0, 2, 2], [127, 0, 0, 1]];

fn lose_journal(node: &Node) {
    for entry in std::fs::read_dir(node.state_dir()).unwrap().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("journal.db")
        {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Starts an agent that finds no journal.
fn restart_without_journal<'n>(node: &'n Node, agent: Agent<'n>) -> Agent<'n> {
    agent.stop();
    lose_journal(node);
    Agent::start(node)
}

/// What a runtime sends for a container of a Network that has a port of the node.
fn with_port(node: &Node, network: &str, port: u16) -> Value {
    let mut config = Files::config(node, &format!("plexus-{network}.conflist"));
    config["runtimeConfig"] = json!({
        "portMappings": [{"hostPort": port, "containerPort": 80, "protocol": "tcp"}],
    });
    config
}

/// Whether a port of the node leads to the pod: from outside, and from the node by its loopback.
fn answers(node: &Node, pod: &Pod<'_>, port: u16) -> [bool; 2] {
    let listen = SocketAddr::from(([0, 0, 0, 0], 80));
    let from: [&NetNs; 2] = [node.outside(), node.ns()];
    [0, 1].map(|at| {
        let dial = SocketAddr::from((ADDRESSES[at], port));
        connect(from[at], pod.ns(), listen, dial).is_some()
    })
}

/// The ports of the node that lead anywhere, as nft lists them.
fn elements(node: &Node) -> String {
    node.ns()
        .sh("nft list map inet plexus ports4; nft list map inet plexus ports6; nft list set inet plexus ports4-self")
}

#[test]
fn ports_of_living_pods_survive_a_lost_journal() {
    let node = Node::new();
    let up = Up::start(&node);
    let subnets = |cidr: &str| json!({"a": {"cidr": cidr}});
    let bridged = json!({"bridge": "px7", "isGateway": true, "isDefaultGateway": true});
    let bridged =
        json!({"provider": "bridge", "subnets": subnets("10.62.0.0/24"), "config": bridged});
    let routed = json!({"provider": "routed", "subnets": subnets("10.63.0.0/24")});
    up.network("default/bridged", &bridged, "bridged");
    up.network("default/routed", &routed, "routed");
    let [bridge, routed, third] = [("bridged", 8080), ("routed", 8081), ("bridged", 8082)]
        .map(|(network, port)| with_port(&node, network, port));
    let (one, two, gone) = (node.pod("c1"), node.pod("c2"), node.pod("c3"));
    one.add(&bridge);
    two.add(&routed);
    let address = gone.cni("ADD", &third).addresses()[0].clone();
    assert_eq!(answers(&node, &one, 8080), [true; 2]);
    assert_eq!(answers(&node, &two, 8081), [true; 2]);
    assert!(up.stop().success());
    drop(gone);
    lose_journal(&node);
    let up = Up::start(&node);
    assert_eq!(answers(&node, &one, 8080), [true; 2], "{}", elements(&node));
    assert_eq!(answers(&node, &two, 8081), [true; 2], "{}", elements(&node));
    let left = elements(&node);
    assert!(
        !left.contains("8082") && !left.contains(&format!("{address} ")),
        "a port leads to a pod that is gone:\n{left}"
    );
    // What was adopted is recorded: a further start keeps it.
    up.kill();
    let up = Up::start(&node);
    assert_eq!(answers(&node, &one, 8080), [true; 2], "{}", elements(&node));
    // And no other pod can have the port.
    let (_, text) = node.pod("c4").cni("ADD", &bridge).error();
    assert!(text.contains("8080"), "{text}");
    one.del(&bridge);
    let left = elements(&node);
    assert!(!left.contains("8080"), "DEL left a port:\n{left}");
    assert_eq!(answers(&node, &two, 8081), [true; 2], "{left}");
    two.del(&routed);
    assert!(!elements(&node).contains("8081"), "{}", elements(&node));
    assert!(up.stop().success());
}

/// A link's mark, as a pod reads it.
fn mark(ns: &NetNs, link: &str) -> String {
    let listed = ns.run("ip", &["-j", "link", "show", link]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed[0]["ifalias"].as_str().unwrap().to_owned()
}

/// A macvlan with addresses of the journal's pools.
fn pooled_macvlan(node: &Node) -> Value {
    let mut config = config::macvlan(node);
    config["ipam"] = json!({"type": "plexus", "subnets": ["10.10.0.0/24"]});
    config
}

/// A pod can make namespaces of its own, and links in them on links of its own: such a link has a parent elsewhere too.
#[test]
fn a_mark_in_a_namespace_that_a_pod_made_is_not_believed() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = pooled_macvlan(&node);
    let pod = node.pod("c1");
    pod.add(&config);
    let nested = node.pod("nested");
    for kind in ["macvlan mode bridge", "ipvlan mode l2", "vlan id 7"] {
        let (name, _) = kind.split_once(' ').unwrap();
        let link = format!("{}0", &name[..3]);
        let made = format!(
            "ip link add p{link} type veth peer name q{link}; ip link set p{link} up\n\
             ip link add {link} link p{link} netns {} type {kind}",
            nested.ns().name()
        );
        if !pod.ns().try_sh(&made) {
            assert_ne!(name, "macvlan", "every kernel that is tested has it");
            println!("this kernel makes no {name}");
            continue;
        }
        let forged = mark(pod.ns(), "eth0")
            .replace("c1", &format!("evil-{name}"))
            .replace("eth0", &link)
            .replace("10.10.0.", "10.10.0.10");
        nested
            .ns()
            .run("ip", &["link", "set", &link, "alias", &forged]);
    }
    let agent = restart_without_journal(&node, agent);
    let known = agent.get("/attachments").unwrap().body;
    assert!(
        known.contains("\"c1\"") && !known.contains("evil"),
        "{known}"
    );
    pod.cni("CHECK", &config).done();
}

/// Two marks say the same address, which only one of them can have.
#[test]
fn an_address_that_another_pod_has_takes_no_others_along() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let mut config = config::routed();
    config["ipam"]["subnets"] = json!(["10.245.1.0/24", "fd00:245:1::/125"]);
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    let first = one.cni("ADD", &config).addresses();
    let second = two.cni("ADD", &config).addresses();
    let before = mark(two.ns(), "eth0");
    let after = before.replace(&format!("{}/", second[0]), &format!("{}/", first[0]));
    assert_ne!(before, after);
    two.ns()
        .run("ip", &["link", "set", "eth0", "alias", &after]);
    let ends = node.ns().run("ip", &["-j", "link"]);
    let ends: Value = serde_json::from_str(&ends).unwrap();
    let mut ends = ends.as_array().unwrap().iter();
    let end = ends.find(|link| link["ifalias"] == json!(before)).unwrap();
    let end = end["ifname"].as_str().unwrap();
    node.ns().run("ip", &["link", "set", end, "alias", &after]);
    let agent = restart_without_journal(&node, agent);
    let known = agent.get("/attachments").unwrap().body;
    assert!(
        known.contains("\"c1\"") && known.contains("\"c2\""),
        "{known}"
    );
    let mut pods = Vec::new();
    for number in 3..12 {
        let pod = node.pod(&format!("c{number}"));
        let added = pod.cni("ADD", &config);
        // The node has a route to the address that the forged mark hides.
        if !added.success() {
            continue;
        }
        let got = added.addresses();
        let is_taken = |ip: &String| [&first[0], &first[1], &second[1]].contains(&ip);
        assert!(
            !got.iter().any(is_taken),
            "given out twice: {got:?}, of {first:?} and {second:?}"
        );
        pods.push(pod);
    }
    assert!(!pods.is_empty(), "no pod got addresses");
    // What was adopted goes like any other.
    two.del(&config);
    one.del(&config);
}

/// Whether the agent has a record of a container.
fn is_recorded(agent: &Agent<'_>, container: &str) -> bool {
    let known = agent.get("/attachments").unwrap().body;
    known.contains(&format!("\"{container}\""))
}

/// A link on a link of the node has nothing there that shows that it lives: it is adopted under any name.
#[test]
fn a_macvlan_that_its_pod_renamed_keeps_its_address() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::one_address(&pooled_macvlan(&node));
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    one.cni("ADD", &config).ok();
    one.ns()
        .sh("ip link set eth0 down; ip link set eth0 name own0; ip link set own0 up");
    let agent = restart_without_journal(&node, agent);
    assert!(is_recorded(&agent, "c1"), "it is not adopted");
    let (_, text) = two.cni("ADD", &config).error();
    assert!(text.contains("10.10.0"), "{text}");
    one.del(&config);
    assert!(!one.ns().try_sh("ip link show own0"), "DEL left it");
    two.add(&config);
    drop(agent);
}

/// A link that is not seen in its pod, here because the pod renamed it, lives as long as its end on the node.
#[test]
fn an_end_on_the_node_keeps_the_address_of_what_is_not_seen() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::one_address(&config::bridge());
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    let had = one.cni("ADD", &config).addresses();
    one.ns()
        .sh("ip link set eth0 down; ip link set eth0 name own0; ip link set own0 up");
    let agent = restart_without_journal(&node, agent);
    assert!(!is_recorded(&agent, "c1"), "it is seen in its pod");
    let (_, text) = two.cni("ADD", &config).error();
    assert!(
        text.contains(&had[0]) || text.contains("10.244.1"),
        "{text}"
    );
    one.del(&config);
    assert!(!one.ns().try_sh("ip link show own0"), "DEL left it");
    two.add(&config);
    drop(agent);
}

/// Of a link on a link of the node, the number that the node has for its pod's namespace shows that it lives, where neither
/// a path nor a process does.
#[test]
fn a_macvlan_in_a_namespace_that_nothing_shows_keeps_its_address_without_the_journal() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::one_address(&pooled_macvlan(&node));
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    one.add(&config);
    let held = std::fs::File::open(one.netns()).unwrap();
    drop(one);
    let agent = restart_without_journal(&node, agent);
    assert!(!is_recorded(&agent, "c1"), "something shows its namespace");
    let (_, text) = two.cni("ADD", &config).error();
    assert!(text.contains("10.10.0"), "its address was free: {text}");
    drop(held);
    node.pod("c1").del(&config);
    two.add(&config);
    drop(agent);
}

/// The end in a network's router carries the same mark, and is no interface of the pod.
#[test]
fn of_an_overlay_only_the_pods_end_is_adopted() {
    let node = Node::new();
    let up = Up::start(&node);
    let spec = json!({"subnets": {"a": {"cidr": "10.64.0.0/24"}}});
    up.network("default/blue", &spec, "blue");
    let config = Files::config(&node, "plexus-blue.conflist");
    let pod = node.pod("c1");
    pod.add(&config);
    let before = up.attachments();
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(up.stop().success());
    lose_journal(&node);
    let up = Up::start(&node);
    let adopted = up.attachments();
    assert_eq!(adopted.len(), 1, "{adopted:?}");
    pod.del(&config);
    assert!(!pod.ns().try_sh("ip link show eth0"), "DEL left it");
    assert!(up.stop().success());
}

/// Of a pod with two interfaces one is seen under its name, and is recorded; the other keeps its address all the same.
#[test]
fn what_is_adopted_in_part_keeps_all_of_its_addresses() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let mut entry = pooled_macvlan(&node);
    entry["type"] = Value::Null;
    entry["cniVersion"] = Value::Null;
    let entries = [config::bridge_entry(), entry];
    let both = config::one_address(&config::standalone("both", &entries));
    let alone = config::one_address(&config::bridge());
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    one.add(&both);
    one.ns()
        .sh("ip link set eth0 down; ip link set eth0 name own0; ip link set own0 up");
    let agent = restart_without_journal(&node, agent);
    assert!(is_recorded(&agent, "c1"), "the macvlan is not adopted");
    // Also when the journal has what was adopted.
    agent.stop();
    let agent = Agent::start(&node);
    let (_, text) = two.cni("ADD", &alone).error();
    assert!(text.contains("10.244.1"), "its address was free: {text}");
    one.del(&both);
    assert!(!one.ns().try_sh("ip link show own0"), "DEL left it");
    two.add(&alone);
    drop(agent);
}
