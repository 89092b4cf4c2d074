//! One owner: which part it gives, and what it hands out afterwards.

use crate::{Config, config, ip, key, net, subnet};
use ipnet::IpNet;
use plexus_core::ipam::{AllocateError, Donation, Pools, rounds_to_wait};
use plexus_types::Family;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

fn donate(pools: &mut Pools, config: &Config, addresses: u32) -> Option<String> {
    let donation = pools.donate(&config.ipam, &config.own, Family::V4, addresses, "n2")?;
    assert_eq!((&*donation.network, &*donation.node), ("u-1", "n2"));
    assert!(config.own.own.contains(&donation.block) && donation.block.contains(&donation.part));
    Some(donation.part.to_string())
}

fn add(pools: &mut Pools, config: &Config, owner: &str) -> Result<IpAddr, AllocateError> {
    let assigned = pools.allocate_blocks(&key(config), &config.ipam, &config.own, &[], owner)?;
    Ok(assigned.ips[0].address.addr())
}

#[test]
fn half_of_what_is_free_as_much_as_asked_for_and_down_to_one() {
    let shared = subnet("10.1.0.0/24", "10.1.0.254", 28);
    let config = config(&shared, &[net("10.1.0.16/28")], &[]);
    let mut pools = Pools::default();
    for owner in 0..5 {
        add(&mut pools, &config, &format!("o{owner}")).unwrap();
    }
    // .16 to .20 are in use; eleven are free: five at most, aligned.
    assert_eq!(
        donate(&mut pools, &config, 8).as_deref(),
        Some("10.1.0.24/30")
    );
    assert_eq!(
        donate(&mut pools, &config, 1).as_deref(),
        Some("10.1.0.21/32")
    );
    assert_eq!(
        donate(&mut pools, &config, 2).as_deref(),
        Some("10.1.0.22/31")
    );
    // Four are left: two, then one, then the last one.
    assert_eq!(
        donate(&mut pools, &config, 9).as_deref(),
        Some("10.1.0.28/31")
    );
    assert_eq!(
        donate(&mut pools, &config, 9).as_deref(),
        Some("10.1.0.30/32")
    );
    assert_eq!(
        donate(&mut pools, &config, 0).as_deref(),
        Some("10.1.0.31/32")
    );
    assert_eq!(donate(&mut pools, &config, 9), None);
    let full = add(&mut pools, &config, "late").unwrap_err();
    assert!(matches!(full, AllocateError::NeedsBlock { .. }), "{full}");
    // What is freed can be handed out, and given, again; what was given cannot.
    pools.release(&key(&config), "o0");
    assert_eq!(add(&mut pools, &config, "late").unwrap(), ip("10.1.0.16"));
}

#[test]
fn nothing_that_is_set_apart_is_given_and_a_block_is_not_given_whole() {
    let mut shared = subnet("10.1.0.0/28", "10.1.0.14", 29);
    shared.exclude = vec![net("10.1.0.8/30")];
    let mut pools = Pools::default();
    let owns = config(&shared, &[net("10.1.0.8/29")], &[]);
    // .12 and .13: .14 is the gateway, .15 the broadcast address.
    assert_eq!(
        donate(&mut pools, &owns, 8).as_deref(),
        Some("10.1.0.12/32")
    );
    assert_eq!(
        donate(&mut pools, &owns, 8).as_deref(),
        Some("10.1.0.13/32")
    );
    assert_eq!(donate(&mut pools, &owns, 8), None);

    let single = config(
        &subnet("10.1.0.0/28", "10.1.0.14", 32),
        &[net("10.1.0.3/32")],
        &[],
    );
    assert_eq!(donate(&mut Pools::default(), &single, 1), None);
    assert_eq!(
        donate(&mut Pools::default(), &config(&shared, &[], &[]), 1),
        None
    );
    let v6 = subnet("fd00::/64", "fd00::1", 64);
    let wide = config(&v6, &[net("fd00::/64")], &[]);
    let mut pools = Pools::default();
    assert_eq!(
        pools.donate(&wide.ipam, &wide.own, Family::V4, 8, "n2"),
        None
    );
    let donation = pools
        .donate(&wide.ipam, &wide.own, Family::V6, 8, "n2")
        .unwrap();
    assert_eq!(donation.part, net("fd00::8/125"));
}

#[test]
fn what_others_have_said_is_given_counts_and_survives_a_restart() {
    let shared = subnet("10.1.0.0/24", "10.1.0.254", 29);
    let whole = [net("10.1.0.16/29")];
    let mut pools = Pools::default();
    let published = config(&shared, &whole, &[net("10.1.0.16/30")]);
    let got: BTreeSet<IpAddr> = (0..4)
        .map(|i| add(&mut pools, &published, &format!("o{i}")).unwrap())
        .collect();
    assert_eq!(got.first(), Some(&ip("10.1.0.20")));
    assert!(add(&mut pools, &published, "late").is_err());
    let asked = [(ip("10.1.0.17"), None)];
    let error = pools.allocate_blocks(
        &key(&published),
        &published.ipam,
        &published.own,
        &asked,
        "late",
    );
    assert!(
        matches!(error, Err(AllocateError::NeedsBlock { .. })),
        "{error:?}"
    );

    let mut pools = Pools::default();
    pools.mark_donated(&Donation {
        network: "u-1".to_owned(),
        block: whole[0],
        part: net("10.1.0.20/30"),
        node: "n2".to_owned(),
    });
    let plain = config(&shared, &whole, &[]);
    for i in 0..4 {
        assert!(add(&mut pools, &plain, &format!("o{i}")).unwrap() < ip("10.1.0.20"));
    }
    assert!(add(&mut pools, &plain, "late").is_err());
    // It comes back as a block of its own, and is handed out from that.
    let back = config(&shared, &[whole[0], net("10.1.0.20/30")], &[]);
    assert_eq!(add(&mut pools, &back, "late").unwrap(), ip("10.1.0.20"));
    let asked = [(ip("10.1.0.23"), None)];
    let got = pools
        .allocate_blocks(&key(&back), &back.ipam, &back.own, &asked, "last")
        .unwrap();
    assert_eq!(got.ips[0].address, net("10.1.0.23/24"));
}

#[test]
fn a_gift_that_nobody_was_told_of_can_be_undone() {
    let shared = subnet("10.1.0.0/24", "10.1.0.254", 31);
    let config = config(&shared, &[net("10.1.0.16/31")], &[]);
    let mut pools = Pools::default();
    let donation = pools
        .donate(&config.ipam, &config.own, Family::V4, 1, "n2")
        .unwrap();
    add(&mut pools, &config, "a").unwrap();
    assert!(add(&mut pools, &config, "b").is_err());
    pools.unmark_donated(&donation);
    assert_eq!(
        IpNet::from(add(&mut pools, &config, "b").unwrap()),
        donation.part
    );
}

#[test]
fn a_node_with_all_blocks_asks_only_if_it_gave_something_away() {
    let shared = subnet("10.1.0.0/30", "10.1.0.2", 31);
    let all = [net("10.1.0.0/31"), net("10.1.0.2/31")];
    let mut pools = Pools::default();
    let whole = config(&shared, &all, &[]);
    add(&mut pools, &whole, "a").unwrap();
    let full = add(&mut pools, &whole, "b").unwrap_err();
    assert!(matches!(full, AllocateError::BlocksFull { .. }), "{full}");
    let mut pools = Pools::default();
    let less = config(&shared, &all, &[net("10.1.0.1/32")]);
    let full = add(&mut pools, &less, "a").unwrap_err();
    assert!(matches!(full, AllocateError::NeedsBlock { .. }), "{full}");
    // Parts are not counted as blocks: there may be another whole one.
    let parts = [net("10.1.0.0/32"), net("10.1.0.1/32"), net("10.1.0.2/31")];
    let mut pools = Pools::default();
    let some = config(&shared, &parts, &[]);
    add(&mut pools, &some, "a").unwrap();
    let full = add(&mut pools, &some, "b").unwrap_err();
    assert!(matches!(full, AllocateError::NeedsBlock { .. }), "{full}");
}

#[test]
fn one_answers_first_and_the_others_in_growing_groups() {
    let free = |n: u32| (0..n).map(|i| (format!("n{i}"), u128::from(i))).collect();
    let owners: BTreeMap<String, u128> = free(16);
    let rounds = |node: &str| rounds_to_wait(node, &owners, "r");
    assert_eq!((rounds("n15"), rounds("n14"), rounds("n13")), (0, 1, 1));
    assert_eq!((rounds("n12"), rounds("n9"), rounds("n8")), (2, 2, 3));
    // It knows better than others what it has; it comes last.
    assert_eq!(rounds("n0"), 4);
    assert_eq!(rounds("unknown"), 4);
    let equal: BTreeMap<String, u128> = owners.keys().map(|name| (name.clone(), 7)).collect();
    let first = |request: &str| {
        let mut names = equal.keys();
        let first = names.find(|name| rounds_to_wait(name, &equal, request) == 0);
        first.unwrap().clone()
    };
    let all: BTreeSet<String> = (0..50).map(|i| first(&format!("r{i}"))).collect();
    assert!(all.len() > 8, "{all:?}");
}

proptest! {
    /// Whatever was handed out, freed and given before: a part is aligned, inside a block, smaller
    /// than it, and has nothing of what is in use, given or set apart.
    #[test]
    fn a_part_is_free(
        steps in prop::collection::vec((0_u8..3, 0_u32..12), 1..60),
        length in 27_u8..=32,
        excluded in 0_u8..64,
    ) {
        let mut shared = subnet("10.1.0.0/26", "10.1.0.62", length);
        shared.exclude = vec![IpNet::from(ip(&format!("10.1.0.{excluded}")))];
        let blocks: Vec<IpNet> = net("10.1.0.0/26").subnets(length).unwrap().step_by(2).collect();
        let config = config(&shared, &blocks, &[]);
        let mut pools = Pools::default();
        let mut parts: Vec<IpNet> = Vec::new();
        for (act, number) in steps {
            match act {
                0 => {
                    if let Ok(got) = add(&mut pools, &config, &format!("o{number}")) {
                        prop_assert!(!parts.iter().any(|part| part.contains(&got)), "{}", got);
                    }
                }
                1 => drop(pools.release(&key(&config), &format!("o{number}"))),
                _ => {
                    let Some(donation) = pools.donate(&config.ipam, &config.own, Family::V4, number, "n2") else {
                        continue;
                    };
                    let (part, block) = (donation.part, donation.block);
                    prop_assert_eq!(part, part.trunc());
                    prop_assert!(blocks.contains(&block) && block.contains(&part) && block != part);
                    let all: Vec<IpAddr> = part.subnets(32).unwrap().map(|one| one.addr()).collect();
                    prop_assert!(all.len() <= number.max(1) as usize);
                    for address in all {
                        let set_apart = ["10.1.0.0", "10.1.0.62", "10.1.0.63"].map(ip);
                        prop_assert!(!set_apart.contains(&address));
                        prop_assert!(!shared.exclude[0].contains(&address));
                        let mut held = pools.held();
                        let key = key(&config);
                        prop_assert!(!held.any(|(of, held, _)| (of, held) == (&key, address)));
                        prop_assert!(!parts.iter().any(|other| other.contains(&address)));
                    }
                    parts.push(part);
                }
            }
        }
    }
}
