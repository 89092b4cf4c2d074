//! Neighbours with an outdated entry learn the new place of an address without being asked.

use crate::lab::{Lab, bridge, node_plan, plan, port};
use plexus_kernel::node;
use plexus_testkit::{NetNs, within};
use std::time::Duration;

/// Gives `ns` a reachable but wrong entry for each address.
fn mislead(ns: &NetNs, link: &str, addresses: &[&str]) {
    for address in addresses {
        ns.sh(&format!(
            "ip neigh replace {address} lladdr 02:00:00:00:00:99 dev {link} nud reachable"
        ));
    }
}

fn corrected(ns: &NetNs, link: &str, address: &str, mac: &str) -> bool {
    within(Duration::from_secs(2), || {
        ns.sh(&format!("ip neigh show {address} dev {link}"))
            .contains(mac)
    })
}

#[test]
fn a_macvlan_is_announced_to_the_wire() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let addresses = ["192.0.2.11", "2001:db8::11"];
    // A wire as real ones are: up for some time. One that has just come up forgets neighbours.
    let settled = |ns: &NetNs| {
        let seen = ns.sh("ip -o link show type veth; ip -6 -o addr");
        seen.contains("state UP") && !seen.contains("tentative")
    };
    assert!(within(Duration::from_secs(20), || {
        settled(lab.node.ns()) && settled(lab.node.outside())
    }));
    mislead(lab.node.outside(), "out0", &addresses);
    for kernel_does_it in [true, false] {
        let mut link = lab.macvlan("c1", "net1", &["192.0.2.11/24", "2001:db8::11/64"]);
        if !kernel_does_it {
            link.settings.retain(|s| !s.key.ends_with("ndisc_notify"));
        }
        let mac = link.mac.unwrap().to_string();
        let plan = plan(1, vec![link]);
        lab.apply(&plan, &pod);
        for address in addresses {
            assert!(
                corrected(lab.node.outside(), "out0", address, &mac),
                "{address} {kernel_does_it}"
            );
        }
        plexus_kernel::pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
        mislead(lab.node.outside(), "out0", &addresses);
    }
}

#[test]
fn a_bridge_port_is_announced_to_pods_and_node() {
    let lab = Lab::new();
    node::ensure(
        &node_plan(vec![bridge("br0", &["10.1.0.1/24", "fd00:1::1/64"])]),
        &lab.side,
    )
    .unwrap();
    let (one, two) = (lab.pod("one"), lab.pod("two"));
    lab.apply(
        &plan(
            1,
            vec![port("c1", "eth0", "br0", &["10.1.0.2/24", "fd00:1::2/64"])],
        ),
        &one,
    );
    assert!(
        lab.node.ns().pings("10.1.0.2"),
        "the first port does not forward"
    );
    let addresses = ["10.1.0.3", "fd00:1::3"];
    mislead(&one.ns, "eth0", &addresses);
    mislead(lab.node.ns(), "br0", &addresses);
    let link = port("c2", "eth0", "br0", &["10.1.0.3/24", "fd00:1::3/64"]);
    let mac = link.mac.unwrap().to_string();
    lab.apply(&plan(2, vec![link]), &two);
    for address in addresses {
        assert!(
            corrected(&one.ns, "eth0", address, &mac),
            "{address} in the other pod"
        );
        assert!(
            corrected(lab.node.ns(), "br0", address, &mac),
            "{address} on the node"
        );
    }
}
