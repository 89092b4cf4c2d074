//! Which routes there are for which blocks, as text.

use super::*;
use crate::nic_routes::{FIRST_TABLE, LAST_TABLE};

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn nic(index: u32, name: &str, addresses: &[&str]) -> Nic {
    Nic {
        index,
        name: name.into(),
        kind: String::new(),
        addresses: addresses.iter().map(|text| net(text)).collect(),
        mac: None,
        permanent_mac: None,
        mtu: 1500,
        state: NicState::Up,
        speed: None,
        device: None,
        master: None,
        parent: None,
        default_route: false,
        ours: false,
    }
}

fn network(uid: &str) -> L3Network {
    L3Network {
        uid: uid.into(),
        subnets: vec![net("192.168.0.0/16"), net("fd00:192::/48")],
    }
}

fn block(node: &str, cidr: &str, (index, name): (u32, &str), via: &str) -> NicBlock {
    NicBlock {
        uid: "a".into(),
        cidr: net(cidr),
        node: node.into(),
        interface_index: index,
        interface: name.into(),
        via: via.parse().ok(),
        retired: false,
    }
}

/// The seed's: two hosts, two interfaces.
fn seed() -> (Vec<Nic>, Vec<NicBlock>) {
    let nics = vec![
        nic(2, "eth1", &["10.0.1.1/24"]),
        nic(3, "eth2", &["10.0.2.1/24"]),
    ];
    let blocks = vec![
        block("host1", "192.168.0.0/24", (0, "eth1"), "10.0.1.1"),
        block("host1", "192.168.64.0/24", (1, "eth2"), "10.0.2.1"),
        block("host2", "192.168.1.0/24", (0, "eth1"), "10.0.1.2"),
        block("host2", "192.168.65.0/24", (1, "eth2"), "10.0.2.2"),
    ];
    (nics, blocks)
}

fn texts(decision: &Decision) -> Vec<String> {
    let tables = decision.tables.values();
    let routes = tables.flat_map(|network| &network.routes);
    routes.map(|(dst, hop)| format!("{dst} {hop}")).collect()
}

#[test]
fn the_seeds_routes() {
    let (nics, mut blocks) = seed();
    let decision = decide("host1", &nics, &[network("a")], &blocks);
    let wanted = [
        "192.168.1.0/24 via 10.0.1.2 dev #2",
        "192.168.65.0/24 via 10.0.2.2 dev #3",
    ];
    assert_eq!(texts(&decision), wanted);
    assert_eq!(decision.unreachable, BTreeSet::new());
    assert_eq!(decision.shared, BTreeSet::new());
    let sources = decision
        .tables
        .values()
        .next()
        .map(|one| one.sources.clone());
    assert_eq!(
        sources,
        Some([net("192.168.0.0/16")].into()),
        "only of families that are used"
    );
    blocks.reverse();
    assert_eq!(decide("host1", &nics, &[network("a")], &blocks), decision);
    // Without a block of its own a node needs no routes; of other networks it has none.
    assert_eq!(
        decide("host3", &nics, &[network("a")], &blocks),
        Decision::default()
    );
    assert_eq!(decide("host1", &nics, &[], &blocks), Decision::default());
}

#[test]
fn nics_are_matched_by_their_place_not_by_name_or_subnet() {
    let nics = [
        nic(7, "rail0", &["10.0.1.1/24"]),
        nic(8, "rail1", &["10.0.1.9/24"]),
    ];
    let blocks = [
        block("host1", "192.168.0.0/24", (0, "rail0"), "10.0.1.1"),
        block("host1", "192.168.64.0/24", (1, "rail1"), "10.0.1.9"),
        block("host2", "192.168.1.0/24", (0, "ens8"), "10.0.1.2"),
        block("host2", "192.168.65.0/24", (1, "ens4"), "10.0.7.2"),
        block("host2", "192.168.129.0/24", (2, "ens5"), "10.0.3.2"),
        block("host1", "fd00:192:0:0::/64", (0, "rail0"), "2001:db8::1"),
        block("host2", "fd00:192:0:1::/64", (0, "ens8"), "2001:db8::2"),
    ];
    let decision = decide("host1", &nics, &[network("a")], &blocks);
    let shared: Vec<_> = decision.shared.iter().map(String::as_str).collect();
    assert_eq!(shared, ["rail0", "rail1"]);
    assert_eq!(
        texts(&decision),
        [
            "192.168.1.0/24 via 10.0.1.2 dev #7",
            "192.168.65.0/24 via 10.0.7.2 dev #8 onlink",
            "fd00:192:0:1::/64 via 2001:db8::2 dev #7 onlink",
        ]
    );
}

#[test]
fn what_cannot_be_reached_is_named() {
    let (mut nics, mut blocks) = seed();
    nics[0].state = NicState::NoCarrier;
    blocks[3].via = None;
    blocks.push(block("host3", "192.168.2.0/24", (0, "eth1"), "10.0.1.3"));
    blocks.push(block("host3", "192.168.66.0/24", (1, "eth2"), "10.0.2.1"));
    blocks.push(block(
        "host4",
        "192.168.67.0/24",
        (1, "eth2"),
        "2001:db8::4",
    ));
    // No parts of the network: nobody is led there.
    blocks.push(block("host5", "10.0.0.0/24", (1, "eth2"), "10.0.2.5"));
    blocks.push(block("host5", "0.0.0.0/0", (1, "eth2"), "10.0.2.5"));
    let decision = decide("host1", &nics, &[network("a")], &blocks);
    assert_eq!(texts(&decision), Vec::<String>::new());
    let why: Vec<_> = decision.unreachable.iter().map(String::as_str).collect();
    assert_eq!(why.len(), 4, "{why:?}");
    assert!(why[0].starts_with("NIC eth1 is no-carrier"), "{why:?}");
    assert!(
        why[1].starts_with("node host2 has no IPv4 address on eth2"),
        "{why:?}"
    );
    assert!(why[2].contains("but it is this node's on eth2"), "{why:?}");
    assert!(
        why[3].starts_with("node host4 has no IPv4 address"),
        "{why:?}"
    );
    let gone = decide("host1", &[], &[network("a")], &blocks);
    assert!(
        gone.unreachable
            .iter()
            .any(|why| why.starts_with("this node has no NIC eth1"))
    );
}

#[test]
fn blocks_that_retire_are_reached_until_they_are_gone() {
    let (mut nics, mut blocks) = seed();
    nics.push(nic(4, "eth3", &["10.0.1.7/24"]));
    blocks[0].retired = true;
    blocks[2].retired = true;
    blocks.push(block("host1", "192.168.5.0/24", (0, "eth3"), "10.0.1.7"));
    let decision = decide("host1", &nics, &[network("a")], &blocks);
    assert_eq!(texts(&decision)[0], "192.168.1.0/24 via 10.0.1.2 dev #4");
}

#[test]
fn tables_are_the_same_whatever_else_there_is() {
    let uids: Vec<String> = (0..20_000).map(|number| format!("uid-{number}")).collect();
    let all = tables(uids.iter().map(String::as_str));
    let distinct: BTreeSet<u32> = all.values().copied().collect();
    assert_eq!(distinct.len(), uids.len());
    assert!(
        distinct
            .iter()
            .all(|table| (FIRST_TABLE..=LAST_TABLE).contains(table))
    );
    let alone = tables(["uid-7"]);
    assert_eq!(alone["uid-7"], all["uid-7"]);
    let mut reversed: Vec<&str> = uids.iter().map(String::as_str).collect();
    reversed.reverse();
    assert_eq!(tables(reversed), all);
}
