use crate::lab::{Lab, alias, bridge, host_end, ifname, net, node_plan, plan, port, routed};
use plexus_core::attachment::Alias;
use plexus_core::plan::{LinkKind, PodPlan, Rule};
use plexus_kernel::pod::{self, Removed};
use plexus_kernel::{Netns, node};

fn mixed(lab: &Lab) -> PodPlan {
    node::ensure(&node_plan(vec![bridge("br0", &["10.1.0.1/24"])]), &lab.side).unwrap();
    let mut macvlan = lab.macvlan("c1", "net1", &["192.0.2.11/24"]);
    macvlan.rules.push(Rule {
        from: net("192.0.2.11/32"),
        table: 5000,
        priority: 5080,
    });
    plan(
        1,
        vec![
            port("c1", "eth0", "br0", &["10.1.0.2/24"]),
            macvlan,
            lab.macvlan("c1", "net2", &[]),
        ],
    )
}

#[test]
fn everything_goes_and_again_is_fine() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let before = pod.ns.sh("ip -o link; ip rule");
    let plan = mixed(&lab);
    lab.apply(&plan, &pod);
    let removed = pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
    assert_eq!(
        removed,
        Removed {
            in_pod: 3,
            on_node: 0,
            rules: 1,
            ..Removed::default()
        }
    );
    let after = pod.ns.sh("ip -o link set lo down; ip -o link; ip rule");
    assert_eq!(before.lines().count(), after.lines().count(), "{after}");
    assert!(
        !lab.node.ns().sh("ip -o link").contains("px0"),
        "the host end is left"
    );
    let again = pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
    assert_eq!((again.in_pod, again.on_node), (0, 0));
}

#[test]
fn what_was_half_made_goes_too() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let mut plan = mixed(&lab);
    // net2 cannot be made; the others are there by then.
    pod.ns.sh("ip link add net2 type bridge");
    let error = pod::apply(&plan, &pod.netns, &lab.side).unwrap_err();
    assert!(error.to_string().contains("net2"), "{error}");
    assert!(pod.ns.sh("ip -o link").contains("net1"));
    pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
    let left = pod.ns.sh("ip -o link");
    assert!(
        left.contains("net2") && !left.contains("net1") && !left.contains("eth0"),
        "{left}"
    );
    pod.ns.sh("ip link del net2");
    plan.links.pop();
    lab.apply(&plan, &pod);
}

#[test]
fn a_foreign_link_of_the_same_group_stays() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let plan = PodPlan {
        group: 77,
        ..mixed(&lab)
    };
    lab.apply(&plan, &pod);
    pod.ns
        .sh("ip link add mine type bridge; ip link set mine group 77");
    let removed = pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
    assert_eq!(removed.in_pod, 3);
    let left = pod.ns.sh("ip -o link");
    assert!(left.contains("mine") && !left.contains("net1"), "{left}");
}

#[test]
fn a_link_whose_group_the_pod_changed_goes_by_its_mark() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let plan = mixed(&lab);
    lab.apply(&plan, &pod);
    pod.ns.sh("ip link set net1 group 0");
    assert_eq!(
        pod::remove(&plan, Some(&pod.netns), &lab.side)
            .unwrap()
            .in_pod,
        3
    );
}

#[test]
fn a_link_that_the_pod_renamed_is_still_ours() {
    let lab = Lab::new();
    let by = [
        ("its mark", "ip link set net2 down name mine group 0"),
        ("its group", "ip link set net2 down name mine alias mine"),
        (
            "its MAC",
            "ip link set net2 down name mine alias mine; ip link set mine group 0",
        ),
    ];
    for (number, (what, change)) in by.into_iter().enumerate() {
        let pod = lab.pod(&format!("pod{number}"));
        let plan = mixed(&lab);
        lab.apply(&plan, &pod);
        pod.ns.sh(change);
        pod.ns.sh("ip link add other type bridge");
        assert!(
            pod::is_there(&plan, &pod.netns, &lab.side).unwrap(),
            "{what}"
        );
        let removed = pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
        let left = pod.ns.sh("ip -o link");
        assert_eq!(removed.in_pod, 3, "by {what}: {left}");
        assert!(!left.contains("mine") && left.contains("other"), "{left}");
        assert!(!pod::is_there(&plan, &pod.netns, &lab.side).unwrap());
    }
}

#[test]
fn a_foreign_link_of_the_same_name_stays() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let plan = mixed(&lab);
    pod.ns.sh("ip link add net1 type bridge");
    let removed = pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
    assert_eq!(removed.in_pod, 0);
    assert!(pod.ns.sh("ip -o link").contains("net1"));
}

#[test]
fn without_a_namespace_the_host_ends_go_unless_they_are_foreign() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let plan = mixed(&lab);
    lab.apply(&plan, &pod);
    let end = host_end("c1", "eth0").name;
    let node = lab.node.ns();
    node.sh(&format!("ip link set {end} alias 'somebody else'"));
    assert_eq!(
        pod::remove(&plan, None, &lab.side).unwrap(),
        Removed::default()
    );
    node.sh(&format!(
        "ip link set {end} alias '{}'",
        alias("c1", "eth0")
    ));
    let removed = pod::remove(&plan, None, &lab.side).unwrap();
    assert_eq!(
        removed,
        Removed {
            in_pod: 0,
            on_node: 1,
            rules: 0,
            ..Removed::default()
        }
    );
    assert!(!node.sh("ip -o link").contains(end.as_str()));
}

#[test]
fn marked_links_go_without_a_plan() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    lab.apply(&mixed(&lab), &pod);
    let other = plan(2, vec![lab.macvlan("c2", "net9", &[])]);
    lab.apply(&other, &pod);
    let remove = |container: &str, ifname: &str, pod: Option<&Netns>| {
        pod::remove_marked(pod, crate::lab::HERE, container, ifname, &lab.side).unwrap()
    };
    assert_eq!(remove("c1", "eth1", Some(&pod.netns)), Removed::default());
    assert_eq!(remove("c1", "eth0", None).on_node, 1);
    assert_eq!(remove("c1", "eth0", Some(&pod.netns)).in_pod, 2);
    assert!(pod.ns.sh("ip -o link").contains("net9"));
}

/// Names so long that a mark cannot hold them: `net1` of one container must not be taken for
/// `net1` of the other, neither in a pod nor on the node.
#[test]
fn long_names_do_not_make_links_anybodys() {
    let lab = Lab::new();
    let (one, two) = (lab.pod("one"), lab.pod("two"));
    for length in [64, 200] {
        let (first, second) = ("a".repeat(length), "b".repeat(length));
        let make = |container: &str, group| {
            let mark = long_alias(container, "net1");
            let mut link = routed(container, "net1", &["10.9.0.2/32"]);
            if let LinkKind::Veth(end) = &mut link.kind {
                end.name = ifname("same0");
                end.alias.clone_from(&mark);
            }
            link.alias = mark;
            plan(group, vec![link])
        };
        let (mine, other) = (make(&first, 1), make(&second, 2));
        lab.apply(&mine, &one);
        for pod in [Some(&two.netns), Some(&one.netns), None] {
            let removed = pod::remove(&other, pod, &lab.side).unwrap();
            assert_eq!((removed.in_pod, removed.on_node), (0, 0), "{length}");
        }
        let marked = |container: &str| {
            pod::remove_marked(None, crate::lab::HERE, container, "eth0", &lab.side).unwrap()
        };
        assert_eq!(marked(&second), Removed::default(), "{length}");
        assert_eq!(marked(&first).on_node, 1, "{length}");
        lab.apply(&mine, &one);
        one.ns.sh("ip link set net1 group 0");
        let removed = pod::remove(&mine, Some(&one.netns), &lab.side).unwrap();
        assert_eq!(removed.in_pod, 1, "{length}");
    }
}

fn long_alias(container: &str, name: &str) -> String {
    let alias = Alias {
        node: crate::lab::HERE,
        container: container.to_owned(),
        cni_ifname: "eth0".to_owned(),
        network: "n".repeat(190),
        ifname: name.to_owned(),
        pool: "p".repeat(100),
        moved: None,
        addresses: vec![],
    };
    alias.render()
}

#[test]
fn the_calling_thread_is_home_again() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let home = Netns::current().unwrap().cookie().unwrap();
    let plan = mixed(&lab);
    lab.apply(&plan, &pod);
    pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
    assert_eq!(Netns::current().unwrap().cookie().unwrap(), home);
}

#[test]
fn many_threads_at_once_keep_to_their_own_pods() {
    let lab = Lab::new();
    node::ensure(&node_plan(vec![bridge("br0", &["10.1.0.1/24"])]), &lab.side).unwrap();
    let pods: Vec<_> = (0..12).map(|i| lab.pod(&format!("p{i}"))).collect();
    std::thread::scope(|scope| {
        for (i, pod) in pods.iter().enumerate() {
            let lab = &lab;
            scope.spawn(move || {
                let container = format!("c{i}");
                let links = vec![
                    port(
                        &container,
                        "eth0",
                        "br0",
                        &[&format!("10.1.0.{}/24", 10 + i)],
                    ),
                    lab.macvlan(&container, "net1", &[&format!("192.0.2.{}/24", 10 + i)]),
                ];
                let plan = plan(100 + i as u32, links);
                for _ in 0..3 {
                    lab.apply(&plan, pod);
                    let removed = pod::remove(&plan, Some(&pod.netns), &lab.side).unwrap();
                    assert_eq!((removed.in_pod, removed.on_node), (2, 0));
                }
            });
        }
    });
    assert!(
        !lab.node.ns().sh("ip -o link").contains(": px"),
        "host ends are left"
    );
}
