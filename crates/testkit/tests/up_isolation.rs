//! Networks beside each other under `plexus up`: what has one name and is two.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod common;

use common::Files;
use plexus_testkit::{Node, Pod, Up, config};
use serde_json::json;

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
