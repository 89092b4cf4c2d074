use crate::fabric_lab::Fabric;
use crate::lab::{net, plan, routed};
use plexus_core::fabric::BlockRoute;
use plexus_kernel::{fabric, pod};

fn route(dst: &str, via: &str) -> BlockRoute {
    BlockRoute {
        dst: net(dst),
        via: via.parse().unwrap(),
    }
}

#[test]
fn by_difference_and_never_a_pods() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    let pod = node.pod("one");
    pod::apply(
        &plan(
            1,
            vec![routed("c1", "eth0", &["10.8.0.2/32", "fd00:8::2/128"])],
        ),
        &pod.netns,
        &node.side,
    )
    .unwrap();
    let own = [net("10.8.0.0/24"), net("fd00:8::/64")];
    let mut wanted = vec![
        route("10.8.1.0/24", "192.0.2.12"),
        route("fd00:8:0:1::/64", "2001:db8::12"),
    ];
    let set = |wanted: &[BlockRoute], own: &[_]| fabric::set_routes(&node.side, wanted, own);
    assert_eq!(set(&wanted, &own).unwrap(), 4);
    assert_eq!(set(&wanted, &own).unwrap(), 0);
    wanted[0].via = "192.0.2.1".parse().unwrap();
    assert_eq!(set(&wanted, &own).unwrap(), 2);
    // What is read is what was set, and no route to a pod.
    let existing = fabric::routes(&node.side).unwrap();
    assert_eq!(existing.to_blocks, wanted.iter().cloned().collect());
    assert_eq!(existing.own, own.into_iter().collect());
    let seen = node.ns.sh("ip route; ip -6 route");
    for text in [
        "10.8.1.0/24 via 192.0.2.1",
        "unreachable 10.8.0.0/24",
        "unreachable fd00:8::/64",
        "fd00:8:0:1::/64 via 2001:db8::12",
    ] {
        assert!(seen.contains(text), "no {text:?} in\n{seen}");
    }
    // Somebody else's route is an obstacle that is named; the others are made all the same.
    node.ns.sh("ip route add 10.8.7.0/24 via 192.0.2.1");
    wanted.push(route("10.8.7.0/24", "192.0.2.12"));
    wanted.push(route("10.8.9.0/24", "192.0.2.12"));
    assert!(set(&wanted, &own).is_err());
    assert!(
        node.ns
            .sh("ip route")
            .contains("10.8.9.0/24 via 192.0.2.12")
    );
    assert!(
        node.ns
            .sh("ip route")
            .contains("10.8.7.0/24 via 192.0.2.1 dev")
    );
    // All gone, but for the pod's and the stranger's.
    set(&[], &[]).unwrap();
    let seen = node.ns.sh("ip route; ip -6 route");
    assert!(
        seen.contains("10.8.0.2 dev px") && seen.contains("fd00:8::2 dev px"),
        "{seen}"
    );
    assert!(
        seen.contains("10.8.7.0/24") && !seen.contains("unreachable 10.8"),
        "{seen}"
    );
    assert_eq!(seen.matches("10.8.").count(), 2, "{seen}");
}
