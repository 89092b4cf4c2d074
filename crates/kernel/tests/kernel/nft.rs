use crate::lab::{Lab, Pod, bridge, net, node_plan, plan, port};
use plexus_core::plan::{Masquerade, Route};
use plexus_kernel::{events, nft, node};
use std::time::Duration;

fn masquerade(network: &str, source: &str) -> Masquerade {
    Masquerade {
        network: network.parse().unwrap(),
        source: net(source),
        except: vec![],
    }
}

#[test]
fn the_real_nft_reads_our_rules() {
    let lab = Lab::new();
    let wanted = [
        masquerade("blue", "10.1.0.0/24"),
        masquerade("blue", "fd00:1::/64"),
        masquerade("red", "10.2.0.7/32"),
        masquerade("red", "10.2.0.7/32"),
    ];
    assert_eq!(nft::ensure(&lab.side, &wanted).unwrap().len(), 3);
    let listed = lab.node.ns().sh("nft list table inet plexus");
    for text in [
        "type nat hook postrouting priority srcnat; policy accept;",
        "ip saddr 10.1.0.0/24 ip daddr != 10.1.0.0/24 ip daddr != 224.0.0.0/4 masquerade comment \"plexus blue\"",
        "ip6 saddr fd00:1::/64 ip6 daddr != fd00:1::/64 ip6 daddr != ff00::/8 masquerade comment \"plexus blue\"",
        "ip saddr 10.2.0.7 ip daddr != 10.2.0.7 ip daddr != 224.0.0.0/4 masquerade comment \"plexus red\"",
    ] {
        assert!(listed.contains(text), "no {text:?} in\n{listed}");
    }
    assert_eq!(nft::list(&lab.side).unwrap().len(), 3);
}

#[test]
fn once_is_enough_and_a_duplicate_goes() {
    let lab = Lab::new();
    let wanted = [masquerade("blue", "10.1.0.0/24")];
    nft::ensure(&lab.side, &wanted).unwrap();
    assert_eq!(
        nft::ensure(&lab.side, &wanted).unwrap(),
        Vec::<String>::new()
    );
    assert_eq!(
        lab.node
            .ns()
            .sh("nft list ruleset")
            .matches("masquerade")
            .count(),
        1
    );
    // A stranger's rule and table are none of our business.
    lab.node.ns().sh(
        "nft add rule inet plexus postrouting ip saddr 1.2.3.4 counter; nft add table inet other",
    );
    nft::ensure(&lab.side, &[masquerade("red", "10.2.0.0/24")]).unwrap();
    assert_eq!(nft::remove(&lab.side, &"blue".parse().unwrap()).unwrap(), 1);
    assert_eq!(nft::remove(&lab.side, &"blue".parse().unwrap()).unwrap(), 0);
    let left = lab.node.ns().sh("nft list ruleset");
    assert!(
        left.contains("plexus red") && left.contains("1.2.3.4") && left.contains("inet other"),
        "{left}"
    );
    assert!(!left.contains("plexus blue"), "{left}");
}

#[test]
fn changes_are_told_of_this_node_alone() {
    let (lab, other) = (Lab::new(), Lab::new());
    let changes = plexus_kernel::Changes::of_nftables(&lab.side).unwrap();
    let told = || events::wait(&[&changes], Some(Duration::ZERO)).unwrap();
    assert_eq!(told(), None);
    for change in ["nft add table inet other", "nft flush ruleset"] {
        lab.node.ns().sh(change);
        assert_eq!((told(), told()), (Some(0), None), "{change}");
        other.node.ns().sh(change);
        assert_eq!(told(), None, "{change} elsewhere");
    }
    nft::list(&lab.side).unwrap();
    assert_eq!(told(), None, "looking is no change");
}

#[test]
fn the_longest_name_fits() {
    let lab = Lab::new();
    let name = "n".repeat(200);
    let wanted = [masquerade(
        &name,
        "fd00:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124",
    )];
    nft::ensure(&lab.side, &wanted).unwrap();
    assert_eq!(nft::ensure(&lab.side, &wanted).unwrap().len(), 0);
    assert_eq!(nft::list(&lab.side).unwrap(), [(name, wanted[0].source)]);
}

#[test]
fn packets_leave_under_the_nodes_address() {
    let lab = Lab::new();
    let mut wanted = node_plan(vec![bridge("br0", &["10.1.0.1/24", "fd00:1::1/64"])]);
    wanted.masquerades = vec![
        masquerade("blue", "10.1.0.0/24"),
        masquerade("blue", "fd00:1::/64"),
    ];
    let pod = bridged_pod(&lab);
    // The outside knows no way back to the pod's addresses: only a rewritten source gets answers.
    assert!(!pod.is_some_and(|_| true), "made before its bridge");
    node::ensure(&wanted, &lab.side).unwrap();
    let pod = bridged_pod(&lab).expect("the bridge is there now");
    for address in ["192.0.2.1", "2001:db8::1"] {
        assert!(pod.ns.pings(address), "{address} does not answer");
    }
    nft::remove(&lab.side, &"blue".parse().unwrap()).unwrap();
    lab.node.ns().sh("conntrack -F 2>/dev/null || true");
    assert!(pod.ns.silent("192.0.2.1"), "an answer without masquerading");
}

fn bridged_pod(lab: &Lab) -> Option<Pod> {
    let pod = lab.pod("one");
    let mut link = port("c1", "eth0", "br0", &["10.1.0.2/24", "fd00:1::2/64"]);
    link.routes.push(Route::new(
        net("0.0.0.0/0"),
        Some("10.1.0.1".parse().unwrap()),
    ));
    link.routes
        .push(Route::new(net("::/0"), Some("fd00:1::1".parse().unwrap())));
    plexus_kernel::pod::apply(&plan(1, vec![link]), &pod.netns, &lab.side)
        .ok()
        .map(|_| pod)
}

#[test]
fn exceptions_see_the_real_source() {
    let lab = Lab::new();
    let mut wanted = masquerade("blue", "10.1.0.0/24");
    nft::ensure(&lab.side, &[wanted.clone()]).unwrap();
    wanted.except = vec![net("10.9.0.0/25"), net("fd00::/8"), net("10.9.0.128/25")];
    // The changed rule takes the place of the old one, and neighbouring ranges are one.
    assert_eq!(nft::ensure(&lab.side, &[wanted.clone()]).unwrap().len(), 2);
    assert_eq!(nft::ensure(&lab.side, &[wanted.clone()]).unwrap().len(), 0);
    let listed = lab.node.ns().sh("nft list table inet plexus");
    let rule = "ip daddr != 224.0.0.0/4 ip daddr != 10.9.0.0/24 masquerade";
    assert!(listed.contains(rule), "{listed}");
    assert_eq!(listed.matches("masquerade").count(), 1, "{listed}");
    wanted.except = (0..33)
        .map(|i| net(&format!("10.9.{}.0/24", 2 * i)))
        .collect();
    let error = nft::ensure(&lab.side, &[wanted.clone()]).unwrap_err();
    assert!(error.to_string().contains("33 exceptions"), "{error}");
    wanted.except.pop();
    nft::ensure(&lab.side, &[wanted]).unwrap();
}
