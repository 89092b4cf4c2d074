//! Addresses from blocks of networks that nodes share: which one, and when another block is needed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, BlockSubnet, Ipam};
use plexus_core::attachment::Assigned;
use plexus_core::ipam::{
    AllocateError, MOST_CANDIDATES, NodeBlocks, PoolKey, Pools, blocks_to_try,
};
use plexus_core::refusal::{Fault, Refusal as _};
use plexus_types::{Family, NetworkName, chain};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::net::IpAddr;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn subnet(cidr: &str, gateway: &str, length: Option<u8>) -> BlockSubnet {
    BlockSubnet {
        cidr: net(cidr),
        gateway: ip(gateway),
        exclude: Vec::new(),
        block_length: length,
    }
}

/// A network, and what of it is this node's.
struct Config {
    ipam: BlockIpam,
    own: NodeBlocks,
}

fn config(subnets: Vec<BlockSubnet>, blocks: &[&str]) -> Config {
    Config {
        ipam: BlockIpam {
            uid: "u-1".to_owned(),
            subnets,
            routes: Vec::new(),
        },
        own: NodeBlocks {
            own: blocks.iter().map(|block| net(block)).collect(),
            donated: Vec::new(),
        },
    }
}

fn key(config: &Config) -> PoolKey {
    let network = NetworkName::new("default.blue").unwrap();
    PoolKey::of(&Ipam::Blocks(config.ipam.clone()), &network, true).unwrap()
}

fn ask(
    pools: &mut Pools,
    config: &Config,
    requested: &[&str],
    owner: &str,
) -> Result<Assigned, AllocateError> {
    let requested: Vec<_> = requested.iter().map(|text| (ip(text), None)).collect();
    pools.allocate_blocks(&key(config), &config.ipam, &config.own, &requested, owner)
}

fn first(assigned: &Assigned) -> String {
    assigned.ips[0].address.to_string()
}

#[test]
fn an_address_has_the_subnet_s_length_and_gateway_and_edges_of_blocks_are_used() {
    let mut pools = Pools::default();
    let config = config(
        vec![subnet("10.1.0.0/29", "10.1.0.6", Some(30))],
        &["10.1.0.0/30"],
    );
    let got: Vec<String> = (0..3)
        .map(|i| first(&ask(&mut pools, &config, &[], &format!("o{i}")).unwrap()))
        .collect();
    // .0 is the subnet's network address; .3 is only the block's last.
    assert_eq!(got, ["10.1.0.1/29", "10.1.0.2/29", "10.1.0.3/29"]);
    let again = ask(&mut pools, &config, &[], "o1").unwrap();
    assert_eq!(again.ips[0].address, net("10.1.0.2/29"));
    assert_eq!(again.ips[0].gateway, Some(ip("10.1.0.6")));
    let usage: Vec<_> = pools
        .pools()
        .map(|(_, pool)| (pool.subnet(), pool.used(), pool.capacity()))
        .collect();
    assert_eq!(usage, [(net("10.1.0.0/30"), 3, 3)]);
}

#[test]
fn the_gateway_the_excludes_and_the_broadcast_address_are_never_handed_out() {
    let mut pools = Pools::default();
    let mut shared = subnet("10.1.0.0/28", "10.1.0.14", Some(29));
    shared.exclude = vec![net("10.1.0.10/31")];
    let config = config(vec![shared], &["10.1.0.8/29"]);
    let mut got = BTreeSet::new();
    while let Ok(assigned) = ask(&mut pools, &config, &[], &format!("o{}", got.len())) {
        got.insert(assigned.ips[0].address.addr());
    }
    let left = ["10.1.0.8", "10.1.0.9", "10.1.0.12", "10.1.0.13"].map(ip);
    assert_eq!(got, BTreeSet::from(left));
    for (asked, says) in [
        ("10.1.0.14", "gateway"),
        ("10.1.0.15", "broadcast"),
        ("10.1.0.11", "excluded by 10.1.0.10/31"),
        ("10.1.0.0", "network address"),
        ("10.2.0.1", "outside of its subnets"),
    ] {
        let error = ask(&mut pools, &config, &[asked], "x").unwrap_err();
        let text = chain(&error);
        assert!(text.contains(says), "{asked}: {text}");
        assert_eq!(error.fault(), Fault::Invalid, "{asked}");
    }
}

#[test]
fn a_full_node_says_which_subnets_may_have_another_block() {
    let mut pools = Pools::default();
    let config = config(
        vec![
            subnet("10.1.0.0/30", "10.1.0.1", Some(30)),
            subnet("10.2.0.0/24", "10.2.0.254", Some(30)),
            subnet("10.3.0.0/30", "10.3.0.1", None),
        ],
        &["10.1.0.0/30", "10.2.0.0/30"],
    );
    for owner in ["a", "b", "c", "d", "undivided"] {
        ask(&mut pools, &config, &[], owner).unwrap();
    }
    let error = ask(&mut pools, &config, &[], "e").unwrap_err();
    let AllocateError::NeedsBlock {
        family,
        subnets,
        containing,
        ..
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((*family, *containing), (Family::V4, None));
    assert_eq!(*subnets, [net("10.2.0.0/24")]);
    assert!(error.is_pending());
    let mut config = config;
    config.own.own.push(net("10.2.0.8/30"));
    let got = ask(&mut pools, &config, &[], "e").unwrap();
    assert_eq!(first(&got), "10.2.0.8/24");
}

#[test]
fn what_cannot_be_claimed_is_full() {
    let mut pools = Pools::default();
    let config = config(
        vec![subnet("10.244.1.0/30", "10.244.1.1", None)],
        // It is not divided: it is this node's, whoever knows of blocks.
        &[],
    );
    ask(&mut pools, &config, &[], "a").unwrap();
    let error = ask(&mut pools, &config, &[], "b").unwrap_err();
    assert!(
        matches!(&error, AllocateError::BlocksFull { capacity: 1, blocks, .. } if *blocks == [net("10.244.1.0/30")]),
        "{error}"
    );
    assert_eq!(pools.held().count(), 1);
}

#[test]
fn a_requested_address_names_the_block_that_it_needs() {
    let mut pools = Pools::default();
    let mut config = config(
        vec![subnet("10.1.0.0/24", "10.1.0.254", Some(28))],
        &["10.1.0.0/28"],
    );
    let error = ask(&mut pools, &config, &["10.1.0.77"], "a").unwrap_err();
    assert!(
        matches!(&error, AllocateError::NeedsBlock { containing: Some(at), .. } if *at == ip("10.1.0.77")),
        "{error}"
    );
    assert_eq!(
        blocks_to_try(
            &config.ipam.subnets[0],
            &config.own.own,
            "n1",
            Some(ip("10.1.0.77"))
        ),
        [net("10.1.0.64/28")]
    );
    config.own.own.push(net("10.1.0.64/28"));
    assert_eq!(
        first(&ask(&mut pools, &config, &["10.1.0.77"], "a").unwrap()),
        "10.1.0.77/24"
    );
    assert_eq!(
        first(&ask(&mut pools, &config, &["10.1.0.77"], "a").unwrap()),
        "10.1.0.77/24"
    );
    let taken = ask(&mut pools, &config, &["10.1.0.77"], "b").unwrap_err();
    assert!(matches!(taken, AllocateError::Requested { .. }), "{taken}");
    let another = ask(&mut pools, &config, &["10.1.0.5"], "a").unwrap_err();
    assert!(
        matches!(another, AllocateError::Requested { .. }),
        "{another}"
    );
    // A subnet that is not divided is this node's.
    config.ipam.subnets[0].block_length = None;
    let own = ask(&mut pools, &config, &["10.1.0.99"], "b").unwrap();
    assert_eq!(first(&own), "10.1.0.99/24");
}

#[test]
fn two_families_or_none() {
    let mut pools = Pools::default();
    let mut config = config(
        vec![
            subnet("10.1.0.0/24", "10.1.0.254", Some(28)),
            subnet("fd00:1::/64", "fd00:1::ffff", Some(122)),
        ],
        &["10.1.0.0/28"],
    );
    let error = ask(&mut pools, &config, &[], "a").unwrap_err();
    assert!(
        matches!(
            error,
            AllocateError::NeedsBlock {
                family: Family::V6,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(pools.held().count(), 0, "nothing is kept of a half answer");
    config.own.own.push(net("fd00:1::/122"));
    let got = ask(&mut pools, &config, &[], "a").unwrap();
    let got: Vec<String> = got.ips.iter().map(|ip| ip.address.to_string()).collect();
    assert_eq!(got, ["10.1.0.1/24", "fd00:1::1/64"]);
}

#[test]
fn a_freed_address_rests_across_blocks_too() {
    let mut pools = Pools::default();
    let config = config(
        vec![subnet("10.1.0.0/24", "10.1.0.254", Some(30))],
        &["10.1.0.4/30", "10.1.0.8/30"],
    );
    for i in 0..5 {
        ask(&mut pools, &config, &[], &format!("o{i}")).unwrap();
    }
    pools.release(&key(&config), "o0");
    assert_eq!(
        first(&ask(&mut pools, &config, &[], "n").unwrap()),
        "10.1.0.9/24"
    );
}

#[test]
fn an_owner_keeps_its_address_when_its_block_is_gone_from_the_list() {
    let mut pools = Pools::default();
    let mut config = config(
        vec![subnet("10.1.0.0/24", "10.1.0.254", Some(30))],
        &["10.1.0.4/30"],
    );
    pools.reserve(&key(&config), ip("10.1.0.6"), "a").unwrap();
    config.own.own = vec![net("10.1.0.8/30")];
    assert_eq!(
        first(&ask(&mut pools, &config, &[], "a").unwrap()),
        "10.1.0.6/24"
    );
}

#[test]
fn candidates_spread_skip_what_is_taken_and_are_bounded() {
    let wide = subnet("10.0.0.0/8", "10.255.255.254", Some(26));
    let starts: BTreeSet<IpNet> = (0..50)
        .map(|i| blocks_to_try(&wide, &[], &format!("node-{i}"), None)[0])
        .collect();
    assert!(starts.len() > 45, "{starts:?}");
    let candidates = blocks_to_try(&wide, &[], "node-1", None);
    assert_eq!(candidates.len(), MOST_CANDIDATES);
    let fewer = blocks_to_try(&wide, &candidates, "node-1", None);
    assert!(fewer.iter().all(|block| !candidates.contains(block)));

    let small = subnet("10.1.0.0/24", "10.1.0.254", Some(26));
    let all: BTreeSet<IpNet> = blocks_to_try(&small, &[], "n", None).into_iter().collect();
    assert_eq!(all.len(), 4);
    let taken = [net("10.1.0.0/25"), net("10.1.0.130/32"), net("10.9.0.0/16")];
    assert_eq!(
        blocks_to_try(&small, &taken, "n", None),
        [net("10.1.0.192/26")]
    );
    assert_eq!(blocks_to_try(&small, &[net("10.0.0.0/8")], "n", None), []);
    let none = subnet("10.1.0.0/24", "10.1.0.254", None);
    assert_eq!(blocks_to_try(&none, &[], "n", None), []);
    for wrong in [0, 23, 33, 200] {
        let wrong = subnet("10.1.0.0/24", "10.1.0.254", Some(wrong));
        assert_eq!(blocks_to_try(&wrong, &[], "n", None), []);
    }
}

#[test]
fn blocks_without_a_single_address_to_give_are_not_tried() {
    let mut shared = subnet("10.1.0.0/28", "10.1.0.14", Some(31));
    // .14 is the gateway, .15 the broadcast address; .4-.7 are excluded piecewise.
    shared.exclude = vec![net("10.1.0.4/32"), net("10.1.0.5/32"), net("10.1.0.6/31")];
    let mut tried = blocks_to_try(&shared, &[], "n", None);
    tried.sort();
    let expected = [
        "10.1.0.0/31",
        "10.1.0.2/31",
        "10.1.0.8/31",
        "10.1.0.10/31",
        "10.1.0.12/31",
    ];
    assert_eq!(tried, expected.map(net));
    assert_eq!(blocks_to_try(&shared, &[], "n", Some(ip("10.1.0.5"))), []);
    assert_eq!(blocks_to_try(&shared, &[], "n", Some(ip("10.9.0.5"))), []);
}

#[test]
fn the_widest_prefixes_there_are() {
    let all = subnet("::/0", "::1", Some(128));
    assert_eq!(blocks_to_try(&all, &[], "n", None).len(), MOST_CANDIDATES);
    let one = subnet("::/0", "::1", Some(0));
    assert_eq!(blocks_to_try(&one, &[], "n", None), [net("::/0")]);
    assert_eq!(blocks_to_try(&one, &[net("::/0")], "n", None), []);
    let mut excluded = subnet("::/0", "::1", Some(64));
    excluded.exclude = vec![net("::/0")];
    assert_eq!(blocks_to_try(&excluded, &[], "n", None), []);
    let single = subnet("10.0.0.1/32", "10.0.0.9", Some(32));
    assert_eq!(blocks_to_try(&single, &[], "n", None), [net("10.0.0.1/32")]);
}

proptest! {
    /// Two nodes with the same network: whatever they do, no address is handed out twice, none
    /// is outside of the node's own blocks, none is set apart.
    #[test]
    fn never_twice_and_never_outside_own_blocks(
        steps in prop::collection::vec((0_usize..2, 0_u8..3, 0_usize..12, 0_u8..64), 1..120),
        length in 27_u8..=31,
    ) {
        let mut shared = subnet("10.1.0.0/26", "10.1.0.62", Some(length));
        shared.exclude = vec![net("10.1.0.20/30")];
        let mut nodes = [Pools::default(), Pools::default()];
        let mut configs = [config(vec![shared.clone()], &[]), config(vec![shared.clone()], &[])];
        let key = key(&configs[0]);
        for (node, act, owner, last) in steps {
            let owner = format!("{node}-{owner}");
            let asked = (act == 1).then(|| (ip(&format!("10.1.0.{last}")), None));
            if act == 2 {
                nodes[node].release(&key, &owner);
                continue;
            }
            let asked: Vec<_> = asked.into_iter().collect();
            let before: Vec<_> = nodes[node].held().map(|(_, at, who)| (at, who.to_owned())).collect();
            match nodes[node].allocate_blocks(&key, &configs[node].ipam, &configs[node].own, &asked, &owner) {
                Ok(assigned) => {
                    let got = assigned.ips[0].address.addr();
                    prop_assert!(configs[node].own.own.iter().any(|block| block.contains(&got)));
                    prop_assert!(!shared.exclude[0].contains(&got) && got != shared.gateway);
                    prop_assert!(got != ip("10.1.0.0") && got != ip("10.1.0.63"));
                }
                Err(error) => {
                    let after: Vec<_> = nodes[node].held().map(|(_, at, who)| (at, who.to_owned())).collect();
                    prop_assert_eq!(before, after);
                    if let AllocateError::NeedsBlock { containing, .. } = error {
                        let taken: Vec<IpNet> = configs.iter().flat_map(|c| c.own.own.clone()).collect();
                        let name = format!("n{node}");
                        let tried = blocks_to_try(&shared, &taken, &name, containing);
                        if let Some(block) = tried.first() {
                            prop_assert!(!taken.iter().any(|t| t.contains(block) || block.contains(t)));
                            configs[node].own.own.push(*block);
                        }
                    }
                }
            }
            let mut all = BTreeSet::new();
            for pools in &nodes {
                for (_, address, _) in pools.held() {
                    prop_assert!(all.insert(address), "{} twice", address);
                }
            }
        }
    }
}
