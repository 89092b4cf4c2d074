//! Who may speak to tunnels, by packets: nodes, and no pod of whatever CNI.

use crate::fabric_lab::{Fabric, FabricNode, Network};
use crate::lab::Pod;
use plexus_core::fabric::vtep_mac;
use plexus_kernel::nft::guard::set_peers;
use plexus_kernel::nft::restore_missing;
use plexus_testkit::NetNs;
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
    let ends = (STRANGER, node.address);
    injects_between(ends, stranger, network, node, victim, to)
}

/// The same, under any address.
fn injects_between(
    (from, tunnel): (&str, &str),
    stranger: &Pod,
    network: &Network,
    node: &FabricNode,
    victim: &Pod,
    to: &str,
) -> bool {
    let (mac, vni) = (vtep_mac(&network.uid, &node.name), network.vni);
    stranger.ns.sh(&format!(
        "ip link del vx 2>/dev/null || true; \
         ip link add vx type vxlan id {vni} local {from} remote {tunnel} dstport 4789 nolearning; \
         ip addr add 10.7.200.66/32 dev vx; ip link set vx up; ip route add {to}/32 dev vx; \
         ip neigh add {to} lladdr {mac} dev vx nud permanent"
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
    let mut peers = fabric.peers();
    peers.push(STRANGER.parse().unwrap());
    assert_eq!(set_peers(&first.side, &peers).unwrap(), 1);
    // One packet may be late on a busy machine; none at all is the fault.
    assert!((0..5).any(|_| reaches(first, &here, "10.7.0.2")));
    assert!((0..5).any(|_| reaches(second, &there, "10.7.1.2")));
}

/// Two nodes, of which only the second has a router, and a pod of another CNI on the first.
struct NoRouterHere {
    fabric: Fabric,
    blue: Network,
    stranger: Pod,
    there: Pod,
}

impl NoRouterHere {
    fn new() -> Self {
        let fabric = Fabric::new();
        let blue = Network::new("blue", 4097);
        let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
        let router = blue.router(second);
        second.ensure(&router);
        let remotes = blue.remotes(&fabric, second);
        plexus_kernel::router::set_remotes(&second.side, &router, &remotes, &[]).unwrap();
        let (there, _) = second.pod_of(&blue, "there", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
        let stranger = stranger(first);
        Self {
            fabric,
            blue,
            stranger,
            there,
        }
    }

    fn injects(&self) -> bool {
        let second = &self.fabric.nodes[1];
        injects(&self.stranger, &self.blue, second, &self.there, "10.7.1.2")
    }

    /// The same in two fragments: the first ends before the VNI.
    fn injects_in_fragments(&self, source: &str) -> bool {
        let second = &self.fabric.nodes[1];
        let mac = vtep_mac(&self.blue.uid, &second.name).to_string();
        let script = format!(
            "import socket, struct\n\
             def checksum(b):\n\
             \x20   s = sum(struct.unpack(f\"!{{len(b) // 2}}H\", b))\n\
             \x20   s = (s >> 16) + (s & 0xffff)\n\
             \x20   return ~(s + (s >> 16)) & 0xffff\n\
             a = socket.inet_aton\n\
             ip = lambda n, f, p, s, d, c=0: struct.pack(\"!BBHHHBBH4s4s\", 0x45, 0, 20 + n, 7, f, 64, p, c, a(s), a(d))\n\
             inner = ip(8, 0, 1, \"10.7.200.66\", \"10.7.1.2\")\n\
             inner = ip(8, 0, 1, \"10.7.200.66\", \"10.7.1.2\", checksum(inner))\n\
             icmp = struct.pack(\"!BBHHH\", 8, 0, 0, 7, 7)\n\
             icmp = struct.pack(\"!BBHHH\", 8, 0, checksum(icmp), 7, 7)\n\
             mac = bytes.fromhex(\"{}\")\n\
             vxlan = struct.pack(\"!II\", 1 << 27, {} << 8) + mac + b\"\\2\\0\\0\\0\\0\\1\\10\\0\" + inner + icmp\n\
             udp = struct.pack(\"!HHHH\", 40001, 4789, 8 + len(vxlan), 0)\n\
             s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)\n\
             to = (\"{to}\", 0)\n\
             s.sendto(ip(8, 0x2000, 17, \"{source}\", to[0]) + udp, to)\n\
             s.sendto(ip(len(vxlan), 1, 17, \"{source}\", to[0]) + vxlan, to)\n",
            mac.replace(':', ""),
            self.blue.vni,
            to = second.address,
        );
        let seen = "timeout 3 tcpdump -c 1 -ni eth0 'icmp and src 10.7.200.66'";
        watched(&self.there, seen, || python(&self.stranger.ns, &script))
    }

    /// Whether the pod gets what the second node sends to the first one's tunnel: it has sent to there from
    /// the tunnel's port, so that the node takes this for an answer.
    fn gets_what_is_not_its_own(&self) -> bool {
        self.gets_as(&self.stranger, STRANGER)
    }

    fn gets_as(&self, pod: &Pod, own: &str) -> bool {
        let (first, second) = (&self.fabric.nodes[0], &self.fabric.nodes[1]);
        let send = |from: (&str, u16), to: (&str, u16)| {
            format!(
                "import socket, struct\n\
                 s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                 s.bind({from:?})\n\
                 s.sendto(struct.pack(\"!II\", 1 << 27, {} << 8) + bytes(60), {to:?})\n",
                self.blue.vni
            )
        };
        let seen = "timeout 3 tcpdump -c 1 -ni eth0 'src 192.0.2.12 and udp dst port 4789'";
        pod.ns.sh("ip link del vx 2>/dev/null || true");
        watched(pod, seen, || {
            python(&pod.ns, &send((own, 4789), (second.address, 40000)));
            python(
                &second.ns,
                &send((second.address, 40000), (first.address, 4789)),
            );
        })
    }
}

fn python(ns: &NetNs, script: &str) {
    ns.sh(&format!("python3 - <<'EOF'\n{script}EOF\n"));
}

/// Whether the pod sees a packet while something is done.
fn watched(pod: &Pod, watch: &str, act: impl FnOnce()) -> bool {
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || pod.ns.try_sh(watch));
        std::thread::sleep(std::time::Duration::from_millis(700));
        act();
        watch.join().unwrap()
    })
}

#[test]
fn a_node_without_routers_lets_no_pod_speak_to_tunnels() {
    let lab = NoRouterHere::new();
    let first = &lab.fabric.nodes[0];
    assert!(!lab.injects(), "under its node's address");
    assert!(!lab.injects_in_fragments(STRANGER), "in fragments");
    assert!(!lab.gets_what_is_not_its_own(), "as an answer");
    // It is the rules that keep it out.
    first.ns.sh("nft flush chain inet plexus through");
    assert!((0..5).any(|_| lab.injects()));
    assert!((0..5).any(|_| lab.injects_in_fragments(STRANGER)));
    assert!((0..5).any(|_| lab.gets_what_is_not_its_own()));
    // They come back.
    assert!(!restore_missing(&first.side).unwrap().is_empty());
    assert!(!lab.injects(), "after the rules are back");
}

/// A pod of an overlay of ours that masquerades is a pod whose packets the node sends under its own address, too.
#[test]
fn an_overlay_with_snat_is_no_way_to_tunnels() {
    const OWN: &str = "10.7.0.9";
    let lab = NoRouterHere::new();
    let (first, second) = (&lab.fabric.nodes[0], &lab.fabric.nodes[1]);
    let mut green = Network::new("green", 4098);
    green.snat = true;
    first.ensure(&green.router(first));
    let (pod, _) = first.pod_of(&green, "green", &["10.7.0.9/32"]);
    assert!(pod.ns.pings(second.address), "it has no way out");
    let injects = || {
        let ends = (OWN, second.address);
        injects_between(ends, &pod, &lab.blue, second, &lab.there, "10.7.1.2")
    };
    assert!(!injects(), "under its node's address");
    assert!(!lab.gets_as(&pod, OWN), "as an answer");
    // It is the rules that keep it out.
    first.ns.sh("nft flush chain inet plexus through");
    assert!((0..5).any(|_| injects()));
    assert!((0..5).any(|_| lab.gets_as(&pod, OWN)));
}

/// A pod of another CNI sends under the address of a node that it is not on. Neither kernel nor CNI minds.
fn sends_as_a_node(ends: [&str; 2], third: &str) {
    let fabric = Fabric::new();
    let blue = Network::new("blue", 5241);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    let mut peers = fabric.peers();
    peers.push(third.parse().unwrap());
    for (node, address) in fabric.nodes.iter().zip(ends) {
        set_peers(&node.side, &peers).unwrap();
        node.ensure(&blue.router_at(address, &node.name));
    }
    let (here, _) = first.pod_of(&blue, "here", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (there, _) = second.pod_of(&blue, "there", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    let stranger = stranger(first);
    first.ns.sh(
        "ip addr add fd00:172::1/64 dev other0 nodad; cd /proc/sys/net; echo 1 >ipv6/conf/all/forwarding; \
         for i in all other0; do echo 0 >ipv4/conf/$i/rp_filter; done",
    );
    stranger.ns.sh(&format!(
        "ip addr add fd00:172::2/64 dev eth0 nodad; ip route add default via fd00:172::1; \
         ip addr add {third} dev eth0 nodad; ip addr add {} dev eth0 nodad",
        ends[1]
    ));
    let to_first = || {
        let ends = (ends[1], ends[0]);
        injects_between(ends, &stranger, &blue, first, &here, "10.7.0.2")
    };
    let to_second = || {
        let ends = (third, ends[1]);
        injects_between(ends, &stranger, &blue, second, &there, "10.7.1.2")
    };
    assert!(!to_first(), "{}: to its own node", ends[1]);
    stranger.ns.sh(&format!("ip addr del {} dev eth0", ends[1]));
    assert!(!to_second(), "{third}: through its node");
    // It is the rule that keeps it out.
    first.ns.sh("nft flush chain inet plexus arrivals");
    assert!((0..5).any(|_| to_second()));
    stranger
        .ns
        .sh(&format!("ip addr add {} dev eth0 nodad", ends[1]));
    assert!((0..5).any(|_| to_first()));
}

#[test]
fn a_pod_that_sends_as_a_node_is_not_taken_for_one() {
    sends_as_a_node(["192.0.2.11", "192.0.2.12"], "192.0.2.13");
}

#[test]
fn a_pod_that_sends_as_a_node_is_not_taken_for_one_by_ipv6() {
    sends_as_a_node(["2001:db8::11", "2001:db8::12"], "2001:db8::13");
}

#[test]
fn a_tunnel_ends_at_an_address_of_the_node_that_others_know() {
    let lab = NoRouterHere::new();
    let (first, second) = (&lab.fabric.nodes[0], &lab.fabric.nodes[1]);
    second
        .ns
        .sh("ip link add gateway type bridge; ip addr add 172.17.0.1/24 dev gateway; ip link set gateway up");
    first.ns.sh("ip route add 172.17.0.0/24 via 192.0.2.12");
    let mac = vtep_mac(&lab.blue.uid, &second.name);
    lab.stranger.ns.sh(&format!(
        "ip link add vx type vxlan id {} local {STRANGER} remote 172.17.0.1 dstport 4789 nolearning; \
         ip addr add 10.7.200.66/32 dev vx; ip link set vx up; ip route add 10.7.1.2/32 dev vx; \
         ip neigh add 10.7.1.2 lladdr {mac} dev vx nud permanent",
        lab.blue.vni
    ));
    let reaches = || {
        let seen = "timeout 3 tcpdump -c 1 -ni eth0 'icmp and src 10.7.200.66'";
        let ping = "ping -c 3 -i 0.2 -W 1 -I 10.7.200.66 10.7.1.2";
        watched(&lab.there, seen, || {
            lab.stranger.ns.try_sh(ping);
        })
    };
    assert!(!reaches(), "by the address of a bridge");
    second.ns.sh("nft flush chain inet plexus tunnels");
    assert!((0..5).any(|_| reaches()));
}

#[test]
fn vxlan_of_others_on_the_same_port_is_left_alone() {
    let lab = NoRouterHere::new();
    let (first, second) = (&lab.fabric.nodes[0], &lab.fabric.nodes[1]);
    let theirs = |ns: &NetNs, vni: u32, remote: &str, address: &str| {
        ns.sh(&format!(
            "ip link add vx{vni} type vxlan id {vni} remote {remote} dstport 4789; \
             ip addr add {address}/24 dev vx{vni}; ip link set vx{vni} up"
        ));
    };
    // Another CNI's between nodes, and with a machine that is none.
    theirs(&first.ns, 4096, second.address, "10.99.0.1");
    theirs(&second.ns, 4096, first.address, "10.99.0.2");
    assert!(first.ns.pings("10.99.0.2"));
    theirs(&first.ns, 4000, "192.0.2.1", "10.98.0.1");
    theirs(&lab.fabric.outside, 4000, first.address, "10.98.0.2");
    assert!(first.ns.pings("10.98.0.2"));
    // A pod's own, to a machine that is no node: whatever its number.
    theirs(&lab.stranger.ns, 5300, "192.0.2.1", "10.97.0.1");
    theirs(&lab.fabric.outside, 5300, first.address, "10.97.0.2");
    lab.stranger
        .ns
        .sh("ip neigh add 10.97.0.2 lladdr 02:00:00:00:00:09 dev vx5300 nud permanent");
    let arrives = std::thread::scope(|scope| {
        let seen = "timeout 3 tcpdump -c 1 -ni vx5300 'icmp and src 10.97.0.1'";
        let watch = scope.spawn(|| lab.fabric.outside.try_sh(seen));
        std::thread::sleep(std::time::Duration::from_millis(700));
        lab.stranger.ns.try_sh("ping -c 3 -i 0.2 -W 1 10.97.0.2");
        watch.join().unwrap()
    });
    assert!(arrives, "a pod's own VXLAN does not leave");
}

#[test]
fn peers_are_exactly_those_that_were_told_and_come_back_with_the_rules() {
    let fabric = Fabric::new();
    let blue = Network::new("blue", 5211);
    let (first, second) = (&fabric.nodes[0], &fabric.nodes[1]);
    assert_eq!(set_peers(&first.side, &fabric.peers()).unwrap(), 0);
    // A node without routers has them too.
    let seen = first.ns.sh("nft list table inet plexus");
    for text in [
        "elements = { 192.0.2.11, 192.0.2.12 }",
        "2001:db8::12 }",
        "ip saddr != @peers4 drop",
        "ip6 saddr != @peers6 drop",
        "ip daddr != @peers4 drop",
        "ip6 saddr != @peers6 ip6 daddr @peers6 drop",
        "ip saddr @peers4 ip daddr != @peers4 drop",
    ] {
        assert!(seen.contains(text), "no {text:?} in\n{seen}");
    }
    fabric.network(&blue);
    let (here, _) = first.pod_of(&blue, "here", &["10.7.0.2/32", "fd00:7::2/128"]);
    let (_there, _) = second.pod_of(&blue, "there", &["10.7.1.2/32", "fd00:7:0:1::2/128"]);
    first.ns.sh("nft flush ruleset");
    assert!(!first.ensure(&blue.router(first)).is_empty());
    assert_eq!(first.ensure(&blue.router(first)), Vec::<String>::new());
    assert!(here.ns.pings("10.7.1.2"));
    // Nobody is a peer: nothing comes in, and it can be told again.
    assert_eq!(set_peers(&first.side, &[]).unwrap(), 4);
    assert!(here.ns.silent("10.7.1.2"));
    let many: Vec<IpAddr> = (0..1500_u32)
        .map(|i| IpAddr::from((0x0a63_0000 + i).to_be_bytes()))
        .chain(fabric.peers())
        .collect();
    assert_eq!(set_peers(&first.side, &many).unwrap(), 1504);
    assert_eq!(set_peers(&first.side, &many).unwrap(), 0);
    assert!(here.ns.pings("10.7.1.2"));
}
