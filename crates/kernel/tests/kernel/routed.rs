use crate::lab::{Lab, Pod, forwarding, host_end, ifname, plan, routed};
use plexus_core::plan::{LinkKind, NodePlan};
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

#[test]
fn a_checked_pod_sends_from_its_own_addresses_only() {
    let lab = Lab::new();
    let forward = NodePlan {
        settings: forwarding(),
        ..NodePlan::default()
    };
    node::ensure(&forward, &lab.side).unwrap();
    let (liar, free, victim) = (lab.pod("liar"), lab.pod("free"), lab.pod("victim"));
    let with_check = |container: &str, number: u8, checked: bool| {
        let addresses = [
            format!("10.7.0.{number}/32"),
            format!("fd00:7::{number}/128"),
        ];
        let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
        let mut link = routed(container, "eth0", &addresses);
        let LinkKind::Veth(end) = &mut link.kind else {
            panic!("routed has a host end")
        };
        end.source_check = checked;
        plan(u32::from(number), vec![link])
    };
    let checked = with_check("c1", 2, true);
    lab.apply(&checked, &liar);
    lab.apply(&with_check("c2", 3, false), &free);
    lab.apply(&with_check("c3", 4, true), &victim);
    let listed = lab.node.ns().sh("nft list table inet plexus");
    assert!(
        listed.contains("fib saddr . iif oif missing drop"),
        "{listed}"
    );
    let lies = |pod: &Pod| {
        ["10.7.9.9", "fd00:7::99"].map(|lie| {
            pod.ns.try_sh(&format!("ip addr add {lie} dev eth0"));
            std::thread::scope(|scope| {
                let watch = format!("timeout 3 tcpdump -c 1 -ni eth0 'src {lie}'");
                let victim = &victim;
                let watch = scope.spawn(move || victim.ns.try_sh(&watch));
                std::thread::sleep(std::time::Duration::from_millis(700));
                let to = if lie.contains(':') {
                    "fd00:7::4"
                } else {
                    "10.7.0.4"
                };
                pod.ns
                    .try_sh(&format!("ping -c 2 -i 0.2 -W 1 -I {lie} {to}"));
                watch.join().unwrap()
            })
        })
    };
    assert!(liar.ns.pings("10.7.0.4") && liar.ns.pings("fd00:7::4"));
    assert_eq!(lies(&liar), [false, false]);
    assert_eq!(lies(&free), [true, true]);
    // Somebody flushed the rules, and changed the link's group: both are put back.
    let end = host_end("c1", "eth0").name;
    let spoil = format!("nft flush ruleset; ip link set {end} group 0");
    lab.node.ns().sh(&spoil);
    assert_eq!(lies(&liar), [true, true]);
    pod::restore_node(&checked, &lab.side).unwrap();
    assert_eq!(lies(&liar), [false, false]);
}

#[test]
fn an_address_that_another_pod_has_is_refused_and_stays_there() {
    let lab = Lab::new();
    let forward = NodePlan {
        settings: forwarding(),
        ..NodePlan::default()
    };
    node::ensure(&forward, &lab.side).unwrap();
    let (owner, thief) = (lab.pod("owner"), lab.pod("thief"));
    for address in ["10.7.0.2/32", "fd00:7::2/128"] {
        let first = plan(1, vec![routed("c1", "eth0", &[address])]);
        lab.apply(&first, &owner);
        let second = plan(2, vec![routed("c2", "eth0", &[address])]);
        let error = pod::apply(&second, &thief.netns, &lab.side).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains(address) && said.contains("another pod has it"),
            "{said}"
        );
        pod::remove(&second, Some(&thief.netns), &lab.side).unwrap();
        let (plain, _) = address.split_once('/').unwrap();
        assert!(lab.node.ns().pings(plain), "{plain} does not answer");
        // What is there is no obstacle to putting it right.
        pod::restore_node(&first, &lab.side).unwrap();
        pod::restore_node(&first, &lab.side).unwrap();
        assert!(lab.node.ns().pings(plain), "{plain} does not answer");
        pod::remove(&first, Some(&owner.netns), &lab.side).unwrap();
    }
}

#[test]
fn restoring_replaces_nobody_elses_route() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let plan = plan(
        1,
        vec![routed("c1", "eth0", &["10.1.0.2/32", "fd00::2/128"])],
    );
    lab.apply(&plan, &pod);
    let node = lab.node.ns();
    let end = host_end("c1", "eth0").name;
    for (dst, family) in [("10.1.0.2/32", "-4"), ("fd00::2/128", "-6")] {
        let routes = || node.sh(&format!("ip {family} route show {dst}"));
        node.sh(&format!("ip route del {dst}; ip route add {dst} dev eth1"));
        let foreign = routes();
        assert!(foreign.contains("eth1"), "{foreign}");
        assert!(pod::restore_node(&plan, &lab.side).is_err());
        assert_eq!(routes(), foreign);
        // Its own comes back when the other is gone, also a second time.
        node.sh(&format!("ip route del {dst}"));
        for _ in 0..2 {
            pod::restore_node(&plan, &lab.side).unwrap();
            assert!(routes().contains(end.as_str()), "{}", routes());
        }
    }
}
