//! Ports of the node that lead to pods, by packets.

use crate::fabric_lab::{Fabric, FabricNode, chain};
use crate::lab::{self, Lab, Pod, bridge, forwarding, node_plan, plan, routed};
use plexus_core::plan::{HostPort, LinkKind, Masquerade, NodePlan, PodPlan, Protocol};
use plexus_kernel::nft::{self, host_ports};
use plexus_kernel::{clear, node, pod};
use plexus_testkit::{NetNs, Running};
use std::process::Command;
use std::slice::from_ref;
use std::time::{Duration, Instant};

fn port(protocol: Protocol, on: Option<&str>, port: u16, to: &str) -> HostPort {
    HostPort {
        protocol,
        host_ip: on.map(|ip| ip.parse().unwrap()),
        port,
        to: to.parse().unwrap(),
    }
}

fn pod_with(node: &FabricNode, name: &str, address: &str, ports: Vec<HostPort>) -> (Pod, PodPlan) {
    let forward = NodePlan {
        settings: forwarding(),
        ..NodePlan::default()
    };
    node::ensure(&forward, &node.side).unwrap();
    let pod = node.pod(name);
    let addresses = [
        format!("10.8.0.{address}/32"),
        format!("fd00:8::{address}/128"),
    ];
    let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
    let mut wanted = plan(
        address.parse().unwrap(),
        vec![routed(name, "eth0", &addresses)],
    );
    wanted.host_ports = ports;
    pod::apply(&wanted, &pod.netns, &node.side).unwrap_or_else(|e| panic!("{}", chain(&e)));
    (pod, wanted)
}

const SERVER: &str = r#"
import socket, sys
s = socket.socket(socket.AF_INET6); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("::", 80)); s.listen()
while True:
    c, a = s.accept(); c.sendall((sys.argv[1] + " " + a[0]).encode()); c.close()
"#;

fn serve(pod: &Pod, name: &str) -> Server {
    let mut command = Command::new("python3");
    command.args(["-c", SERVER, name]);
    let server = Server(Running::start(&pod.ns, "server", command, Vec::new()));
    plexus_testkit::eventually("the server listens", || {
        pod.ns.try_sh("ss -ltn | grep -q :80")
    });
    server
}

/// Gone with the test.
struct Server(Running);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// What the other side says, which may take as long as the kernel asks for neighbours.
#[track_caller]
fn call(from: &NetNs, to: &str, port: u16) -> String {
    let start = Instant::now();
    loop {
        if let Some(answer) = call_once(from, to, port) {
            return answer;
        }
        let tried = start.elapsed();
        assert!(tried < Duration::from_secs(10), "{to}:{port} is silent");
    }
}

/// Whether nobody answers, as far as two seconds tell.
fn is_silent(from: &NetNs, to: &str, port: u16) -> bool {
    call_once(from, to, port).is_none()
}

fn call_once(from: &NetNs, to: &str, port: u16) -> Option<String> {
    let script = format!(
        "python3 -c 'import socket; c = socket.create_connection((\"{to}\", {port}), 2); print(c.recv(99).decode())' 2>/dev/null || true"
    );
    let answer = from.sh(&script);
    (!answer.trim().is_empty()).then(|| answer.trim().to_owned())
}

/// `route_localnet` of a link of the node.
fn is_open(node: &NetNs, link: &str) -> bool {
    let path = format!("/proc/sys/net/ipv4/conf/{link}/route_localnet");
    node.sh(&format!("cat {path}")).trim() == "1"
}

#[test]
fn lead_to_the_pod_from_everywhere() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    let ports = vec![
        port(Protocol::Tcp, None, 8080, "10.8.0.2:80"),
        port(Protocol::Tcp, Some("::"), 8080, "[fd00:8::2]:80"),
        port(Protocol::Tcp, Some("192.0.2.11"), 8081, "10.8.0.2:80"),
        port(Protocol::Tcp, Some("2001:db8::11"), 8081, "[fd00:8::2]:80"),
        port(Protocol::Udp, None, 53, "10.8.0.2:53"),
    ];
    let (one, plan) = pod_with(node, "one", "2", ports);
    let (other, _) = pod_with(node, "other", "3", vec![]);
    let _server = serve(&one, "one");
    for (to, family) in [("192.0.2.11", 4), ("2001:db8::11", 6)] {
        for port in [8080, 8081] {
            let seen = call(&lab.outside, to, port);
            let source = if family == 4 {
                "192.0.2.1"
            } else {
                "2001:db8::1"
            };
            assert!(seen.ends_with(source), "{seen}: its source is not kept");
            // So do the node, another pod and the pod itself.
            for from in [&node.ns, &other.ns, &one.ns] {
                call(from, to, port);
            }
        }
    }
    let listed = node.ns.sh("nft list table inet plexus");
    for text in [
        "tcp . 8080 : 10.8.0.2 . 80",
        "192.0.2.11 . tcp . 8081 : 10.8.0.2 . 80",
        "udp . 53 : 10.8.0.2 . 53",
    ] {
        assert!(listed.contains(text), "no {text:?} in\n{listed}");
    }
    // A second address of the node is not the one that 8081 is for.
    node.ns.sh("ip addr add 192.0.2.51/24 dev eth0");
    call(&lab.outside, "192.0.2.51", 8080);
    assert!(is_silent(&lab.outside, "192.0.2.51", 8081));
    // Again is fine; restored after somebody flushed; gone with the pod.
    host_ports::add(&node.side, &plan).unwrap();
    assert_eq!(host_ports::list(&node.side).unwrap().len(), 5);
    node.ns.sh("nft flush ruleset");
    assert!(is_silent(&lab.outside, "192.0.2.11", 8080));
    pod::restore_node(&plan, &node.side).unwrap();
    call(&lab.outside, "192.0.2.11", 8080);
    restore(node, &plan);
    assert_eq!(restore(node, &plan), [""; 0]);
    // One of the two elements of a port was removed by hand, or is too many.
    let way_back = |verb: &str, pod: &str| {
        node.ns.sh(&format!(
            "nft {verb} element inet plexus ports4-self '{{ {pod} . {pod} }}'"
        ));
    };
    way_back("delete", "10.8.0.2");
    way_back("add", "10.8.0.99");
    assert!(is_silent(&one.ns, "192.0.2.11", 8080));
    restore(node, &plan);
    call(&one.ns, "192.0.2.11", 8080);
    assert!(!node.ns.sh("nft list ruleset").contains("10.8.0.99"));
    way_back("delete", "10.8.0.2");
    pod::remove(&plan, Some(&one.netns), &node.side).unwrap();
    pod::remove(&plan, Some(&one.netns), &node.side).unwrap();
    assert_eq!(host_ports::list(&node.side).unwrap(), []);
    assert!(!node.ns.sh("nft list ruleset").contains("10.8.0.2"));
}

/// From a pod that sends packets to the node's loopback.
const INTRUDER: &str = r#"
import socket, sys
s = socket.socket(); s.settimeout(2)
s.connect((sys.argv[1], 99)); print(s.recv(99).decode())
"#;

const SECRET: &str = r#"
import socket
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 99)); s.listen()
while True:
    c, a = s.accept(); c.sendall(a[0].encode()); c.close()
"#;

/// Says who sent the first datagram, if one comes.
const LISTENER: &str = r#"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
s.bind(("192.0.2.11", 99)); print(s.recvfrom(9)[1][0])
"#;

const SENDER: &str = r#"
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 0)); s.sendto(b"hello", ("192.0.2.11", 99))
"#;

/// Whether one datagram from that address of the pod comes to the node.
fn arrives(pod: &NetNs, node: &NetNs, from: &str) -> bool {
    let heard = std::thread::scope(|scope| {
        let listen = format!("python3 -c '{LISTENER}' 2>/dev/null || true");
        let listener = scope.spawn(move || node.sh(&listen));
        plexus_testkit::eventually("it listens", || node.try_sh("ss -lun | grep -q :99"));
        pod.sh(&format!("python3 -c '{SENDER}' {from}"));
        listener.join().unwrap()
    });
    heard.contains(from)
}

fn restore(node: &FabricNode, plan: &PodPlan) -> Vec<String> {
    let restored = nft::restore(&node.side, from_ref(plan));
    restored.unwrap_or_else(|e| panic!("{}", chain(&e)))
}

fn start(ns: &NetNs, script: &str) -> Server {
    let mut command = Command::new("python3");
    command.args(["-c", script]);
    let server = Server(Running::start(ns, "secret", command, Vec::new()));
    plexus_testkit::eventually("it listens", || ns.try_sh("ss -ltn | grep -q :99"));
    server
}

#[test]
fn the_nodes_loopback_leads_to_the_pod_and_nobody_to_the_loopback() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    let ports = vec![
        port(Protocol::Tcp, None, 8080, "10.8.0.2:80"),
        port(Protocol::Tcp, None, 8080, "[fd00:8::2]:80"),
        port(Protocol::Tcp, Some("192.0.2.11"), 8081, "10.8.0.2:80"),
        port(Protocol::Tcp, Some("127.0.0.1"), 8082, "10.8.0.2:80"),
        port(Protocol::Tcp, Some("127.0.0.9"), 8083, "10.8.0.2:80"),
        port(Protocol::Tcp, None, 99, "10.8.0.2:80"),
    ];
    let (one, plan) = pod_with(node, "one", "2", ports);
    let _server = serve(&one, "one");
    let seen = call(&node.ns, "127.0.0.1", 8080);
    assert!(!seen.contains("127.0.0.1"), "nobody to answer to: {seen}");
    assert!(is_silent(&node.ns, "127.0.0.1", 8081), "of another address");
    assert!(is_silent(&node.ns, "::1", 8080), "the kernel has no way");
    // A port of the loopback is nobody else's.
    for (address, port) in [("127.0.0.1", 8082), ("127.0.0.9", 8083)] {
        call(&node.ns, address, port);
        assert!(is_silent(&node.ns, "192.0.2.11", port));
        assert!(is_silent(&lab.outside, "192.0.2.11", port));
    }
    // What listens on another address of it, as a resolver does, is left alone.
    let _resolver = start(&node.ns, &SECRET.replace("0.0.0.0", "127.0.0.53"));
    assert_eq!(call(&node.ns, "127.0.0.53", 99), "127.0.0.1");
    assert!(call(&node.ns, "127.0.0.1", 99).starts_with("one"));

    // Somebody reset it, or an earlier version has not set it.
    let end = lab::host_end("one", "eth0").name;
    let close = format!("echo 0 > /proc/sys/net/ipv4/conf/{end}/route_localnet");
    node.ns.sh(&close);
    assert!(is_silent(&node.ns, "127.0.0.1", 8080));
    restore(node, &plan);
    call(&node.ns, "127.0.0.1", 8080);
    // It is not open for nothing.
    nft::restore(&node.side, &[]).unwrap();
    assert!(!is_open(&node.ns, end.as_str()));
    restore(node, &plan);
    assert!(is_open(&node.ns, end.as_str()));
}

#[test]
fn only_the_guard_keeps_pods_from_the_nodes_loopback() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    let ports = vec![port(Protocol::Tcp, None, 8080, "10.8.0.2:80")];
    let (one, _) = pod_with(node, "one", "2", ports);
    let _secret = start(&node.ns, SECRET);
    // The pod has its own loopback away, and sends what it means for the node's.
    one.ns.sh("ip addr flush dev lo
         ip addr add 127.0.0.7/32 dev eth0
         echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet
         ip route add 127.0.0.1 via 169.254.1.1 dev eth0 onlink src 10.8.0.2");
    node.ns.sh("cd /proc/sys/net/ipv4/conf
         for i in all px*; do echo 0 > $i/rp_filter; echo 1 > $i/accept_local; done");
    let intrude = |to: &str| {
        let script = format!("python3 -c '{INTRUDER}' {to} 2>/dev/null");
        one.ns.try_sh(&script)
    };
    let soon = |what: &dyn Fn() -> bool| plexus_testkit::within(Duration::from_secs(10), what);
    assert!(soon(&|| intrude("192.0.2.11")), "it can call at all");
    assert!(!intrude("127.0.0.1"));
    let arrives = |from: &str| arrives(&one.ns, &node.ns, from);
    assert!(soon(&|| arrives("10.8.0.2")), "it can send at all");
    assert!(!arrives("127.0.0.7"));
    node.ns.sh("nft flush chain inet plexus ports-guard");
    assert!(soon(&|| intrude("127.0.0.1")));
    assert!(soon(&|| arrives("127.0.0.7")));
    // Looked at now and then, it is back.
    assert!(!nft::restore_missing(&node.side).unwrap().is_empty());
    assert!(!intrude("127.0.0.1") && !arrives("127.0.0.7"));
    assert!(soon(&|| intrude("192.0.2.11")));
}

#[test]
fn what_others_lead_on_the_loopback_keeps_its_source() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    let ports = vec![port(Protocol::Tcp, None, 8080, "10.8.0.2:80")];
    let _pod = pod_with(node, "one", "2", ports);
    let _secret = start(&node.ns, SECRET);
    node.ns.sh(
        "nft 'add table ip theirs; add chain ip theirs out { type nat hook output priority -100; }; \
         add rule ip theirs out ip daddr 127.0.0.1 tcp dport 98 redirect to :99'",
    );
    assert_eq!(call(&node.ns, "127.0.0.1", 98), "127.0.0.1");
}

#[test]
fn rules_that_somebody_flushed_come_back_with_all_that_they_had() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    assert_eq!(nft::restore_missing(&node.side).unwrap(), [""; 0]);
    let (one, first) = pod_with(
        node,
        "one",
        "2",
        vec![port(Protocol::Tcp, None, 8080, "10.8.0.2:80")],
    );
    let masquerade = |name: &str, source: &str| Masquerade {
        network: name.parse().unwrap(),
        source: lab::net(source),
        except: vec![],
    };
    let blue = masquerade("blue", "10.8.0.0/24");
    nft::ensure(
        &node.side,
        &[blue.clone(), masquerade("red", "10.9.0.0/24")],
    )
    .unwrap();
    let mut checked = plan(7, vec![routed("checked", "eth0", &["10.8.0.7/32"])]);
    let LinkKind::Veth(end) = &mut checked.links[0].kind else {
        panic!("routed is a veth");
    };
    end.source_check = true;
    let pod = node.pod("checked");
    pod::apply(&checked, &pod.netns, &node.side).unwrap();
    nft::remove(&node.side, &"red".parse().unwrap()).unwrap();
    let rules = || {
        let shown = node.ns.sh("nft list ruleset");
        let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let before = rules();
    assert_eq!(nft::restore_missing(&node.side).unwrap(), [""; 0]);
    for flush in [
        "flush ruleset",
        "flush table inet plexus",
        "flush chain inet plexus sources",
    ] {
        node.ns.sh(&format!("nft {flush}"));
        assert!(
            !nft::restore_missing(&node.side).unwrap().is_empty(),
            "{flush}"
        );
        assert_eq!(rules(), before, "{flush}");
        assert_eq!(nft::restore_missing(&node.side).unwrap(), [""; 0]);
    }
    // Who comes meanwhile takes nobody's port.
    node.ns.sh("nft flush ruleset");
    let other = PodPlan {
        host_ports: vec![port(Protocol::Tcp, None, 8080, "10.8.0.7:80")],
        ..checked.clone()
    };
    let error = host_ports::add(&node.side, &other).unwrap_err().to_string();
    assert!(error.contains("8080/tcp is taken"), "{error}");
    // What is gone does not come back; the guard does, whoever was led.
    pod::remove(&first, Some(&one.netns), &node.side).unwrap();
    node.ns.sh("nft flush ruleset");
    nft::restore_missing(&node.side).unwrap();
    let after = rules().join("\n");
    assert!(
        after.contains("127.0.0.0/8 drop") && !after.contains("10.8.0.2"),
        "{after}"
    );
    assert!(!after.contains("10.9.0.0"), "{after}");
}

/// The table cannot be put back, because somebody else's is in its place.
#[test]
fn without_the_guard_the_loopback_leads_nowhere() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    let ports = vec![port(Protocol::Tcp, None, 8080, "10.8.0.2:80")];
    let (one, _) = pod_with(node, "one", "2", ports);
    let _server = serve(&one, "one");
    let end = lab::host_end("one", "eth0").name;
    assert!(is_open(&node.ns, end.as_str()));
    node.ns.sh("nft 'flush ruleset; add table inet plexus; add chain inet plexus ports-guard; add set inet plexus ports4 { type ipv4_addr; }'");
    let error = nft::restore_missing(&node.side).unwrap_err();
    assert!(
        chain(&error).contains("do not answer on 127.0.0.1"),
        "{}",
        chain(&error)
    );
    assert!(!is_open(&node.ns, end.as_str()));
    node.ns.sh("nft delete table inet plexus");
    nft::restore_missing(&node.side).unwrap();
    assert!(is_open(&node.ns, end.as_str()));
    call(&node.ns, "127.0.0.1", 8080);
}

#[test]
fn on_a_bridge_too_if_it_is_ours() {
    let lab = Lab::new();
    let ns = lab.node.ns();
    ns.sh("ip link add theirs type bridge");
    let bridges = vec![
        bridge("br0", &["10.1.0.1/24"]),
        bridge("theirs", &["10.2.0.1/24"]),
    ];
    node::ensure(&node_plan(bridges), &lab.side).unwrap();
    let (pod, other) = (lab.pod("one"), lab.pod("other"));
    let mut wanted = plan(1, vec![lab::port("c1", "eth0", "br0", &["10.1.0.2/24"])]);
    wanted.host_ports = vec![port(Protocol::Tcp, None, 8080, "10.1.0.2:80")];
    lab.apply(&wanted, &pod);
    let mut theirs = plan(2, vec![lab::port("c2", "eth0", "theirs", &["10.2.0.2/24"])]);
    theirs.host_ports = vec![port(Protocol::Tcp, None, 8081, "10.2.0.2:80")];
    lab.apply(&theirs, &other);
    let _server = serve(&pod, "one");
    call(ns, "127.0.0.1", 8080);
    assert!(is_open(ns, "br0") && !is_open(ns, "theirs"));
    pod::remove(&wanted, Some(&pod.netns), &lab.side).unwrap();
    assert!(is_silent(ns, "127.0.0.1", 8080));
    pod::remove(&theirs, Some(&other.netns), &lab.side).unwrap();
    // A bridge that others use stays, and is closed before its guard goes; theirs is as they have it.
    ns.sh(
        "ip link add used0 type veth peer used1; ip link set used0 master br0
         echo 1 > /proc/sys/net/ipv4/conf/theirs/route_localnet",
    );
    assert!(is_open(ns, "br0"));
    let cleared = clear::clear(&lab.side, &["br0", "theirs"].map(lab::ifname));
    assert_eq!(cleared.problems, [""; 0]);
    assert_eq!(cleared.left.len(), 2, "{cleared:?}");
    assert!(!is_open(ns, "br0") && is_open(ns, "theirs"));
    assert!(!ns.sh("nft list tables").contains("plexus"));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    let (one, first) = pod_with(
        node,
        "one",
        "2",
        vec![port(Protocol::Tcp, None, 8080, "10.8.0.2:80")],
    );
    let wanted = |ports| PodPlan {
        group: 9,
        links: vec![],
        host_ports: ports,
    };
    for on in [None, Some("192.0.2.11"), Some("0.0.0.0")] {
        let second = wanted(vec![
            port(Protocol::Udp, None, 8080, "10.8.0.3:80"),
            port(Protocol::Tcp, on, 8080, "10.8.0.3:80"),
        ]);
        let error = host_ports::add(&node.side, &second)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("8080/tcp is taken") && error.contains("10.8.0.2:80"),
            "{error}"
        );
    }
    // Nothing of it was made, and removing it takes nothing from the first.
    assert_eq!(host_ports::list(&node.side).unwrap(), first.host_ports);
    let second = wanted(vec![port(Protocol::Tcp, None, 8080, "10.8.0.3:80")]);
    host_ports::remove(&node.side, &second).unwrap();
    assert_eq!(host_ports::list(&node.side).unwrap(), first.host_ports);
    let mixed = wanted(vec![port(Protocol::Tcp, Some("::1"), 8082, "10.8.0.3:80")]);
    assert!(host_ports::add(&node.side, &mixed).is_err());
    let tunnels = wanted(vec![port(Protocol::Udp, None, 4789, "10.8.0.3:80")]);
    let error = host_ports::add(&node.side, &tunnels).unwrap_err();
    assert!(error.to_string().contains("4789/udp"), "{error}");
    // The last to leave makes room.
    pod::remove(&first, Some(&one.netns), &node.side).unwrap();
    host_ports::add(&node.side, &second).unwrap();
    nft::restore(&node.side, &[]).unwrap();
    assert_eq!(host_ports::list(&node.side).unwrap(), []);
}

#[test]
fn a_service_of_the_same_port_wins() {
    let lab = Fabric::new();
    let node = &lab.nodes[0];
    let (one, _) = pod_with(
        node,
        "one",
        "2",
        vec![port(Protocol::Tcp, None, 8080, "10.8.0.2:80")],
    );
    let (two, _) = pod_with(node, "two", "3", vec![]);
    let (_a, _b) = (serve(&one, "one"), serve(&two, "two"));
    assert!(call(&lab.outside, "192.0.2.11", 8080).starts_with("one"));
    // As kube-proxy has it, in its own table.
    node.ns.sh(
        "nft 'add table ip kube; add chain ip kube in { type nat hook prerouting priority dstnat; }; \
         add rule ip kube in ip daddr 192.0.2.11 tcp dport 8080 dnat to 10.8.0.3:80'",
    );
    assert!(call(&lab.outside, "192.0.2.11", 8080).starts_with("two"));
}
