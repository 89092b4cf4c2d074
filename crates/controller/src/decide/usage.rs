//! How full a network is, and who uses it.

use ipnet::IpNet;
use plexus_api::objects::{NetworkSpec, Usage};
use plexus_core::ipam::{Pool, shares, tightest};
use plexus_types::Family;
use std::collections::BTreeSet;

/// From what the owners of its blocks say. A part of a block is no block more; addresses count where
/// they are, in the part or in the rest. Addresses are those of the family with the fewest left.
pub(crate) fn usage(
    spec: &NetworkSpec,
    previous_subnets: &[IpNet],
    blocks: impl Iterator<Item = (Option<IpNet>, u64)>,
) -> Usage {
    let subnets = spec.subnets.values().map(|subnet| {
        let gateway = [spec.gateway_of(subnet)];
        let pool = Pool::new(subnet.cidr, &subnet.exclude, &gateway);
        (subnet.cidr, 0, pool.capacity())
    });
    let mut parts: Vec<(IpNet, u128, u128)> = subnets.collect();
    let families: BTreeSet<Family> = parts.iter().map(|(cidr, ..)| family(cidr)).collect();
    let is_part = |cidr: IpNet| {
        let whole = spec.whole_block(previous_subnets, &cidr);
        whole.is_some_and(|whole| whole != cidr.trunc())
    };
    let mut whole_blocks = 0_u64;
    for (cidr, allocated) in blocks {
        whole_blocks = whole_blocks.saturating_add(u64::from(!cidr.is_some_and(is_part)));
        let cidr = cidr.filter(|cidr| families.contains(&family(cidr)));
        parts.extend(cidr.map(|cidr| (cidr, allocated.into(), 0)));
    }
    let share = tightest(&shares(parts));
    let bounded = |count: u128| u64::try_from(count).unwrap_or(MAX_COUNT).min(MAX_COUNT);
    Usage {
        blocks: whole_blocks,
        allocated: bounded(share.used),
        capacity: bounded(share.capacity),
    }
}

fn family(cidr: &IpNet) -> Family {
    Family::of(cidr.addr())
}

/// The largest number that an int64 of the API can say.
const MAX_COUNT: u64 = i64::MAX.unsigned_abs();

/// The pods that use a network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Users {
    /// How many there are.
    pub(crate) count: usize,
    /// The first of them, `namespace/name`, sorted.
    pub(crate) first: Vec<String>,
}

impl Users {
    /// How many are named.
    pub(crate) const MAX_NAMED: usize = 10;

    /// For people.
    pub(crate) fn describe(&self) -> String {
        let more = self.count.saturating_sub(self.first.len());
        let pods = if self.count == 1 { "pod" } else { "pods" };
        let mut text = format!("used by {} {pods}: {}", self.count, self.first.join(", "));
        if more > 0 {
            text += &format!(" and {more} more");
        }
        text
    }
}

/// The addresses that agents report as in use, whether or not a record names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AddressesInUse {
    /// How many addresses are in use.
    pub(crate) addresses: u64,
    /// The nodes that use them.
    pub(crate) nodes: BTreeSet<String>,
    /// The nodes whose agents have not confirmed yet that they issue no more addresses.
    pub(crate) open: BTreeSet<String>,
}

impl AddressesInUse {
    /// From the node of each block, and what that says: addresses in use, and whether it is closed.
    pub(crate) fn of<'a>(blocks: impl Iterator<Item = (&'a str, u64, bool)>) -> Self {
        let mut held = AddressesInUse::default();
        for (node, allocated, closed) in blocks {
            if allocated > 0 {
                held.addresses = held.addresses.saturating_add(allocated);
                held.nodes.insert(node.to_owned());
            } else if !closed {
                held.open.insert(node.to_owned());
            }
        }
        held
    }

    /// Whether somebody may have an address.
    pub(crate) fn any(&self) -> bool {
        self.addresses > 0 || !self.open.is_empty()
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        if self.addresses > 0 {
            let held = named(&self.nodes);
            return format!(
                "{} addresses are in use by blocks of {held}",
                self.addresses
            );
        }
        let open = named(&self.open);
        format!("the agents of {open} have not said yet that they give out no more addresses of it")
    }
}

fn named(nodes: &BTreeSet<String>) -> String {
    let first: Vec<&str> = nodes
        .iter()
        .take(Users::MAX_NAMED)
        .map(String::as_str)
        .collect();
    match nodes.len() - first.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more nodes", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_are_summed_and_large_numbers_bounded() {
        let spec: NetworkSpec = serde_json::from_value(json!({"subnets": {
            "a": {"cidr": "10.1.0.0/24", "gateway": "10.1.0.254", "exclude": ["10.1.0.0/28"]}
        }}))
        .unwrap();
        let block = |cidr: &str, allocated| (Some(cidr.parse().unwrap()), allocated);
        let blocks = [
            block("10.1.0.0/26", 3),
            block("10.1.0.8/29", 2),
            block("10.1.0.64/26", 2),
        ];
        let usage = super::usage(&spec, &[], blocks.into_iter());
        // 256 less the 16 excluded, the broadcast address and the gateway.
        assert_eq!((usage.blocks, usage.allocated, usage.capacity), (2, 7, 238));
        let spec: NetworkSpec = serde_json::from_value(
            json!({"subnets": {"b": {"cidr": "fd00::/16", "gateway": "fd00::1"}}}),
        )
        .unwrap();
        let full = [
            block("fd00::/122", u64::MAX),
            block("fd00:1::/122", u64::MAX),
        ];
        let usage = super::usage(&spec, &[], full.into_iter());
        assert_eq!((usage.allocated, usage.capacity), (MAX_COUNT, MAX_COUNT));
    }

    #[test]
    fn the_family_with_the_fewest_left_counts() {
        let spec: NetworkSpec = serde_json::from_value(json!({"subnets": {
            "a": {"cidr": "10.1.0.0/24"}, "b": {"cidr": "fd00::/64"}
        }}))
        .unwrap();
        let none = super::usage(&spec, &[], std::iter::empty());
        assert_eq!((none.allocated, none.capacity), (0, 253));
        let block = |cidr: &str, allocated| (Some(cidr.parse().unwrap()), allocated);
        let blocks = [block("10.1.0.0/26", 3), block("fd00::/122", 3)];
        let usage = super::usage(&spec, &[], blocks.into_iter());
        assert_eq!((usage.blocks, usage.allocated, usage.capacity), (2, 3, 253));
    }

    #[test]
    fn held_addresses_are_summed_by_node() {
        let held = AddressesInUse::of(
            [
                ("n2", 3, true),
                ("n1", 1, true),
                ("n2", u64::MAX, true),
                ("n3", 0, true),
            ]
            .into_iter(),
        );
        assert_eq!(held.addresses, u64::MAX);
        assert!(held.describe().ends_with("by blocks of n1, n2"));
        let names: Vec<String> = (0..20).map(|i| format!("n{i:02}")).collect();
        let many = AddressesInUse::of(names.iter().map(|name| (name.as_str(), 1, true)));
        assert!(many.describe().ends_with("n09 and 10 more nodes"));
        assert_eq!(
            AddressesInUse::of([("n1", 0, true)].into_iter()),
            AddressesInUse::default()
        );
    }

    #[test]
    fn users_are_named_and_counted() {
        let users = Users {
            count: 12,
            first: vec!["a/x".into(), "a/y".into()],
        };
        assert_eq!(users.describe(), "used by 12 pods: a/x, a/y and 10 more");
        let users = Users {
            count: 1,
            first: vec!["a/x".into()],
        };
        assert_eq!(users.describe(), "used by 1 pod: a/x");
    }
}
