//! Who may speak to tunnels, by packets: nodes, and no pod of whatever CNI.

use crate::fabric_lab::{Fabric, FabricNode, Network};
use crate::lab::Pod;
use plexus_core::fabric::vtep_mac;
use plexus_kernel::nft::guard::set_peers;
use std::net::IpAddr;

const STRANGER: &str = "172.16.0.2";

/// A pod that another CNI has connected: by a veth of its own, and with the right to make tunnels.
fn stranger(node: &FabricNode) -> Pod {
    let pod = node.pod("stranger");
    node.ns.sh(&format!(
        "ip link add other0 type veth peer name eth0 netns {}; ip addr add 172.16.0.1/24 dev other0; \
         ip link set other0 up; echo 1 >/proc/sys/net/ipv4/ip_forward; \
         nft add table ip theirs; \
         nft add chain ip theirs leave '{{ type nat hook postrouting priority srcnat; }}'; \
         nft add rule ip theirs leave ip saddr 172.16.0.0/24 oifname eth0 masquerade",
        pod.ns.name()
    ));
    pod.ns.sh(&format!(
        "ip addr add {STRANGER}/24 dev eth0; ip link set eth0 up; ip route add default via 172.16.0.1"
    ));
    pod
}

/// Whether a packet that the stranger puts into the network by the tunnel of `node` reaches a pod there.
fn injects(stranger: &Pod, network: &Network, node: &FabricNode, victim: &Pod, to: &str) -> bool {
    let (mac, vni) = (vtep_mac(&network.uid, &node.name), network.vni);
    stranger.ns.sh(&format!(
        "ip link del vx 2>/dev/null || true; \
         ip link add vx type vxlan id {vni} local {STRANGER} remote {} dstport 4789 nolearning; \
         ip addr add 10.7.200.66/32 dev vx; ip link set vx up; ip route add {to}/32 dev vx; \
         ip neigh add {to} lladdr {mac} dev vx nud permanent",
        node.address
    ));
    std::thread::scope(|scope| {
        let watch = "timeout 3 tcpdump -c 1 -ni eth0 'icmp and src 10.7.200.66'";
        let watch = scope.spawn(move || victim.ns.try_sh(watch));
        std::thread::sleep(std::time::Duration::from_millis(700));
        let ping = format!("ping -c 3 -i 0.2 -W 1 -I 10.7.200.66 {to}");
        stranger.ns.try_sh(&ping);
        watch.join().unwrap()
    })
}

#[test]
fn pods_of_other_cnis_do_not_write_into_networks() {
    let fabric = Fabric::new();
    let blue = Network::new("blue", 5201);
    fabric.network(&blue);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    let (here, _) = first.pod_of(&blue, "here", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (there, _) = second.pod_of(&blue, "there", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    assert!(here.ns.pings("10.7.1.2"));
    let stranger = stranger(first);
    let reaches = |node, victim, to| injects(&stranger, &blue, node, victim, to);
    assert!(!reaches(first, &here, "10.7.0.2"), "by its own node");
    assert!(
        !reaches(second, &there, "10.7.1.2"),
        "under its node's address"
    );
    assert!(here.ns.pings("10.7.1.2"));

    // It is the sets that keep it out.
    let mut peers = fabric.peers(first);
    peers.push(STRANGER.parse().unwrap());
    assert_eq!(set_peers(&first.side, &peers).unwrap(), 1);
    // One packet may be late on a busy machine; none at all is the fault.
    assert!((0..5).any(|_| reaches(first, &here, "10.7.0.2")));
    assert!((0..5).any(|_| reaches(second, &there, "10.7.1.2")));
}

#[test]
fn peers_are_exactly_those_that_were_told_and_come_back_with_the_rules() {
    let fabric = Fabric::new();
    let blue = Network::new("blue", 5211);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    assert_eq!(set_peers(&first.side, &fabric.peers(first)).unwrap(), 0);
    // Without routers other users of the port are left alone.
    let seen = first.ns.sh("nft list table inet plexus");
    assert!(seen.contains("peers4") && !seen.contains("drop"), "{seen}");
    fabric.network(&blue);
    let seen = first.ns.sh("nft list table inet plexus");
    for text in [
        "elements = { 192.0.2.12 }",
        "elements = { 2001:db8::12 }",
        "ip saddr != @peers4 drop",
        "ip6 saddr != @peers6 drop",
    ] {
        assert!(seen.contains(text), "no {text:?} in\n{seen}");
    }
    let (here, _) = first.pod_of(&blue, "here", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (_there, _) = second.pod_of(&blue, "there", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    first.ns.sh("nft flush ruleset");
    assert!(!first.ensure(&blue.router(first)).is_empty());
    assert_eq!(first.ensure(&blue.router(first)), Vec::<String>::new());
    assert!(here.ns.pings("10.7.1.2"));
    // Nobody is a peer: nothing comes in, and it can be told again.
    assert_eq!(set_peers(&first.side, &[]).unwrap(), 2);
    assert!(here.ns.silent("10.7.1.2"));
    let many: Vec<IpAddr> = (0..1500_u32)
        .map(|i| IpAddr::from((0x0a63_0000 + i).to_be_bytes()))
        .chain(fabric.peers(first))
        .collect();
    assert_eq!(set_peers(&first.side, &many).unwrap(), 1502);
    assert_eq!(set_peers(&first.side, &many).unwrap(), 0);
    assert!(here.ns.pings("10.7.1.2"));
}
