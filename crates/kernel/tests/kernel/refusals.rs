//! Plans that the kernel refuses: each error names the object and the likely cause.

use crate::lab::{Lab, Pod, ifname, net, plan, port, set_option};
use plexus_core::plan::{LinkKind, PodPlan, Route};
use plexus_kernel::pod;
use plexus_types::MacvlanMode;

fn refusal(lab: &Lab, plan: &PodPlan, pod: &Pod) -> String {
    let error = pod::apply(plan, &pod.netns, &lab.side).unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let removed = pod::remove(plan, Some(&pod.netns), &lab.side);
    assert!(removed.is_ok(), "{removed:?}");
    format!("{error}: {}", cause.unwrap_or_default())
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

#[test]
fn the_name_is_taken() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    pod.ns.sh("ip link add net1 type bridge");
    let text = refusal(&lab, &plan(1, vec![lab.macvlan("c1", "net1", &[])]), &pod);
    contains(
        &text,
        &[
            "net1",
            "an interface called net1 exists already in the namespace",
            "File exists",
        ],
    );
    assert!(
        pod.ns.sh("ip -o link show net1").contains("net1"),
        "the foreign link was removed"
    );
}

#[test]
fn the_parent_is_gone() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let mut link = lab.macvlan("c1", "net1", &[]);
    if let LinkKind::Stacked(stacked) = &mut link.kind {
        stacked.parent.index = 4242;
    }
    let text = refusal(&lab, &plan(1, vec![link]), &pod);
    contains(
        &text,
        &["net1", "parent eth1 (index 4242) is gone", "No such device"],
    );
}

#[test]
fn passthru_wants_a_free_parent() {
    let lab = Lab::new();
    let (one, two) = (lab.pod("one"), lab.pod("two"));
    lab.apply(&plan(1, vec![lab.macvlan("c1", "net1", &[])]), &one);
    let mut link = lab.macvlan("c2", "net1", &[]);
    link.mac = None;
    set_option(&mut link, "mode", MacvlanMode::Passthru.number());
    let text = refusal(&lab, &plan(2, vec![link]), &two);
    contains(&text, &["net1", "eth1 cannot carry it", "passthru"]);
}

#[test]
fn the_parent_is_a_bridge_port() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    lab.node
        .ns()
        .sh("ip link add br0 type bridge; ip link set eth1 master br0");
    let text = refusal(&lab, &plan(1, vec![lab.macvlan("c1", "net1", &[])]), &pod);
    contains(&text, &["net1", "eth1"]);
}

#[test]
fn the_bridge_is_missing() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let text = refusal(&lab, &plan(1, vec![port("c1", "eth0", "br7", &[])]), &pod);
    contains(&text, &["eth0", "no bridge br7"]);
    assert!(!pod.ns.sh("ip -o link").contains("eth0"));
}

#[test]
fn the_next_hop_is_elsewhere() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let mut link = lab.macvlan("c1", "net1", &["192.0.2.11/24"]);
    link.routes.push(Route::new(
        net("10.0.0.0/8"),
        Some("172.31.0.1".parse().unwrap()),
    ));
    let text = refusal(&lab, &plan(1, vec![link]), &pod);
    contains(
        &text,
        &[
            "add route 10.0.0.0/8 via 172.31.0.1 dev net1",
            "next hop",
            pod.ns.name(),
        ],
    );
    assert!(!pod.ns.sh("ip -o link").contains("net1"));
}

#[test]
fn a_mac_is_used_twice() {
    let lab = Lab::new();
    let (one, two) = (lab.pod("one"), lab.pod("two"));
    let first = lab.macvlan("c1", "net1", &[]);
    let mut second = lab.macvlan("c2", "net1", &[]);
    second.mac = first.mac;
    lab.apply(&plan(1, vec![first]), &one);
    let text = refusal(&lab, &plan(2, vec![second]), &two);
    contains(&text, &["net1", "in use"]);
}

#[test]
fn a_setting_that_does_not_exist() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let mut link = lab.macvlan("c1", "net1", &[]);
    link.settings[0].key = "net/ipv4/conf/net1/no_such_key".into();
    let text = refusal(&lab, &plan(1, vec![link]), &pod);
    contains(&text, &["net1", "net/ipv4/conf/net1/no_such_key"]);
    let mut link = lab.macvlan("c1", "net1", &[]);
    link.settings[0].key = "net/../kernel/panic".into();
    contains(
        &refusal(&lab, &plan(1, vec![link]), &pod),
        &["is not legal"],
    );
}

#[test]
fn an_absurd_mtu() {
    let lab = Lab::new();
    let pod = lab.pod("one");
    let mut link = lab.macvlan("c1", "net1", &[]);
    link.mtu = Some(65000);
    contains(
        &refusal(&lab, &plan(1, vec![link]), &pod),
        &["net1", "eth1"],
    );
    assert_eq!(ifname("net1").as_str(), "net1");
}
