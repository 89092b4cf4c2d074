use crate::lab::{Lab, bridge, ifname, net, node_plan};
use plexus_core::plan::{Masquerade, NodePlan};
use plexus_kernel::node;

#[test]
fn made_once_then_left_alone() {
    let lab = Lab::new();
    let mut wanted = node_plan(vec![bridge("br0", &["10.1.0.1/24", "fd00:1::1/64"])]);
    wanted.bridges[0].mtu = Some(1400);
    wanted.bridges[0].promisc = true;
    wanted.masquerades.push(Masquerade {
        network: "blue".parse().unwrap(),
        source: net("10.1.0.0/24"),
        except: vec![],
    });
    let first = node::ensure(&wanted, &lab.side).unwrap();
    assert!(first.changes.len() >= 6, "{first:?}");
    let ns = lab.node.ns();
    let dump = || {
        ns.sh("ip -o link show br0; ip -o addr show br0; sysctl -a 2>/dev/null | grep -E 'ip_forward|br0.accept_ra'; nft list ruleset")
    };
    let before = dump();
    for text in [
        "mtu 1400",
        "PROMISC",
        ",UP",
        "10.1.0.1/24 brd 10.1.0.255",
        "fd00:1::1/64",
        "net.ipv6.conf.br0.accept_ra = 0",
        "net.ipv4.ip_forward = 1",
        "masquerade",
    ] {
        assert!(before.contains(text), "no {text:?} in\n{before}");
    }
    let second = node::ensure(&wanted, &lab.side).unwrap();
    assert_eq!(second.changes, Vec::<String>::new());
    assert_eq!(dump(), before);
    let mac = || {
        let observed = node::observe(&wanted, &lab.side).unwrap();
        observed.link(&ifname("br0")).unwrap().mac.unwrap()
    };
    let first = mac();
    // A port with a lower MAC does not change the bridge's.
    ns.sh("ip link add v0 address 00:00:00:00:00:01 type veth peer name v1; ip link set v0 master br0");
    assert_eq!(mac(), first);
}

#[test]
fn what_went_missing_is_put_back() {
    let lab = Lab::new();
    let wanted = node_plan(vec![bridge("br0", &["10.1.0.1/24", "fd00:1::1/64"])]);
    node::ensure(&wanted, &lab.side).unwrap();
    lab.node
        .ns()
        .sh("ip link set br0 down; ip addr flush dev br0; echo 0 >/proc/sys/net/ipv4/ip_forward");
    let changes = node::ensure(&wanted, &lab.side).unwrap().changes;
    assert_eq!(changes.len(), 4, "{changes:?}");
    assert_eq!(node::ensure(&wanted, &lab.side).unwrap().changes.len(), 0);
}

#[test]
fn a_link_that_is_no_bridge_is_refused() {
    let lab = Lab::new();
    let error = node::ensure(&node_plan(vec![bridge("eth1", &[])]), &lab.side).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("eth1 exists on the node already but is a veth"),
        "{error}"
    );
}

#[test]
fn another_address_is_refused_or_replaced() {
    let lab = Lab::new();
    node::ensure(&node_plan(vec![bridge("br0", &["10.1.0.1/24"])]), &lab.side).unwrap();
    let mut other = node_plan(vec![bridge("br0", &["10.2.0.1/24"])]);
    let error = node::ensure(&other, &lab.side).unwrap_err().to_string();
    assert!(
        error.contains("10.1.0.1/24") && error.contains("10.2.0.1/24"),
        "{error}"
    );
    other.bridges[0].force_address = true;
    node::ensure(&other, &lab.side).unwrap();
    let seen = lab.node.ns().sh("ip -4 -o addr show br0");
    assert!(
        seen.contains("10.2.0.1/24") && !seen.contains("10.1.0.1"),
        "{seen}"
    );
}

#[test]
fn many_threads_make_one_bridge_and_one_rule() {
    let lab = Lab::new();
    let mut wanted = node_plan(vec![bridge("br0", &["10.1.0.1/24"])]);
    wanted.masquerades.push(Masquerade {
        network: "blue".parse().unwrap(),
        source: net("10.1.0.0/24"),
        except: vec![],
    });
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| node::ensure(&wanted, &lab.side).unwrap());
        }
    });
    assert_eq!(
        lab.node
            .ns()
            .sh("nft list ruleset")
            .matches("masquerade")
            .count(),
        1
    );
}

#[test]
fn nothing_wanted_nothing_done() {
    let lab = Lab::new();
    assert_eq!(
        node::ensure(&NodePlan::default(), &lab.side)
            .unwrap()
            .changes
            .len(),
        0
    );
}
