//! The kit itself, against plain kernel objects.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Dump, DumpBuilder, Node, Rng, config};
use serde_json::json;
use std::time::{Duration, Instant};

fn pod_dump(pod: &plexus_testkit::Pod<'_>) -> Dump {
    DumpBuilder::new().namespace("pod", pod.ns()).take()
}

#[test]
fn a_node_reaches_its_outside() {
    let node = Node::new();
    assert!(node.ns().pings("192.0.2.1"));
    assert!(node.ns().pings("2001:db8::1"));
    assert!(node.ns().silent("192.0.2.77"));
}

#[test]
fn a_dump_sees_every_kind_of_object() {
    let node = Node::new();
    let pod = node.pod("c1");
    let changes = [
        ("ip link add v0 type veth peer name v1", "link v0"),
        (
            "ip address add 10.1.0.1/24 dev v0",
            "address v0 10.1.0.1/24",
        ),
        ("ip link set v0 up; ip link set v1 up", "\"UP\""),
        (
            "ip route add 10.9.0.0/24 via 10.1.0.7 proto 80",
            "route 10.9.0.0/24",
        ),
        (
            "ip route add 10.8.0.0/24 dev v0 table 77",
            "\"table\":\"77\"",
        ),
        ("ip -6 route add fd00:9::/64 dev v0", "route fd00:9::/64"),
        ("ip rule add from 10.1.0.1 lookup 77", "rule4"),
        ("ip -6 rule add from fd00::1 lookup 77", "rule6"),
        (
            "ip neigh add 10.1.0.7 lladdr 02:00:00:00:00:07 dev v0 nud permanent",
            "neighbour",
        ),
        ("nft add table ip t", "nft table"),
        (
            "nft add chain ip t c; nft add rule ip t c ip saddr 10.1.0.0/24 counter accept",
            "nft rule 1",
        ),
        (
            "echo 1 >/proc/sys/net/ipv4/conf/v0/proxy_arp",
            "conf/v0/proxy_arp=1",
        ),
        (
            "echo 1 >/proc/sys/net/ipv4/ip_forward",
            "net/ipv4/ip_forward=1",
        ),
        ("ip link set v0 mtu 1400", "link v0 mtu=1400"),
        ("ip link set v0 alias 'plexus x'", "ifalias=\"plexus x\""),
    ];
    pod.ns().sh("echo 0 >/proc/sys/net/ipv4/ip_forward");
    let mut before = pod_dump(&pod);
    for (command, seen) in changes {
        pod.ns().sh(command);
        let after = pod_dump(&pod);
        let diff = before.diff(&after);
        assert!(diff.contains(seen), "{command}: {seen} is not in\n{diff}");
        before = after;
    }
}

#[test]
fn equal_namespaces_have_equal_dumps() {
    let node = Node::new();
    let (one, other) = (node.pod("c1"), node.pod("c2"));
    other
        .ns()
        .sh("ip link add x0 type veth peer name x1; ip link del x0");
    for pod in [&one, &other] {
        pod.ns().sh(
            "ip link set lo up; ip link add v0 address 02:00:00:00:00:01 type veth \
             peer name v1 address 02:00:00:00:00:02; ip link set v0 group 7; ip link set v0 up; \
             ip link set v1 up; ip link add b0 address 02:00:00:00:00:03 type bridge; \
             ip link set v1 master b0; ip link set b0 up; ip address add 10.1.0.1/24 dev b0",
        );
    }
    other.ns().sh("ip link set v0 group 9");
    pod_dump(&one).assert_same(&pod_dump(&other), "two equal namespaces");
    // Nothing that settles by itself is seen.
    let (early, _) = (
        pod_dump(&one),
        std::thread::sleep(Duration::from_millis(2500)),
    );
    early.assert_same(&pod_dump(&one), "the same namespace later");
    one.ns().sh("ip link del b0");
    assert!(pod_dump(&one).diff(&pod_dump(&other)).contains("link b0"));
}

#[test]
fn files_are_dumped_but_for_what_host_local_keeps() {
    let node = Node::new();
    let pools = node.pools().join("blue");
    std::fs::create_dir_all(&pools).unwrap();
    for (name, content) in [
        ("lock", ""),
        ("last_reserved_ip.0", "10.0.0.2"),
        ("10.0.0.2", "c1\r\neth0"),
    ] {
        std::fs::write(pools.join(name), content).unwrap();
    }
    let dump = DumpBuilder::new().directory("pools", &node.pools()).take();
    assert_eq!(dump.to_string(), "pools blue/10.0.0.2: \"c1\\r\\neth0\"\n");
}

#[test]
fn a_dump_is_quick() {
    let node = Node::new();
    let pod = node.pod("c1");
    node.dump(Some(&pod));
    // The quickest of them: others may have had to wait for a processor.
    let each = (0..10).map(|_| {
        let start = Instant::now();
        node.dump(Some(&pod));
        start.elapsed()
    });
    let quickest = each.min().unwrap();
    println!("one dump of node and pod: {quickest:?}");
    assert!(quickest < Duration::from_millis(400), "{quickest:?}");
}

#[test]
fn the_fake_plugin_makes_and_removes() {
    let node = Node::new();
    let pod = node.pod("c1");
    let before = node.dump(Some(&pod));
    let conf =
        json!({"cniVersion": "1.0.0", "name": "n", "type": "px-fake", "dir": node.fake_dir()});
    let script = |verb: &str| {
        format!(
            "printf %s '{conf}' | CNI_COMMAND={verb} CNI_CONTAINERID=c1 CNI_IFNAME=eth0 \
             CNI_NETNS={} {}",
            pod.netns(),
            node.delegate_bin().join(plexus_testkit::FAKE).display()
        )
    };
    assert!(node.ns().try_sh(&script("VERSION")));
    let result: serde_json::Value = serde_json::from_str(&node.ns().sh(&script("ADD"))).unwrap();
    assert_eq!(result["ips"][0]["address"], "10.77.0.2/24");
    assert!(node.ns().try_sh(&script("CHECK")));
    assert!(!node.ns().try_sh(&script("ADD")), "a second ADD is refused");
    assert!(node.dump(Some(&pod)).has("fake c1-eth0"));
    for _ in 0..2 {
        node.ns().sh(&script("DEL"));
        before.assert_same(&node.dump(Some(&pod)), "DEL undoes ADD");
    }
    assert!(!node.ns().try_sh(&script("CHECK")));
}

#[test]
fn one_address_leaves_one() {
    let node = Node::new();
    let narrow = config::one_address(&config::four(&node));
    assert_eq!(
        narrow["networks"][0]["ipam"]["subnets"],
        json!(["10.244.1.0/30", "fd00:244:1::/127"])
    );
    assert_eq!(
        narrow["networks"][1]["ipam"]["ranges"][0][0]["rangeStart"],
        "10.10.0.5"
    );
}

#[test]
fn seeds_repeat() {
    let mut rngs = [Rng::new(7), Rng::new(7)];
    let draws: Vec<Vec<u64>> = rngs
        .iter_mut()
        .map(|rng| (0..5).map(|_| rng.below(100)).collect())
        .collect();
    assert_eq!(draws[0], draws[1]);
}
