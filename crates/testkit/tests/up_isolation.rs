//! Networks beside each other under `plexus up`: what has one name and is two, and what keeps pods from the tunnels of
//! other nodes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod common;

use common::{Files, eventually};
use plexus_testkit::{Node, Pod, Start, Up, config};
use serde_json::json;
use std::time::Duration;

/// A NAD or a list of a runtime may have the name that a Network has: nobody's addresses are the other's.
#[test]
fn a_configuration_takes_no_addresses_of_a_network_of_its_name() {
    let node = Node::new();
    let up = Up::start(&node);
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}});
    up.create("/api/v1/namespaces", &namespace);
    let host_local = config::host_local(&node, "10.65.0.0/24");
    let plexus = json!({"type": "plexus", "subnets": ["10.64.0.0/24"]});
    for (name, ipam) in [("blue", plexus), ("red", host_local)] {
        let runtime_name = format!("team-a.{name}");
        let spec = json!({"provider": "macvlan", "config": {"master": "eth1", "ipam": ipam}});
        up.network(&format!("team-a/{name}"), &spec, &runtime_name);
        let mut theirs = config::macvlan(&node);
        theirs["name"] = runtime_name.clone().into();
        theirs["ipam"] = ipam;
        let ours = Files::config(&node, &format!("plexus-{runtime_name}.conflist"));
        let pods = [1, 2, 3, 4].map(|number| node.pod(&format!("{name}{number}")));
        let add = |pod: &Pod<'_>, config| pod.cni("ADD", config).addresses();
        let first = [add(&pods[0], &ours), add(&pods[1], &theirs)];
        assert_eq!(first[0], first[1], "{name}: one pool for both");
        // Each is found again under its own name, also by the next process.
        pods[0].del(&ours);
        pods[1].cni("CHECK", &theirs).done();
        let second = [add(&pods[2], &ours), add(&pods[3], &theirs)];
        assert_ne!(second[1], first[1], "{name}: given out twice");
        for (pod, config) in [(1, &theirs), (2, &ours), (3, &theirs)] {
            pods[pod].del(config);
        }
    }
    assert!(up.stop().success());
}

/// The same of what they keep on the node: each masquerades its own addresses, and the Network's end is its alone.
#[test]
fn a_configuration_keeps_its_rules_when_a_network_of_its_name_goes() {
    let node = Node::new();
    let up = Up::start(&node);
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}});
    up.create("/api/v1/namespaces", &namespace);
    let bridge = |name: &str, subnet: &str| {
        json!({"bridge": name, "isGateway": true, "ipMasq": true,
            "ipam": {"type": "plexus", "subnets": [subnet]}})
    };
    let spec = json!({"provider": "bridge", "config": bridge("network0", "10.64.0.0/24")});
    up.network("team-a/blue", &spec, "team-a.blue");
    let ours = Files::config(&node, "plexus-team-a.blue.conflist");
    let mut theirs = bridge("config0", "10.66.0.0/24");
    for (key, value) in [
        ("cniVersion", "1.1.0"),
        ("name", "team-a.blue"),
        ("type", "plexus-cni"),
        ("provider", "bridge"),
    ] {
        theirs[key] = value.into();
    }
    let [one, two] = ["one", "two"].map(|name| node.pod(name));
    one.add(&ours);
    two.add(&theirs);
    let kept = || node.ns().sh("nft list table inet plexus; ip -o addr show");
    let has = |words: [&str; 2]| words.map(|word| kept().contains(word));
    let (network, config) = (
        ["saddr 10.64.0.0/24", "network0"],
        ["saddr 10.66.0.0/24", "config0"],
    );
    assert_eq!([has(network), has(config)], [[true; 2]; 2], "{}", kept());
    let path = "/apis/plexus.dev/v1alpha1/namespaces/team-a/networks/blue";
    // Nothing says whose an earlier agent's rules of that name were: while the other has pods, they may be its.
    for pods in [(&one, &ours), (&two, &theirs)] {
        pods.0.del(pods.1);
    }
    assert_eq!([has(network), has(config)], [[true; 2]; 2], "{}", kept());
    let answer = up.api("DELETE", path, None);
    assert_eq!(answer.status, 200, "{}", answer.body);
    eventually("what the Network had is gone", || {
        has(network) == [false; 2]
    });
    assert_eq!(has(config), [true; 2], "{}", kept());
    // It is still its own: the next pod goes on with it, and so does another Network of that name.
    two.add(&theirs);
    up.network("team-a/blue", &spec, "team-a.blue");
    one.add(&Files::config(&node, "plexus-team-a.blue.conflist"));
    assert_eq!([has(network), has(config)], [[true; 2]; 2], "{}", kept());
    one.del(&ours);
    two.del(&theirs);
    assert!(up.stop().success());
}

/// What keeps pods from other nodes' tunnels does not wait for the API server: the disk tells which nodes there are.
#[test]
fn tunnels_are_guarded_before_anyone_is_served() {
    let node = Node::new();
    let up = Up::start(&node);
    let other = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}});
    let mut other = up.create("/api/v1/nodes", &other);
    other["status"] = json!({"addresses": [{"type": "InternalIP", "address": "192.0.2.77"}]});
    let answer = up.api("PUT", "/api/v1/nodes/other/status", Some(&other));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let guarded = || {
        let list = "nft list chain inet plexus tunnels | grep -q drop && \
                    nft list chain inet plexus through | grep -q drop && \
                    nft list set inet plexus peers4 | grep -q 192.0.2.77";
        node.ns().try_sh(list)
    };
    eventually("the rules are there", guarded);
    // What is known is on disk within a second.
    std::thread::sleep(Duration::from_secs(2));
    assert!(up.stop().success());
    node.ns().sh("nft delete table inet plexus");
    let log = || std::fs::read_to_string(node.log()).unwrap();
    let before = log().len();
    let kubeconfig = Up::kubeconfig(&node).display().to_string();
    let agent = Start::on(&node)
        .args(&["--kubeconfig", &kubeconfig])
        .ready();
    assert!(guarded(), "somebody is served without the rules");
    // It does not wait until the API server is given up.
    let log = log()[before..].to_owned();
    let [rules, served] = [
        "rules that keep pods from nodes' tunnels",
        ": serving node=",
    ]
    .map(|line| log.find(line).expect("it is said"));
    assert!(rules < served, "{log}");
    // What somebody flushes now comes back.
    node.ns().sh("nft flush ruleset");
    eventually("the rules are back", guarded);
    drop(agent);
}
