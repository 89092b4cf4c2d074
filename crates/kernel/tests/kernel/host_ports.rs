//! Ports of the node that lead to pods, by packets.

use crate::fabric_lab::{Fabric, FabricNode, chain};
use crate::lab::{Pod, forwarding, plan, routed};
use plexus_core::plan::{HostPort, NodePlan, PodPlan, Protocol};
use plexus_kernel::nft::host_ports;
use plexus_kernel::{node, pod};
use plexus_testkit::Running;
use std::process::Command;

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

fn call(from: &plexus_testkit::NetNs, to: &str, port: u16) -> Option<String> {
    let script = format!(
        "python3 -c 'import socket; c = socket.create_connection((\"{to}\", {port}), 2); print(c.recv(99).decode())' 2>/dev/null || true"
    );
    let answer = from.sh(&script);
    (!answer.trim().is_empty()).then(|| answer.trim().to_owned())
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
            let outside = call(&lab.outside, to, port);
            let seen = outside.expect("the outside reaches the port");
            let source = if family == 4 {
                "192.0.2.1"
            } else {
                "2001:db8::1"
            };
            assert!(seen.ends_with(source), "{seen}: its source is not kept");
            assert!(
                call(&node.ns, to, port).is_some(),
                "the node reaches its own port"
            );
            assert!(
                call(&other.ns, to, port).is_some(),
                "another pod reaches it"
            );
            assert!(call(&one.ns, to, port).is_some(), "the pod reaches itself");
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
    assert!(call(&lab.outside, "192.0.2.51", 8080).is_some());
    assert_eq!(call(&lab.outside, "192.0.2.51", 8081), None);
    // Again is fine; restored after somebody flushed; gone with the pod.
    host_ports::add(&node.side, &plan).unwrap();
    assert_eq!(host_ports::list(&node.side).unwrap().len(), 5);
    node.ns.sh("nft flush ruleset");
    assert_eq!(call(&lab.outside, "192.0.2.11", 8080), None);
    pod::restore_node(&plan, &node.side).unwrap();
    assert!(call(&lab.outside, "192.0.2.11", 8080).is_some());
    assert_eq!(
        host_ports::restore(&node.side, &plan.host_ports).unwrap(),
        0
    );
    pod::remove(&plan, Some(&one.netns), &node.side).unwrap();
    pod::remove(&plan, Some(&one.netns), &node.side).unwrap();
    assert_eq!(host_ports::list(&node.side).unwrap(), []);
    assert!(!node.ns.sh("nft list ruleset").contains("10.8.0.2"));
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
    assert_eq!(host_ports::restore(&node.side, &[]).unwrap(), 1);
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
    assert!(
        call(&lab.outside, "192.0.2.11", 8080)
            .unwrap()
            .starts_with("one")
    );
    // As kube-proxy has it, in its own table.
    node.ns.sh(
        "nft 'add table ip kube; add chain ip kube in { type nat hook prerouting priority dstnat; }; \
         add rule ip kube in ip daddr 192.0.2.11 tcp dport 8080 dnat to 10.8.0.3:80'",
    );
    assert!(
        call(&lab.outside, "192.0.2.11", 8080)
            .unwrap()
            .starts_with("two")
    );
}
