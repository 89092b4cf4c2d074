use crate::lab::{Lab, forwarding, host_end, ifname, plan, routed};
use plexus_core::plan::NodePlan;
use plexus_kernel::{node, pod};

#[test]
fn pods_talk_through_the_node_dual_stack() {
    let lab = Lab::new();
    node::ensure(
        &NodePlan {
            settings: forwarding(),
            ..NodePlan::default()
        },
        &lab.side,
    )
    .unwrap();
    let (one, two) = (lab.pod("one"), lab.pod("two"));
    let first = plan(
        1,
        vec![routed("c1", "eth0", &["10.7.0.2/32", "fd00:7::2/128"])],
    );
    let applied = lab.apply(&first, &one);
    let end = applied
        .node
        .link(&host_end("c1", "eth0").name)
        .unwrap()
        .index;
    assert_eq!(
        applied
            .node
            .routes
            .iter()
            .filter(|r| r.link == Some(end))
            .count(),
        2
    );
    assert_eq!(applied.node.neighbours.len(), 2);
    assert_eq!(applied.pod.neighbours.len(), 2);
    assert!(applied.pod.link(&ifname("eth0")).unwrap().up);
    lab.apply(
        &plan(
            2,
            vec![routed("c2", "eth0", &["10.7.0.3/32", "fd00:7::3/128"])],
        ),
        &two,
    );
    for address in ["10.7.0.3", "fd00:7::3"] {
        assert!(one.ns.pings(address), "{address} does not answer");
    }
    let seen = lab
        .node
        .ns()
        .sh("ip route; ip -6 route; ip neigh; ip -6 neigh");
    assert!(seen.contains("10.7.0.2 dev px"), "{seen}");
    assert!(seen.contains("PERMANENT"), "{seen}");

    // What is observed later is what was applied.
    let later = pod::observe(&first, &one.netns, &lab.side).unwrap();
    assert_eq!(later.node.routes, applied.node.routes);
    assert_eq!(later.pod.addresses.len(), applied.pod.addresses.len());

    pod::remove(&first, Some(&one.netns), &lab.side).unwrap();
    let seen = lab.node.ns().sh("ip route; ip -6 route");
    assert!(
        !seen.contains("10.7.0.2") && !seen.contains("fd00:7::2"),
        "{seen}"
    );
}
