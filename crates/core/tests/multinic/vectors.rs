//! The original's vectors; where it has a quirk, the sane result.

use crate::stage::{Stage, host, net, nets};
use plexus_core::ipam::{Pool, address_at};
use plexus_core::multinic::{
    Indices, NicChoice, SelectError, ip_pool_name, is_skipped, lowest_gap, numbered_net,
    pool_excludes, select, within_block,
};
use std::collections::BTreeSet;

/// A1.
#[test]
fn a_part_of_a_prefix_by_its_number() {
    for (base, index, bits, expected) in [
        ("192.168.0.0/16", 0, 2, Some("192.168.0.0/18")),
        ("192.168.0.0/16", 4, 2, None),
        ("192.168.0.0/16", 1, 2, Some("192.168.64.0/18")),
        ("192.168.0.0/16", 2, 2, Some("192.168.128.0/18")),
        ("192.168.0.0/16", 3, 2, Some("192.168.192.0/18")),
        ("192.168.0.0/18", 0, 6, Some("192.168.0.0/24")),
        ("192.168.0.0/18", 1, 6, Some("192.168.1.0/24")),
        ("192.168.0.0/18", 63, 6, Some("192.168.63.0/24")),
        ("192.168.64.0/18", 0, 6, Some("192.168.64.0/24")),
        ("192.168.64.0/18", 1, 6, Some("192.168.65.0/24")),
        ("192.168.64.0/18", 63, 6, Some("192.168.127.0/24")),
        ("192.168.0.0/18", 0, 8, Some("192.168.0.0/26")),
        ("192.168.0.0/18", 1, 8, Some("192.168.0.64/26")),
        ("192.168.0.0/18", 3, 8, Some("192.168.0.192/26")),
        ("192.168.0.0/18", 4, 8, Some("192.168.1.0/26")),
        ("192.168.0.0/18", 255, 8, Some("192.168.63.192/26")),
        ("192.168.64.0/18", 1, 8, Some("192.168.64.64/26")),
        ("192.168.0.0/18", 1023, 10, Some("192.168.63.240/28")),
        ("10.0.0.0/8", 1, 5, Some("10.8.0.0/13")),
        ("10.0.0.0/8", 31, 5, Some("10.248.0.0/13")),
        ("172.30.0.0/16", 3, 2, Some("172.30.192.0/18")),
        ("192.168.0.0/16", 0, 0, Some("192.168.0.0/16")),
        ("192.168.0.0/16", 1, 0, None),
        ("192.168.0.0/16", 1, 16, Some("192.168.0.1/32")),
        // More bits than there are.
        ("192.168.0.0/16", 1, 17, None),
        ("192.168.0.0/32", 0, 255, None),
        // Host bits: the prefix counts.
        ("192.168.64.0/16", 1, 2, Some("192.168.64.0/18")),
        ("192.168.64.0/16", 3, 2, Some("192.168.192.0/18")),
        ("fd00:1::/48", 1, 2, Some("fd00:1:0:4000::/50")),
        ("fd00:1::/50", 63, 6, Some("fd00:1:0:3f00::/56")),
        ("::/0", 255, 8, Some("ff00::/8")),
        ("::/0", 0, 0, Some("::/0")),
        ("fd00::/126", 3, 2, Some("fd00::3/128")),
        ("0.0.0.0/0", 1, 1, Some("128.0.0.0/1")),
    ] {
        let found = numbered_net(&net(base), index, bits).ok();
        assert_eq!(found, expected.map(net), "{base} {index} {bits}");
    }
}

/// A2.
#[test]
fn an_exclude_that_is_not_smaller_takes_the_block() {
    for (base, index, bits, excludes, expected) in [
        ("192.168.0.0/16", 0, 8, vec![], false),
        ("192.168.0.0/16", 0, 8, vec!["192.168.0.0/24"], true),
        ("192.168.0.0/16", 0, 8, vec!["192.168.0.0/8"], true),
        ("192.168.0.0/16", 0, 8, vec!["192.168.1.0/24"], false),
        ("192.168.0.0/18", 0, 6, vec!["192.168.0.0/25"], false),
        ("fd00::/48", 0, 8, vec!["fd00::/40"], true),
        ("fd00::/48", 0, 8, vec!["0.0.0.0/0"], false),
    ] {
        let block = numbered_net(&net(base), index, bits).unwrap();
        assert_eq!(
            is_skipped(&block, &nets(&excludes)),
            expected,
            "{base} {excludes:?}"
        );
    }
}

/// A3.
#[test]
fn the_lowest_gap() {
    for (taken, expected) in [
        (vec![], None),
        (vec![0], None),
        (vec![1], Some(0)),
        (vec![0, 1, 2], None),
        (vec![0, 2, 3], Some(1)),
        (vec![0, 1, 3], Some(2)),
        (vec![0, 1, 3, 4], Some(2)),
    ] {
        let taken: BTreeSet<u32> = taken.into_iter().collect();
        assert_eq!(lowest_gap(&taken), expected, "{taken:?}");
    }
}

/// A5: existing indices and excludes, and the index of a subnet that is seen then.
#[test]
fn interface_indices() {
    for (existing, excludes, expected) in [
        (vec![], vec![], Some((0, "192.168.0.0/18"))),
        (vec![0], vec![], Some((1, "192.168.64.0/18"))),
        (vec![1], vec![], Some((0, "192.168.0.0/18"))),
        (vec![0, 1, 2, 3], vec![], None),
        (vec![], vec!["192.168.0.0/18"], Some((1, "192.168.64.0/18"))),
        (vec![], vec!["192.168.0.0/19"], Some((0, "192.168.0.0/18"))),
        (
            vec![],
            vec!["192.168.0.0/17"],
            Some((2, "192.168.128.0/18")),
        ),
        (vec![], vec!["192.168.0.0/16"], None),
    ] {
        let mut stage = Stage::new(&["192.168.0.0/16"], &[], 2, 6);
        // Subnets whose NICs have got the other indices.
        let all: Vec<String> = (0..4).map(|i| format!("10.0.{i}.1/24")).collect();
        let names = ["a0", "a1", "a2", "a3"];
        let full: Vec<(&str, &str)> = names
            .into_iter()
            .zip(all.iter().map(String::as_str))
            .collect();
        let mut old = host("old", 0, &full);
        stage.go(std::slice::from_ref(&old));
        stage.blocks.retain(|_, block| {
            existing.contains(&block.spec.nic.as_ref().unwrap().interface_index)
        });
        old.nics
            .retain(|nic| existing.contains(&nic.name[1..].parse().unwrap()));
        stage.bits.exclude = nets(&excludes);
        let hosts = [old, host("new", 1, &[("eth9", "10.9.0.1/24")])];
        let assignment = stage.go(&hosts);
        let found = stage.blocks.values().find(|block| block.spec.node == "new");
        let index = found.map(|block| block.spec.nic.as_ref().unwrap().interface_index);
        assert_eq!(
            index,
            expected.map(|(index, _)| index),
            "{existing:?} {excludes:?}"
        );
        if let (Some(found), Some((_, outer))) = (found, expected) {
            assert!(
                net(outer).contains(&found.spec.cidr),
                "{existing:?} {excludes:?}"
            );
        }
        assert_eq!(
            assignment.left_out.is_empty(),
            expected.is_some(),
            "{:?}",
            assignment.left_out
        );
    }
}

/// A6: host indices that are taken, and the next.
#[test]
fn host_indices() {
    for (bits, existing, excludes, expected) in [
        (6, vec![], vec![], Some((0, "192.168.0.0/24"))),
        (6, vec![0], vec![], Some((1, "192.168.1.0/24"))),
        (6, vec![0, 1, 5], vec![], Some((6, "192.168.6.0/24"))),
        (6, vec![0, 63], vec![], Some((1, "192.168.1.0/24"))),
        (3, vec![0, 2, 3], vec![], Some((4, "192.168.32.0/21"))),
        (2, vec![0, 1, 2, 3], vec![], None),
        (1, vec![], vec![], Some((0, "192.168.0.0/19"))),
        (1, vec![0], vec![], Some((1, "192.168.32.0/19"))),
        (1, vec![0, 1], vec![], None),
        (
            6,
            vec![],
            vec!["192.168.0.0/24"],
            Some((1, "192.168.1.0/24")),
        ),
        (
            6,
            vec![],
            vec!["192.168.0.0/25"],
            Some((0, "192.168.0.0/24")),
        ),
        (
            6,
            vec![62],
            vec!["192.168.63.0/24", "192.168.0.0/23"],
            Some((2, "192.168.2.0/24")),
        ),
        (6, vec![], vec!["192.168.0.0/18"], None),
    ] {
        let mut stage = Stage::new(&["192.168.0.0/18"], &["10.0.1.0/24"], 0, bits);
        let one = |name: &str, created| host(name, created, &[("eth1", "10.0.1.1/24")]);
        let count = 1_u32 << bits;
        let full: Vec<_> = (0..count).map(|i| one(&format!("h{i}"), i)).collect();
        stage.go(&full);
        let is_there = |name: &str| existing.contains(&name[1..].parse::<u32>().unwrap());
        stage.blocks.retain(|_, block| is_there(&block.spec.node));
        stage.bits.exclude = nets(&excludes);
        let mut hosts: Vec<_> = full
            .into_iter()
            .filter(|host| is_there(&host.name))
            .collect();
        hosts.push(one("new", count));
        let assignment = stage.go(&hosts);
        let found = stage.blocks.values().find(|block| block.spec.node == "new");
        let found =
            found.map(|block| (block.spec.nic.as_ref().unwrap().host_index, block.spec.cidr));
        let expected = expected.map(|(index, cidr)| (index, net(cidr)));
        assert_eq!(found, expected, "{bits} {existing:?} {excludes:?}");
        assert_eq!(
            assignment.left_out.is_empty(),
            expected.is_some(),
            "{:?}",
            assignment.left_out
        );
    }
}

/// A6, as the original's suite has it: excludes of and within blocks, host after host.
#[test]
fn hosts_one_after_the_other() {
    let mut stage = Stage::new(
        &["192.168.0.0/16"],
        &["10.242.0.0/24", "10.242.1.0/24"],
        2,
        8,
    );
    stage.bits.exclude = nets(&["192.168.0.64/26", "192.168.0.128/30"]);
    let nics = [("eth1", "10.242.0.1/24"), ("eth2", "10.242.1.1/24")];
    let mut hosts = Vec::new();
    for i in 0..5 {
        hosts.push(host(&format!("h{i}"), i, &nics));
        stage.go(&hosts);
    }
    assert_eq!(
        stage.rows(),
        [
            "h0 eth1 192.168.0.0/26 0/0",
            "h0 eth2 192.168.64.0/26 1/0",
            "h1 eth1 192.168.0.128/26 0/2",
            "h1 eth2 192.168.64.64/26 1/1",
            "h2 eth1 192.168.0.192/26 0/3",
            "h2 eth2 192.168.64.128/26 1/2",
            "h3 eth1 192.168.1.0/26 0/4",
            "h3 eth2 192.168.64.192/26 1/3",
            "h4 eth1 192.168.1.64/26 0/5",
            "h4 eth2 192.168.65.0/26 1/4",
        ]
    );
    let block = net("192.168.0.128/26");
    assert_eq!(
        within_block(&block, &stage.bits.exclude),
        nets(&["192.168.0.128/30"])
    );
    let mut pool = Pool::new(block, &pool_excludes(&block, &stage.bits.exclude), &[]);
    assert_eq!(pool.allocate("a"), Some("192.168.0.132".parse().unwrap()));
}

/// A8.
#[test]
fn excludes_within_a_block() {
    for (excludes, block, expected) in [
        (vec!["10.0.1.0/24"], "10.0.0.0/16", vec!["10.0.1.0/24"]),
        (vec!["10.0.1.0/24"], "10.0.2.0/24", vec![]),
        (vec!["10.0.1.0/24"], "10.0.1.128/25", vec![]),
        (vec!["10.0.1.0/24"], "10.0.1.0/24", vec![]),
        (
            vec!["10.0.1.1/32", "10.0.2.1/32"],
            "10.0.1.0/24",
            vec!["10.0.1.1/32"],
        ),
    ] {
        assert_eq!(
            within_block(&net(block), &nets(&excludes)),
            nets(&expected),
            "{block}"
        );
    }
    assert_eq!(
        ip_pool_name("netname", &net("192.168.0.0/26")),
        "netname-192.168.0.0-26"
    );
    assert_eq!(
        ip_pool_name("netname", &net("fd00:1::/56")),
        "netname-fd00-1---56"
    );
}

/// A9: the last usable address is used, and an exclude at the start never is.
#[test]
fn the_next_address_of_a_block() {
    for (block, allocated, excludes, expected) in [
        ("192.168.0.0/26", vec![], vec!["192.168.0.0/30"], 4),
        ("192.168.0.0/26", vec![4], vec!["192.168.0.0/30"], 5),
        ("192.168.0.0/26", vec![61], vec![], 62),
        ("192.168.0.0/26", vec![62], vec![], 1),
        ("192.168.0.0/26", vec![62], vec!["192.168.0.0/30"], 4),
        ("192.168.0.0/26", vec![], vec!["192.168.0.32/27"], 1),
        ("192.168.0.0/26", vec![1], vec![], 2),
        ("192.168.0.0/26", vec![], vec!["192.168.0.10/32"], 1),
        ("fd00::/64", vec![], vec![], 1),
    ] {
        let block = net(block);
        let mut pool = Pool::new(block, &pool_excludes(&block, &nets(&excludes)), &[]);
        // The address before was handed out before: the search goes on after it.
        let mut held = 0;
        for index in &allocated {
            while pool.allocate(&format!("h{held}")) != address_at(&block, *index) {
                held += 1;
                assert!(held < 64);
            }
        }
        for filler in (0..held).filter(|_| !allocated.is_empty()) {
            pool.release(&format!("h{filler}"));
        }
        assert_eq!(
            pool.allocate("next"),
            address_at(&block, expected),
            "{block} {allocated:?} {excludes:?}"
        );
    }
}

/// A9: capacities.
#[test]
fn the_first_and_the_last_address_are_reserved() {
    for (block, capacity) in [
        ("10.0.0.0/24", 254),
        ("10.0.0.0/26", 62),
        ("10.0.0.0/28", 14),
        ("10.0.0.0/29", 6),
        ("10.0.0.0/30", 2),
        ("fd00::/120", 254),
        ("fd00::/126", 2),
    ] {
        let block = net(block);
        let pool = Pool::new(block, &pool_excludes(&block, &[]), &[]);
        assert_eq!(pool.capacity(), capacity, "{block}");
    }
}

/// A12, without topology and classes.
#[test]
fn nics_of_a_pod() {
    let there = ["eth1", "eth2", "eth3"];
    let choice = |count, names: &[&str]| NicChoice {
        count,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    for (count, names, expected) in [
        (None, vec![], vec!["eth1", "eth2", "eth3"]),
        (Some(0), vec![], vec!["eth1", "eth2", "eth3"]),
        (Some(1), vec![], vec!["eth1"]),
        (Some(9), vec![], vec!["eth1", "eth2", "eth3"]),
        (None, vec!["eth3", "eth1", "eth3"], vec!["eth3", "eth1"]),
        (Some(1), vec!["eth3", "eth1"], vec!["eth3"]),
    ] {
        assert_eq!(select(&there, &choice(count, &names)).unwrap(), expected);
    }
    let unknown = select(&there, &choice(None, &["eth9"])).unwrap_err();
    assert!(
        unknown.to_string().contains("no NIC \"eth9\"")
            && unknown.to_string().contains("eth1, eth2")
    );
    assert_eq!(select(&[], &NicChoice::default()), Err(SelectError::None));
}

#[test]
fn numbers_are_appended_and_wrap_to_the_lowest_gap() {
    let mut indices = Indices::to(5);
    indices.bar(1, 2);
    indices.bar(2, 3);
    let given: Vec<_> = (0..4).map(|_| indices.append()).collect();
    assert_eq!(given, [Some(0), Some(4), Some(5), None]);
    let mut indices = Indices::to(u32::MAX);
    indices.take(u32::MAX);
    assert_eq!((indices.append(), indices.is_free(1)), (Some(0), true));
}
