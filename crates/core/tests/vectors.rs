//! The index, exclude and capacity arithmetic of multi-nic-cni, as input and expected output.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

use ipnet::IpNet;
use plexus_core::ipam::{Pool, address_at, exclude_range, index_of};
use std::net::IpAddr;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn index_of_an_address_in_a_prefix() {
    for (prefix, address, expected) in [
        ("192.168.1.0/24", "192.168.1.100", Some(100)),
        ("192.168.1.0/24", "192.168.2.100", None),
        ("192.168.1.0/24", "192.168.1.0", Some(0)),
        ("10.0.0.0/8", "192.168.1.100", None),
        ("192.168.0.0/16", "192.168.0.10", Some(10)),
        ("10.0.0.0/8", "10.1.1.1", Some(65793)),
        ("192.168.0.0/26", "192.168.1.1", None),
        ("192.168.0.0/16", "::ffff:192.168.0.10", None),
        ("fd00::/64", "fd00::1:0", Some(65536)),
        (
            "::/0",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            Some(u128::MAX),
        ),
    ] {
        assert_eq!(
            index_of(&net(prefix), ip(address)),
            expected,
            "{prefix} {address}"
        );
    }
}

#[test]
fn address_by_index() {
    for (prefix, index, expected) in [
        ("10.0.0.0/16", 0, Some("10.0.0.0")),
        ("10.0.0.0/16", 1, Some("10.0.0.1")),
        ("10.0.0.0/16", 256, Some("10.0.1.0")),
        ("10.0.0.0/16", 65536, None),
        ("0.0.0.0/0", 1 << 32, None),
        ("255.255.255.255/32", 1, None),
        (
            "::/0",
            u128::MAX,
            Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ),
    ] {
        assert_eq!(
            address_at(&net(prefix), index),
            expected.map(ip),
            "{prefix} {index}"
        );
    }
}

#[test]
fn excludes_as_index_ranges() {
    for (prefix, excludes, expected) in [
        ("10.0.0.0/16", vec![], vec![]),
        ("10.0.0.0/16", vec!["10.0.0.0/24"], vec![(0, 255)]),
        (
            "10.0.0.0/16",
            vec!["10.0.0.0/24", "10.0.1.1/32"],
            vec![(0, 255), (257, 257)],
        ),
        ("10.0.0.0/24", vec!["10.0.0.0/23"], vec![(0, 511)]),
        ("10.0.1.0/24", vec!["10.0.0.0/23"], vec![(0, 255)]),
        ("10.0.0.0/16", vec!["10.1.0.0/24", "fd00::/64"], vec![]),
    ] {
        let prefix = net(prefix);
        let ranges: Vec<_> = excludes
            .iter()
            .filter_map(|exclude| exclude_range(&prefix, &net(exclude)))
            .collect();
        assert_eq!(ranges, expected, "{prefix} {excludes:?}");
    }
}

#[test]
fn first_free_index_after_what_is_allocated_and_excluded() {
    let allocated = [1, 2, 3, 8, 13, 18];
    for (excludes, expected) in [
        (vec![], 4),
        (vec![(4, 6)], 7),
        (vec![(4, 7)], 9),
        (vec![(4, 7), (9, 12)], 14),
    ] {
        let subnet = net("10.0.0.0/27");
        let each = excludes.iter().flat_map(|&(first, last)| first..=last);
        let excludes: Vec<IpNet> = each
            .map(|index| IpNet::from(address_at(&subnet, index).unwrap()))
            .collect();
        let mut pool = Pool::new(subnet, &excludes, &[]);
        for index in allocated {
            let address = address_at(&subnet, index).unwrap();
            pool.allocate_specific(address, &index.to_string()).unwrap();
        }
        let next = pool.allocate("next").unwrap();
        assert_eq!(index_of(&subnet, next), Some(expected), "{excludes:?}");
    }
}

/// The `offset`-th address that is handed out, as the upstream allocator counts retries.
#[test]
fn next_address() {
    for (subnet, allocated, excludes, offset, expected) in [
        ("192.168.0.0/24", vec![], vec![], 1, "192.168.0.1"),
        ("192.168.0.0/24", vec![1], vec![], 1, "192.168.0.2"),
        ("192.168.0.0/24", vec![255], vec![], 1, "192.168.0.1"),
        (
            "192.168.0.0/26",
            vec![],
            vec!["192.168.0.0/30"],
            1,
            "192.168.0.4",
        ),
        (
            "192.168.0.0/26",
            vec![4],
            vec!["192.168.0.0/30"],
            1,
            "192.168.0.5",
        ),
        ("192.168.0.0/26", vec![61], vec![], 1, "192.168.0.1"),
        (
            "192.168.0.0/26",
            vec![],
            vec!["192.168.0.32/27"],
            1,
            "192.168.0.1",
        ),
        ("192.168.0.0/26", vec![1], vec![], 2, "192.168.0.3"),
        ("192.168.0.0/26", vec![], vec![], 2, "192.168.0.2"),
    ] {
        let subnet = net(subnet);
        let excludes: Vec<IpNet> = excludes.into_iter().map(net).collect();
        let mut pool = Pool::new(subnet, &excludes, &[]);
        for index in &allocated {
            pool.reserve(
                address_at(&subnet, *index).unwrap(),
                &format!("has {index}"),
            )
            .unwrap();
        }
        let last = (0..offset)
            .map(|i| pool.allocate(&format!("asks {i}")).unwrap())
            .last();
        assert_eq!(
            last,
            Some(ip(expected)),
            "{subnet} {allocated:?} {excludes:?} {offset}"
        );
    }
}

#[test]
fn capacities() {
    for (subnet, capacity) in [
        ("10.0.0.0/24", 254),
        ("10.0.0.0/26", 62),
        ("10.0.0.0/28", 14),
        ("10.0.0.0/29", 6),
        ("10.0.0.0/30", 2),
        ("10.0.0.0/31", 2),
        ("10.0.0.0/32", 1),
        ("0.0.0.0/0", (1 << 32) - 2),
        ("fd00::/64", (1 << 64) - 1),
        ("fd00::/126", 3),
        ("fd00::/127", 2),
        ("fd00::/128", 1),
        ("::/0", u128::MAX),
    ] {
        assert_eq!(
            Pool::new(net(subnet), &[], &[]).capacity(),
            capacity,
            "{subnet}"
        );
    }
}
