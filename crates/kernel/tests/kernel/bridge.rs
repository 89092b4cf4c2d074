use crate::lab::{Lab, bridge, host_end, ifname, node_plan, plan, port};
use plexus_core::plan::LinkKind;
use plexus_kernel::node;

#[test]
fn pods_talk_over_a_bridge_dual_stack() {
    let lab = Lab::new();
    node::ensure(
        &node_plan(vec![bridge("br0", &["10.1.0.1/24", "fd00:1::1/64"])]),
        &lab.side,
    )
    .unwrap();
    let (one, two) = (lab.pod("one"), lab.pod("two"));
    let applied = lab.apply(
        &plan(
            1,
            vec![port("c1", "eth0", "br0", &["10.1.0.2/24", "fd00:1::2/64"])],
        ),
        &one,
    );
    let end = applied.node.link(&host_end("c1", "eth0").name).unwrap();
    assert!(end.up && end.master.is_some());
    assert_eq!(
        end.alias.as_deref(),
        Some(crate::lab::alias("c1", "eth0").as_str())
    );
    assert_eq!(end.mac, Some(host_end("c1", "eth0").mac));
    assert_eq!(
        applied.pod.link(&ifname("eth0")).unwrap().group,
        0x8000_0001
    );
    lab.apply(
        &plan(
            2,
            vec![port("c2", "eth0", "br0", &["10.1.0.3/24", "fd00:1::3/64"])],
        ),
        &two,
    );
    for address in ["10.1.0.1", "10.1.0.3", "fd00:1::1", "fd00:1::3"] {
        assert!(one.ns.pings(address), "{address} does not answer");
    }
    assert!(lab.node.ns().pings("10.1.0.2"));
}

#[test]
fn hairpin_and_mtu() {
    let lab = Lab::new();
    node::ensure(&node_plan(vec![bridge("br0", &[])]), &lab.side).unwrap();
    let pod = lab.pod("one");
    let mut link = port("c1", "eth0", "br0", &["10.1.0.2/24"]);
    link.mtu = Some(1400);
    if let LinkKind::Veth(end) = &mut link.kind {
        end.hairpin = true;
        end.mtu = Some(1400);
    }
    lab.apply(&plan(1, vec![link]), &pod);
    let end = host_end("c1", "eth0").name;
    let seen = lab.node.ns().sh(&format!("ip -d -o link show {end}"));
    assert!(
        seen.contains("hairpin on") && seen.contains("mtu 1400"),
        "{seen}"
    );
    assert!(pod.ns.sh("ip link show eth0").contains("mtu 1400"));
}

#[test]
fn settings_of_the_host_end_are_set_on_the_node() {
    let lab = Lab::new();
    node::ensure(&node_plan(vec![bridge("br0", &[])]), &lab.side).unwrap();
    let pod = lab.pod("one");
    let mut link = port("c1", "eth0", "br0", &[]);
    let name = host_end("c1", "eth0").name;
    let key = format!("net/ipv6/conf/{name}/accept_ra");
    if let LinkKind::Veth(end) = &mut link.kind {
        end.settings.push(plexus_core::plan::Setting {
            key: key.clone(),
            value: "0".into(),
        });
    }
    lab.apply(&plan(1, vec![link]), &pod);
    assert_eq!(
        lab.node.ns().sh(&format!("cat /proc/sys/{key}")).trim(),
        "0"
    );
}
