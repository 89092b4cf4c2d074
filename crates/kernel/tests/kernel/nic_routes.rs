//! Routes to other nodes' blocks on NICs, as `ip` shows them.

use crate::lab::net;
use plexus_core::nic_routes::{NetworkRoutes, NextHop};
use plexus_kernel::nic_routes::{NicRouteError, NicRoutes, answer_for_own_addresses};
use plexus_kernel::{Netns, NodeSide, observe};
use plexus_testkit::NetNs;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const TABLE: u32 = 0x5080_0001;
const OTHER_TABLE: u32 = 0x5080_0002;

type Tables = BTreeMap<u32, NetworkRoutes>;

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Two hosts whose `eth1` and `eth2` are on one wire each: 10.0.1.x and 10.0.2.x.
struct Hosts {
    one: Host,
    two: Host,
    wires: NetNs,
}

struct Host {
    ns: NetNs,
    side: NodeSide,
}

impl Hosts {
    fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let prefix = format!("px-test-{}-nr{number}", std::process::id());
        let wires = NetNs::create(&format!("{prefix}-w"));
        wires.ip("link add br1 type bridge\nlink add br2 type bridge\nlink set br1 up\nlink set br2 up\n");
        let host = |i: u8| {
            let ns = NetNs::create(&format!("{prefix}-h{i}"));
            ns.ip("link set lo up\n");
            for nic in [1, 2] {
                let wires = wires.name();
                ns.ip(&format!(
                    "link add eth{nic} type veth peer name h{i}e{nic} netns {wires}\n\
                     link set eth{nic} up\naddress add 10.0.{nic}.{i}/24 dev eth{nic}\n\
                     address add 2001:db8:{nic}::{i}/64 dev eth{nic} nodad\n"
                ));
            }
            for nic in [1, 2] {
                wires.ip(&format!("link set h{i}e{nic} master br{nic} up\n"));
            }
            let side = NodeSide::new(Netns::open(ns.path()).unwrap());
            Host { ns, side }
        };
        Self {
            one: host(1),
            two: host(2),
            wires,
        }
    }
}

impl Host {
    fn link(&self, name: &str) -> u32 {
        let found = self.side.with_socket(|s| observe::link_by_name(s, name));
        found.unwrap().unwrap().index
    }

    fn hop(&self, link: &str, via: &str) -> NextHop {
        NextHop {
            via: via.parse().unwrap(),
            link: self.link(link),
            onlink: false,
        }
    }

    fn network(&self, routes: &[(&str, &str, &str)]) -> NetworkRoutes {
        let routes = routes.iter();
        NetworkRoutes {
            sources: [net("192.168.0.0/16")].into(),
            routes: routes
                .map(|(dst, link, via)| (net(dst), self.hop(link, via)))
                .collect(),
        }
    }

    /// The seed's: what Host1 has of Host2.
    fn of_seed(&self) -> Tables {
        let network = self.network(&[
            ("192.168.1.0/24", "eth1", "10.0.1.2"),
            ("192.168.65.0/24", "eth2", "10.0.2.2"),
        ]);
        [(TABLE, network)].into()
    }

    /// As `ip` shows a table, without what is ours alone to know.
    fn table(&self, table: u32) -> Vec<String> {
        // A table that is not there is no error.
        let show = format!("route show table {table} || true");
        let shown = self.ns.sh(&format!("ip {show}; ip -6 {show}"));
        let mut lines: Vec<String> = shown.lines().map(seeds_words).collect();
        lines.sort();
        lines
    }

    fn rules(&self) -> String {
        self.ns.sh("ip rule; ip -6 rule")
    }

    fn set(&self, known: &mut NicRoutes, wanted: &Tables) -> usize {
        let changes = known.set(&self.side, wanted).unwrap();
        changes.routes + changes.hops + changes.rules
    }
}

/// A line without next hop's number and protocol.
fn seeds_words(line: &str) -> String {
    let mut words = line.split_whitespace();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "nhid" | "proto" => drop(words.next()),
            word => kept.push(word),
        }
    }
    kept.join(" ")
}

/// A process that ends with the test, however that ends.
struct Monitor(std::process::Child);

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every change that `ip monitor` tells while `work` runs.
fn messages_of(host: &Host, work: impl FnOnce()) -> Vec<String> {
    let ns = host.ns.name();
    let file = std::env::temp_dir().join(format!("{ns}-monitor"));
    let path = file.to_str().unwrap().to_owned();
    let monitor = host.ns.enter(|| {
        let mut ip = std::process::Command::new("ip");
        ip.args(["monitor", "route", "nexthop", "rule"]);
        ip.stdout(std::fs::File::create(&path).unwrap());
        Monitor(ip.spawn().unwrap())
    });
    let read = || std::fs::read_to_string(&path).unwrap();
    let mark = |table: u32| {
        plexus_testkit::eventually("the monitor tells", || {
            let route = format!("blackhole 203.0.113.0/24 table {table}");
            host.ns
                .sh(&format!("ip route add {route}; ip route del {route}"));
            read().contains(&format!("table {table}"))
        });
    };
    mark(701);
    work();
    mark(702);
    drop(monitor);
    let all = read();
    let _ = std::fs::remove_file(&path);
    let lines = all.lines().filter(|line| !line.contains("203.0.113"));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_seeds_example_gives_the_seeds_routes() {
    let hosts = Hosts::new();
    let host = &hosts.one;
    let mut known = NicRoutes::default();
    host.set(&mut known, &host.of_seed());
    assert_eq!(
        host.table(TABLE),
        [
            "192.168.1.0/24 via 10.0.1.2 dev eth1",
            "192.168.65.0/24 via 10.0.2.2 dev eth2"
        ]
    );
    let raw = host.ns.sh(&format!("ip route show table {TABLE}"));
    assert_eq!(raw.matches("nhid").count(), 2, "{raw}");
    assert_eq!(raw.matches("proto 80").count(), 2, "{raw}");
    let rules = host.rules();
    let rule = format!("5080:\tfrom 192.168.0.0/16 lookup {TABLE} proto 80");
    assert!(rules.contains(&rule), "{rules}");
    assert!(
        !host.ns.sh("ip route").contains("192.168"),
        "the main table is the host's"
    );
    // Nothing is done twice, neither by what is remembered nor by what is seen.
    assert_eq!(host.set(&mut known, &host.of_seed()), 0);
    assert_eq!(host.set(&mut NicRoutes::default(), &host.of_seed()), 0);
}

#[test]
fn packets_of_pods_go_over_their_nic_and_others_as_before() {
    let hosts = Hosts::new();
    for (host, own, other, at) in [(&hosts.one, 0, 1, 2), (&hosts.two, 1, 0, 1)] {
        let routes = [1, 2].map(|nic| {
            let dst = format!("192.168.{}.0/24", (nic - 1) * 64 + other);
            (dst, format!("eth{nic}"), format!("10.0.{nic}.{at}"))
        });
        let routes: Vec<_> = routes
            .iter()
            .map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str()))
            .collect();
        let wanted: Tables = [(TABLE, host.network(&routes))].into();
        host.set(&mut NicRoutes::default(), &wanted);
        // An address of a pod on each NIC, and the way back to it: what the pod's link would have.
        host.ns.sh(&format!(
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0\n\
             ip address add 192.168.{own}.1/32 dev lo\nip address add 192.168.{}.1/32 dev lo",
            64 + own
        ));
    }
    let one = &hosts.one.ns;
    for (from, to, dev) in [
        ("192.168.0.1", "192.168.1.1", "eth1"),
        ("192.168.64.1", "192.168.65.1", "eth2"),
    ] {
        assert!(
            one.try_sh(&format!("ping -c 1 -W 2 -I {from} {to}")),
            "{from} to {to}"
        );
        let way = one.sh(&format!("ip route get {to} from {from}"));
        assert!(way.contains(&format!("dev {dev}")), "{way}");
    }
    let way = one.try_sh("ip route get 192.168.1.1");
    assert!(!way, "the host's own packets have no way there");
}

#[test]
fn a_join_a_leave_and_a_new_address_change_only_their_routes() {
    let hosts = Hosts::new();
    let host = &hosts.one;
    let mut known = NicRoutes::default();
    let mut wanted = host.of_seed();
    host.set(&mut known, &wanted);
    let join = ("192.168.2.0/24", "eth1", "10.0.1.3");
    wanted
        .get_mut(&TABLE)
        .unwrap()
        .routes
        .insert(net(join.0), host.hop(join.1, join.2));
    let lines = messages_of(host, || assert_eq!(host.set(&mut known, &wanted), 2));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.contains("10.0.1.3")),
        "{lines:?}"
    );
    // The same node with another address on its NIC: its route is replaced, never removed.
    wanted
        .get_mut(&TABLE)
        .unwrap()
        .routes
        .insert(net(join.0), host.hop("eth1", "10.0.1.4"));
    let lines = messages_of(host, || assert_eq!(host.set(&mut known, &wanted), 3));
    let of_route: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("192.168.2.0/24"))
        .collect();
    assert_eq!(of_route.len(), 1, "{lines:?}");
    assert!(!of_route[0].starts_with("Deleted"), "{lines:?}");
    assert!(
        !lines.iter().any(|line| line.contains("192.168.1.0/24")),
        "{lines:?}"
    );
    assert!(
        host.table(TABLE)
            .contains(&"192.168.2.0/24 via 10.0.1.4 dev eth1".to_owned())
    );
    assert!(!host.ns.sh("ip nexthop").contains("10.0.1.3"));
    wanted.get_mut(&TABLE).unwrap().routes.remove(&net(join.0));
    let lines = messages_of(host, || assert_eq!(host.set(&mut known, &wanted), 2));
    assert!(
        !lines.iter().any(|line| line.contains("192.168.1.0/24")),
        "{lines:?}"
    );
    assert_eq!(host.table(TABLE).len(), 2);
}

#[test]
fn what_somebody_removes_comes_back() {
    let hosts = Hosts::new();
    let host = &hosts.one;
    let mut known = NicRoutes::default();
    let wanted = host.of_seed();
    host.set(&mut known, &wanted);
    let whole = (host.table(TABLE), host.rules());
    // `ip` says next hop and gateway of what it flushes, which the kernel refuses unless it says only one of them.
    let compat = "sysctl -qw net.ipv4.nexthop_compat_mode";
    for harm in [
        format!("{compat}=0; ip route flush table {TABLE}; {compat}=1"),
        format!("ip rule del from 192.168.0.0/16 lookup {TABLE}"),
        "ip nexthop flush proto 80".to_owned(),
        format!("ip route replace 192.168.1.0/24 via 10.0.2.2 table {TABLE} proto 80"),
        "ip link set eth1 down; ip link set eth1 up".to_owned(),
    ] {
        host.ns.sh(&harm);
        assert_ne!((host.table(TABLE), host.rules()), whole, "{harm}");
        known.forget();
        assert!(host.set(&mut known, &wanted) > 0);
        assert_eq!((host.table(TABLE), host.rules()), whole, "{harm}");
    }
    // Of a NIC that is down there can be no route: it is named, and the others are there.
    host.ns.sh("ip link set eth1 down");
    known.forget();
    let error = known.set(&host.side, &wanted).unwrap_err();
    assert!(
        matches!(error, NicRouteError::Change { failed: 2, .. }),
        "{error:?}"
    );
    assert_eq!(host.table(TABLE), ["192.168.65.0/24 via 10.0.2.2 dev eth2"]);
    host.ns.sh("ip link set eth1 up");
    host.set(&mut known, &wanted);
    assert_eq!((host.table(TABLE), host.rules()), whole);
}

#[test]
fn removal_cleans_up_and_leaves_what_is_not_ours() {
    let hosts = Hosts::new();
    let host = &hosts.one;
    let foreign = format!(
        "ip nexthop add id 5 via 10.0.1.9 dev eth1\nip nexthop add id {} via 10.0.1.9 dev eth1\n\
         ip route add 192.168.9.0/24 nhid 5\nip route add 192.168.9.0/24 via 10.0.1.8 table 99 proto 80\n\
         ip route add 192.168.9.0/24 nhid 5 table {TABLE} proto static\n\
         ip rule add from 192.168.0.0/16 lookup 99 priority 5080\n\
         ip rule add from 192.168.0.0/16 lookup {TABLE} priority 90",
        0x5080_0001
    );
    host.ns.sh(&foreign);
    let dump =
        "ip route show table all; ip rule; ip nexthop; ip -6 route show table all; ip -6 rule";
    let before = host.ns.sh(dump);
    let mut known = NicRoutes::default();
    let mut wanted = host.of_seed();
    let v6 = NetworkRoutes {
        sources: [net("fd00:192::/48"), net("192.168.0.0/16")].into(),
        routes: [
            (net("fd00:192:0:1::/64"), host.hop("eth1", "2001:db8:1::2")),
            (net("192.168.3.0/24"), host.hop("eth2", "10.0.2.2")),
        ]
        .into(),
    };
    wanted.insert(OTHER_TABLE, v6);
    host.set(&mut known, &wanted);
    let own = format!("5080:\tfrom 192.168.0.0/16 lookup {TABLE} proto 80");
    assert!(
        host.rules().contains(&own),
        "the other one there is not ours"
    );
    let seen = host.table(OTHER_TABLE);
    assert!(
        seen[1].starts_with("fd00:192:0:1::/64 via 2001:db8:1::2 dev eth1"),
        "{seen:?}"
    );
    assert_eq!(
        host.ns.sh("ip nexthop").matches("10.0.2.2").count(),
        1,
        "tables share next hops"
    );
    // One network goes, the other one stays as it is.
    wanted.remove(&OTHER_TABLE);
    let lines = messages_of(host, || assert!(host.set(&mut known, &wanted) > 0));
    assert!(
        !lines
            .iter()
            .any(|line| line.contains(&format!("table {TABLE}"))),
        "{lines:?}"
    );
    assert_eq!(host.table(OTHER_TABLE), Vec::<String>::new());
    // After a restart of the agent nothing is remembered.
    host.set(&mut NicRoutes::default(), &Tables::new());
    assert_eq!(host.ns.sh(dump), before);
}

#[test]
fn somebody_elses_route_in_the_way_is_named() {
    let hosts = Hosts::new();
    let host = &hosts.one;
    host.ns.sh(&format!(
        "ip route add 192.168.1.0/24 via 10.0.1.9 table {TABLE}"
    ));
    let error = NicRoutes::default()
        .set(&host.side, &host.of_seed())
        .unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        why.contains("set route 192.168.1.0/24 via 10.0.1.2"),
        "{why}"
    );
    let seen = host.table(TABLE);
    assert_eq!(seen[0], "192.168.1.0/24 via 10.0.1.9 dev eth1");
    assert_eq!(seen[1], "192.168.65.0/24 via 10.0.2.2 dev eth2");
}

#[test]
fn nics_in_the_same_subnet_do_not_disturb_each_other() {
    let hosts = Hosts::new();
    let host = &hosts.one;
    host.ns.sh("ip address flush dev eth2; ip address add 10.0.1.11/24 dev eth2; ip address add 10.9.0.1/32 dev eth2");
    let mut wanted: Tables = [(
        TABLE,
        host.network(&[
            ("192.168.1.0/24", "eth1", "10.0.1.2"),
            ("192.168.65.0/24", "eth2", "10.0.1.2"),
        ]),
    )]
    .into();
    // Beyond what any address of the NIC says.
    let far = NextHop {
        onlink: true,
        ..host.hop("eth2", "10.9.0.2")
    };
    wanted
        .get_mut(&TABLE)
        .unwrap()
        .routes
        .insert(net("192.168.66.0/24"), far);
    host.set(&mut NicRoutes::default(), &wanted);
    assert_eq!(
        host.table(TABLE),
        [
            "192.168.1.0/24 via 10.0.1.2 dev eth1",
            "192.168.65.0/24 via 10.0.1.2 dev eth2",
            "192.168.66.0/24 via 10.9.0.2 dev eth2 onlink"
        ]
    );
    assert_eq!(host.set(&mut NicRoutes::default(), &wanted), 0);
}

#[test]
fn of_two_nics_in_a_subnet_each_answers_for_itself() {
    let hosts = Hosts::new();
    let (one, two) = (&hosts.one.ns, &hosts.two);
    // Only eth2 is on the wire, with eth1 in the same subnet.
    let wires = &hosts.wires;
    wires.sh("ip link set h2e2 master br1; ip link set h2e1 down");
    two.ns
        .sh("ip address flush dev eth2; ip address add 10.0.1.12/24 dev eth2");
    let own = "net.ipv4.conf.eth1.arp_ignore=2";
    let lax = "net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth2.rp_filter=0";
    two.ns.sh(&format!("sysctl -qw {own} {lax}"));
    let answered = |address: &str| {
        one.sh("ip neighbour flush dev eth1");
        one.try_sh(&format!("ping -c 1 -W 1 -I eth1 {address}"));
        let seen = one.sh(&format!("ip neighbour show {address} dev eth1"));
        seen.contains("lladdr")
    };
    assert!(answered("10.0.1.2"), "eth2 answers for eth1");
    assert!(answer_for_own_addresses(&two.side, "eth2").unwrap());
    assert!(!answer_for_own_addresses(&two.side, "eth2").unwrap());
    assert!(!answered("10.0.1.2"));
    assert!(answered("10.0.1.12"));
    // An administrator's choice stays.
    assert!(!answer_for_own_addresses(&two.side, "eth1").unwrap());
    assert!(
        two.ns
            .sh(&format!("sysctl {}", &own[..own.len() - 2]))
            .ends_with("= 2\n")
    );
    assert!(answer_for_own_addresses(&two.side, "absent").is_err());
}

#[test]
fn twenty_thousand_routes() {
    let hosts = Hosts::new();
    let host = &hosts.one;
    let (eth1, eth2) = (host.link("eth1"), host.link("eth2"));
    let mut network = NetworkRoutes {
        sources: [net("10.128.0.0/9")].into(),
        routes: BTreeMap::new(),
    };
    for node in 0..10_000_u32 {
        for (nic, link) in [(0_u32, eth1), (1, eth2)] {
            let block = (10 << 24) + (1 << 23) + (nic << 22) + (node << 6);
            let via = (10 << 24) + ((nic + 1) << 16) + node + 256;
            let hop = NextHop {
                via: std::net::Ipv4Addr::from(via).into(),
                link,
                onlink: true,
            };
            let dst = ipnet::Ipv4Net::new(block.into(), 26).unwrap();
            network.routes.insert(dst.into(), hop);
        }
    }
    let mut wanted: Tables = [(TABLE, network)].into();
    let mut known = NicRoutes::default();
    let timed = |what: &str, work: &mut dyn FnMut() -> usize| {
        let begun = Instant::now();
        let changes = work();
        println!(
            "{what}: {changes} changes in {:.1} ms",
            begun.elapsed().as_secs_f64() * 1e3
        );
        changes
    };
    assert_eq!(
        timed("20,000 routes", &mut || host.set(&mut known, &wanted)),
        40_001
    );
    let join = (net("10.255.0.0/26"), host.hop("eth1", "10.0.1.3"));
    wanted
        .get_mut(&TABLE)
        .unwrap()
        .routes
        .insert(join.0, join.1);
    assert_eq!(timed("one join", &mut || host.set(&mut known, &wanted)), 2);
    known.forget();
    assert_eq!(
        timed("a look at all", &mut || host.set(&mut known, &wanted)),
        0
    );
    assert_eq!(
        timed("removal", &mut || host.set(&mut known, &Tables::new())),
        40_003
    );
}
