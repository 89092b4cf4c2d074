//! Everything of ours goes from a node, and nothing else.

use crate::lab::{Lab, bridge, ifname, net, node_plan};
use plexus_core::fabric::BlockRoute;
use plexus_core::nic_routes::{FIRST_TABLE, NetworkRoutes, NextHop};
use plexus_core::plan::Masquerade;
use plexus_kernel::nic_routes::NicRoutes;
use plexus_kernel::{clear, fabric, node};

#[test]
fn what_is_ours_goes_and_the_rest_stays() {
    let lab = Lab::new();
    let ns = lab.node.ns();
    ns.sh(
        "ip link add theirs type bridge; ip route add 10.99.0.0/24 via 192.0.2.1; \
           nft add table inet other; ip link add used0 type veth peer used1",
    );
    let names = || {
        ns.sh("ip -o link show | cut -d: -f2; ip route show; ip rule; ip nexthop; nft list tables")
    };
    let before = names();
    let mut wanted = node_plan(vec![
        bridge("br0", &["10.1.0.1/24"]),
        bridge("br1", &["10.2.0.1/24"]),
    ]);
    wanted.masquerades.push(Masquerade {
        network: "blue".parse().unwrap(),
        source: net("10.1.0.0/24"),
        except: vec![],
    });
    node::ensure(&wanted, &lab.side).unwrap();
    let route = BlockRoute {
        dst: net("10.7.0.0/26"),
        via: "192.0.2.1".parse().unwrap(),
    };
    fabric::set_routes(&lab.side, &[route], &[net("10.8.0.0/26")]).unwrap();
    let hop = NextHop {
        via: "192.0.2.1".parse().unwrap(),
        link: lab.uplink,
        onlink: false,
    };
    let on_nics = NetworkRoutes {
        sources: [net("10.9.0.0/16")].into(),
        routes: [(net("10.9.1.0/24"), hop)].into(),
    };
    let tables = [(FIRST_TABLE, on_nics)].into();
    NicRoutes::default().set(&lab.side, &tables).unwrap();
    ns.sh("ip link set used0 master br1");
    let ours = ["br0", "br1", "theirs", "absent"].map(ifname);
    let cleared = clear::clear(&lab.side, &ours);
    assert_eq!(cleared.problems, [""; 0]);
    assert_eq!(cleared.left.len(), 2, "{cleared:?}");
    ns.sh("ip link del br1");
    assert_eq!(names(), before);
    // It may be repeated.
    let again = clear::clear(&lab.side, &ours);
    assert_eq!(
        (again.problems.len(), again.left.len()),
        (0, 1),
        "{again:?}"
    );
}

/// Two networks on one bridge: the last takes it along, each its own gateway.
#[test]
fn a_network_that_is_gone_leaves_no_bridge_and_no_gateway() {
    let lab = Lab::new();
    let ns = lab.node.ns();
    ns.sh("ip link add theirs type bridge; ip address add 10.3.0.1/24 dev theirs; ip link add port0 type veth peer port1");
    let one = bridge("br0", &["10.1.0.1/24", "fd00:1::1/64"]);
    let two = bridge("br0", &["fd00:1::1/64", "fd00:2::1/64"]);
    let theirs = bridge("theirs", &["10.3.0.1/24"]);
    for plan in [&one, &two] {
        node::ensure(&node_plan(vec![plan.clone()]), &lab.side).unwrap();
    }
    let addresses = |name: &str| {
        ns.sh(&format!(
            "ip -o address show dev {name} | grep -v fe80 | awk '{{print $4}}' | sort"
        ))
    };
    let gone = |bridge, others: &[_]| clear::bridge_of_network(&lab.side, bridge, others).unwrap();
    let others = [two.clone(), theirs.clone()];
    assert_eq!(gone(&one, &others), ["delete address 10.1.0.1/24 of br0"]);
    assert_eq!(addresses("br0"), "fd00:1::1/64\nfd00:2::1/64\n");
    assert_eq!(gone(&one, &others), [""; 0], "it may be repeated");
    // Somebody put a port there: the bridge is his now, the gateway is not.
    ns.sh("ip link set port0 master br0");
    assert_eq!(gone(&two, std::slice::from_ref(&theirs)).len(), 2);
    assert_eq!(addresses("br0"), "");
    ns.sh("ip link set port0 nomaster; ip link add link br0 name on0 type macvlan");
    assert_eq!(gone(&two, std::slice::from_ref(&theirs)), [""; 0]);
    ns.sh("ip link show on0 && ip link del on0");
    assert_eq!(gone(&two, std::slice::from_ref(&theirs)), ["bridge br0"]);
    assert_eq!(gone(&two, &[]), [""; 0]);
    // A bridge that we did not make stays as it is.
    assert_eq!(gone(&theirs, &[]), [""; 0]);
    assert_eq!(addresses("theirs"), "10.3.0.1/24\n");
}
