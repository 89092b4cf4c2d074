//! Networks with the same addresses do not meet: not directly, not by way of the node, the gateway or
//! the tunnel, not with another's address as source; on one node, across nodes, IPv4 and IPv6.

use crate::common::{
    NETWORKS, address, apply, attachments, contrail_nad, echoes, network_object, node_ips,
    output_of, pings, pod, ready, silent, who,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Namespace, Object, test_cluster};

const SAME: &str = r#"["10.50.0.0/24", "fd00:50::/64"]"#;

/// Pods of blue and red with the same addresses, one that only red has, one on green.
struct TwoNetworks<'a> {
    kube: &'a dyn Cluster,
    namespace: Namespace<'a>,
}

impl TwoNetworks<'_> {
    fn pod(&self, name: &str) -> Object {
        self.namespace.pod(name)
    }

    fn vni(&self, network: &str) -> u64 {
        let object = network_object(self.namespace.name(), network);
        let seen = self
            .kube
            .wait_for(&object, TIMEOUT, &|net| net["status"]["vni"].is_u64());
        seen.expect("a VNI")["status"]["vni"]
            .as_u64()
            .expect("a VNI")
    }
}

fn test_cluster() -> TwoNetworks<'static> {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "isolation").expect("a namespace");
    let ns = namespace.name();
    let asks = |network: &str, v4: &str, v6: &str| {
        format!(r#"[{{"name": "{network}", "ips": ["{v4}/24", "{v6}/64"]}}]"#)
    };
    let pods = [
        ("blue-a", "n1", asks("blue", "10.50.0.5", "fd00:50::5")),
        ("blue-b", "n2", asks("blue", "10.50.0.70", "fd00:50::70")),
        ("red-a", "n1", asks("red", "10.50.0.5", "fd00:50::5")),
        ("red-b", "n2", asks("red", "10.50.0.70", "fd00:50::70")),
        ("red-c", "n1", asks("red", "10.50.0.7", "fd00:50::7")),
        ("green-a", "n1", asks("green", "10.51.0.5", "fd00:51::5")),
    ];
    let mut objects = vec![
        contrail_nad(ns, "blue", SAME, &[]),
        contrail_nad(ns, "red", SAME, &[]),
        contrail_nad(ns, "green", r#"["10.51.0.0/24", "fd00:51::/64"]"#, &[]),
    ];
    for (name, node, asks) in &pods {
        objects.push(pod(ns, name, node, &[(NETWORKS, asks)]));
    }
    apply(kube, &objects);
    let all: Vec<Object> = pods.iter().map(|(name, ..)| namespace.pod(name)).collect();
    ready(kube, &all.iter().collect::<Vec<_>>());
    TwoNetworks { kube, namespace }
}

#[test]
fn networks_with_the_same_addresses_do_not_meet() {
    let test_cluster = test_cluster();
    each_reaches_its_own(&test_cluster);
    let (red_c, green_a) = (test_cluster.pod("red-c"), test_cluster.pod("green-a"));
    let before = (
        echoes(test_cluster.kube, &red_c),
        echoes(test_cluster.kube, &green_a),
    );
    nobody_reaches_another(&test_cluster);
    nobody_reaches_another_with_its_address(&test_cluster);
    let after = (
        echoes(test_cluster.kube, &red_c),
        echoes(test_cluster.kube, &green_a),
    );
    assert_eq!(before, after, "something arrived");
    nobody_pretends_in_its_own(&test_cluster);
    nobody_speaks_to_the_tunnel(&test_cluster);
}

fn each_reaches_its_own(test_cluster: &TwoNetworks<'_>) {
    let kube = test_cluster.kube;
    for (colour, other) in [("blue", "blue-b"), ("red", "red-b")] {
        let here = test_cluster.pod(&format!("{colour}-a"));
        assert_eq!(address(kube, &here, "net1", false), "10.50.0.5");
        assert_eq!(address(kube, &here, "net1", true), "fd00:50::5");
        for there in ["10.50.0.70", "fd00:50::70"] {
            assert!(pings(kube, &here, there), "{here} {there}");
            assert_eq!(who(kube, &here, there), other, "{there}");
        }
        // The gateway is the last usable address, and answers.
        let gateways = &attachments(kube, &here)[1]["gateways"];
        assert_eq!(gateways[0], "10.50.0.254", "{gateways}");
        for gateway in gateways.as_array().expect("gateways") {
            let gateway = gateway.as_str().expect("an address");
            assert!(
                pings(kube, &here, &format!("-I net1 {gateway}")),
                "{gateway}"
            );
        }
    }
    let red_a = test_cluster.pod("red-a");
    for there in ["10.50.0.7", "fd00:50::7"] {
        assert_eq!(who(kube, &red_a, there), "red-c", "{there}");
    }
}

/// From blue, and from the node, to addresses that only red and green have.
fn nobody_reaches_another(test_cluster: &TwoNetworks<'_>) {
    let (kube, blue_a, blue_b) = (
        test_cluster.kube,
        test_cluster.pod("blue-a"),
        test_cluster.pod("blue-b"),
    );
    for only_red in ["10.50.0.7", "fd00:50::7"] {
        assert!(silent(kube, &blue_a, only_red), "{only_red}");
        assert!(silent(kube, &blue_b, only_red), "{only_red}");
        let node = kube.on_node("n1", &["ping", "-c1", "-W1", only_red]);
        assert!(!node.expect("runs").ok(), "the node reaches {only_red}");
    }
    // By way of the node, and by way of the gateway: here and from the other node.
    for here in [&blue_a, &blue_b] {
        for (there, gateway) in [
            ("10.50.0.7", "169.254.1.1"),
            ("fd00:50::7", "fe80::1"),
            ("10.51.0.5", "169.254.1.1"),
            ("fd00:51::5", "fe80::1"),
        ] {
            for link in ["eth0", "net1"] {
                let blocked = blocked(kube, here, "", there, gateway, link);
                assert!(blocked, "{here} {there} {link}");
            }
        }
    }
}

fn nobody_reaches_another_with_its_address(test_cluster: &TwoNetworks<'_>) {
    let (kube, blue_a, blue_b) = (
        test_cluster.kube,
        test_cluster.pod("blue-a"),
        test_cluster.pod("blue-b"),
    );
    for here in [&blue_a, &blue_b] {
        for (there, gateway, source) in [
            ("10.51.0.5", "169.254.1.1", "10.51.0.9"),
            ("fd00:51::5", "fe80::1", "fd00:51::9"),
        ] {
            for link in ["eth0", "net1"] {
                let blocked = blocked(kube, here, source, there, gateway, link);
                assert!(blocked, "{here} {source} {there} {link}");
            }
        }
    }
}

/// In its own network a pod sends from its own addresses only.
fn nobody_pretends_in_its_own(test_cluster: &TwoNetworks<'_>) {
    let (kube, blue_a, blue_b) = (
        test_cluster.kube,
        test_cluster.pod("blue-a"),
        test_cluster.pod("blue-b"),
    );
    let before = echoes(kube, &blue_b);
    for (there, source) in [("10.50.0.70", "10.50.0.9"), ("fd00:50::70", "fd00:50::9")] {
        assert!(
            blocked(kube, &blue_a, source, there, "", "net1"),
            "{source}"
        );
    }
    assert_eq!(echoes(kube, &blue_b), before, "something arrived");
    // All of it was undone, and what is allowed still works.
    assert!(pings(kube, &blue_a, "10.50.0.70"));
}

/// A packet made to look like one of red's tunnel is not taken from a pod, though it would be from a
/// node.
fn nobody_speaks_to_the_tunnel(test_cluster: &TwoNetworks<'_>) {
    let (kube, red_c) = (test_cluster.kube, test_cluster.pod("red-c"));
    let vni = test_cluster.vni("red");
    let mac = tunnel_mac(kube, "n1", vni);
    let node = &node_ips(kube, "n1")[0];
    let script = forged(vni, &mac, node);
    let before = echoes(kube, &red_c);
    for pod in ["blue-a", "blue-b", "green-a"] {
        output_of(kube, &test_cluster.pod(pod), &script);
    }
    assert_eq!(echoes(kube, &red_c), before, "a pod's packet arrived");
    let sent = kube.on_node("n2", &["sh", "-c", &script]).expect("runs");
    sent.text().expect("sent");
    assert_eq!(
        echoes(kube, &red_c),
        before + 3,
        "the packet is not what it should be"
    );
}

/// The MAC address of a network's tunnel on a node.
fn tunnel_mac(kube: &dyn Cluster, node: &str, vni: u64) -> String {
    let script = format!(
        "for router in {}/*; do \
           nsenter --net=$router ip -o -d link show type vxlan | grep 'vxlan id {vni} '; \
         done | grep -o 'link/ether [0-9a-f:]*' | cut -d' ' -f2",
        kube.files(node).expect("known").routers
    );
    let found = kube.on_node(node, &["sh", "-c", &script]).expect("runs");
    let mac = found.text().expect("found").trim().to_owned();
    assert_eq!(mac.len(), 17, "{mac:?}");
    mac
}

/// Sends an echo request to 10.50.0.7 inside of VXLAN, three times.
fn forged(vni: u64, mac: &str, to: &str) -> String {
    let python = format!(
        "import socket, struct\n\
         def checksum(b):\n\
         \x20   s = sum(struct.unpack(f\"!{{len(b) // 2}}H\", b))\n\
         \x20   s = (s >> 16) + (s & 0xffff)\n\
         \x20   return ~(s + (s >> 16)) & 0xffff\n\
         icmp = lambda c: struct.pack(\"!BBHHH\", 8, 0, c, 7, 7)\n\
         ip = lambda c: struct.pack(\"!BBHHHBBH4s4s\", 0x45, 0, 28, 1, 0, 64, 1, c, \
             socket.inet_aton(\"10.50.0.70\"), socket.inet_aton(\"10.50.0.7\"))\n\
         inner = ip(checksum(ip(0))) + icmp(checksum(icmp(0)))\n\
         ether = bytes.fromhex(\"{}\") + bytes.fromhex(\"020000000001\") + b\"\\x08\\x00\"\n\
         packet = struct.pack(\"!II\", 0x08000000, {vni} << 8) + ether + inner\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         for _ in range(3): s.sendto(packet, (\"{to}\", 4789))\n",
        mac.replace(':', "")
    );
    format!("python3 -c '{python}'")
}

/// Whether pings stay unanswered while the pod has a route of its own, and (if there is one) an address
/// that is not its own.
fn blocked(
    kube: &dyn Cluster,
    pod: &Object,
    source: &str,
    to: &str,
    via: &str,
    link: &str,
) -> bool {
    let v6 = to.contains(':');
    let (onlink, length) = if v6 { ("", "128") } else { ("onlink", "32") };
    let nodad = if v6 { "nodad" } else { "" };
    let mut script = "set -e; ".to_owned();
    let mut undo = String::new();
    let mut from = String::new();
    if !source.is_empty() {
        script.push_str(&format!(
            "ip addr add {source}/{length} dev {link} {nodad}; "
        ));
        undo.push_str(&format!("ip addr del {source}/{length} dev {link}; "));
        from = format!("-I {source}");
    }
    if !via.is_empty() {
        let route = format!("{to} via {via} dev {link} {onlink}");
        script.push_str(&format!("ip route add {route}; "));
        undo.insert_str(0, &format!("ip route del {route}; "));
    }
    // Unanswered: status 1. Could not be sent, because the node said so: the same.
    let ping = format!("ping -n -c 2 -i 0.2 -W 1 -w 1 {from} {to} >/dev/null && answered=yes; ");
    output_of(
        kube,
        pod,
        &format!("{script} answered=no; {ping} {undo} echo $answered"),
    )
    .trim()
        == "no"
}
