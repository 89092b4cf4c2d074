//! Named namespaces joined by wires, and pings that say whom they reached.

use plexus_kernel::echo::{Echo, Heard, wait};
use plexus_kernel::wires::{self, Bridge, Wire};
use plexus_kernel::{Netns, named};
use plexus_testkit::run;
use plexus_types::Mac;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Namespaces that are gone when the test is.
struct Spaces(Vec<String>);

impl Spaces {
    fn new(names: &[&str]) -> Self {
        named::prepare().unwrap();
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("px-wires-{}-{name}", std::process::id()))
            .collect();
        for name in &names {
            named::ensure(name).unwrap();
        }
        Self(names)
    }

    fn open(&self, index: usize) -> Netns {
        Netns::open(named::path(&self.0[index])).unwrap()
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = named::remove(name);
        }
    }
}

fn bridge(name: &str, addresses: &[&str]) -> Bridge {
    Bridge {
        name: name.to_owned(),
        mac: Mac::derived(&["wires", name]),
        addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
    }
}

fn wire(node: &str, bridge: &str, inner: &str, addresses: &[&str]) -> Wire {
    Wire {
        bridge: bridge.to_owned(),
        outer: format!("{node}{inner}"),
        inner: inner.to_owned(),
        mac: Mac::derived(&["wires", node, inner]),
        addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        mtu: None,
        up: true,
    }
}

/// Whether a ping from one namespace reaches the other, by the other's own word, and is answered. What is lost
/// while a wire comes up is tried again for long: the kernel asks for neighbours once a second.
fn reaches(from: &Netns, to: &Netns, address: &str, token: u64) -> bool {
    reaches_within(Duration::from_secs(10), from, to, address, token)
}

/// Whether none does, as far as a second tells.
fn is_apart(from: &Netns, to: &Netns, address: &str, token: u64) -> bool {
    !reaches_within(Duration::from_secs(1), from, to, address, token)
}

fn reaches_within(limit: Duration, from: &Netns, to: &Netns, address: &str, token: u64) -> bool {
    let address: IpAddr = address.parse().unwrap();
    let v6 = address.is_ipv6();
    let out = Echo::open(from, v6, None).unwrap();
    let there = Echo::open(to, v6, None).unwrap();
    let start = Instant::now();
    let (mut arrived, mut answered) = (false, false);
    let mut next = Duration::ZERO;
    while start.elapsed() < limit && !(arrived && answered) {
        if start.elapsed() >= next {
            let _ = out.send(address, token);
            next += Duration::from_millis(200);
        }
        wait(&[&out, &there], Duration::from_millis(50));
        arrived |= there.heard().contains(&Heard::Request(token));
        answered |= out.heard().contains(&Heard::Reply(token));
    }
    arrived && answered
}

#[test]
fn wires_join_are_cut_and_joined_again() {
    let spaces = Spaces::new(&["hub", "a", "b"]);
    let (hub, a, b) = (spaces.open(0), spaces.open(1), spaces.open(2));
    let bridges = [
        bridge("br0", &["10.9.0.254/24", "fd09::fe/64"]),
        bridge("br1", &[]),
    ];
    let gateways = ["10.9.0.254".parse().unwrap(), "fd09::fe".parse().unwrap()];
    let of_a = [
        wire("a", "br0", "eth0", &["10.9.0.1/24", "fd09::1/64"]),
        wire("a", "br1", "eth1", &["10.9.1.1/24"]),
    ];
    let of_b = [wire("b", "br0", "eth0", &["10.9.0.2/24", "fd09::2/64"])];
    // Twice: the second time there is nothing to do.
    for _ in 0..2 {
        let loopback = ["203.0.113.1/32".parse().unwrap()];
        wires::make_hub(&hub, &loopback, &bridges).unwrap();
        wires::plug(&hub, &a, &of_a, &gateways).unwrap();
        wires::plug(&hub, &b, &of_b, &gateways).unwrap();
    }
    assert!(reaches(&a, &b, "10.9.0.2", 1), "a to b by IPv4");
    assert!(reaches(&b, &a, "fd09::1", 2), "b to a by IPv6");
    assert!(reaches(&a, &hub, "203.0.113.1", 3), "a to the outside");
    assert!(is_apart(&a, &hub, "10.9.0.2", 4), "another answered");
    assert!(is_apart(&b, &a, "10.9.1.1", 5), "b has no wire there");
    let shown = run(
        "ip",
        &["-n", &spaces.0[1], "-o", "route", "show", "default"],
    );
    assert!(
        shown.contains("via 10.9.0.254 dev eth0 proto static"),
        "{shown}"
    );

    let outer = ["aeth0".to_owned(), "aeth1".to_owned()];
    assert_eq!(wires::carriers(&hub, &outer).unwrap(), [true, true]);
    wires::set_carrier(&hub, &outer, false).unwrap();
    assert_eq!(wires::carriers(&hub, &outer).unwrap(), [false, false]);
    assert!(is_apart(&b, &a, "10.9.0.1", 6), "cut");
    wires::set_carrier(&hub, &outer, true).unwrap();
    assert!(reaches(&b, &a, "10.9.0.1", 7), "joined again");

    wires::unplug(&hub, &outer).unwrap();
    wires::unplug(&hub, &outer).unwrap();
    let left = run("ip", &["-n", &spaces.0[1], "-br", "link"]);
    assert!(!left.contains("eth"), "{left}");
}

#[test]
fn a_wire_to_a_namespace_that_is_no_more_is_replaced() {
    let mut spaces = Spaces::new(&["hub2", "old"]);
    let hub = spaces.open(0);
    wires::make_hub(&hub, &[], &[bridge("br0", &["10.9.0.254/24"])]).unwrap();
    let old = spaces.open(1);
    let wanted = [wire("a", "br0", "eth0", &["10.9.0.1/24"])];
    wires::plug(&hub, &old, &wanted, &[]).unwrap();
    // `old` is still held open here: its end of the wire is alive.
    named::remove(&spaces.0[1]).unwrap();
    let again = Spaces::new(&["new"]);
    let fresh = again.open(0);
    wires::plug(&hub, &fresh, &wanted, &[]).unwrap();
    assert!(reaches(&hub, &fresh, "10.9.0.1", 1));
    drop(old);
    spaces.0.truncate(1);
}
