//! How full something is, by family: a pod gets an address of each, so that the family with the fewest
//! left counts.

use ipnet::IpNet;
use plexus_types::Family;
use std::collections::BTreeMap;

/// Addresses of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// How many are in use.
    pub used: u128,
    /// How many can be handed out.
    pub capacity: u128,
}

/// The sum of each family, from prefixes with what is in use of them and what they can hand out.
pub fn shares(parts: impl IntoIterator<Item = (IpNet, u128, u128)>) -> Vec<(Family, Share)> {
    let mut found: BTreeMap<Family, Share> = BTreeMap::new();
    for (cidr, used, capacity) in parts {
        let share = found.entry(Family::of(cidr.addr())).or_default();
        share.used = share.used.saturating_add(used);
        share.capacity = share.capacity.saturating_add(capacity);
    }
    found.into_iter().collect()
}

/// The family that runs out first; nothing is as full as nothing.
pub fn tightest(shares: &[(Family, Share)]) -> Share {
    let each = shares.iter().map(|(_, share)| *share);
    let left = |share: &Share| share.capacity.saturating_sub(share.used);
    each.min_by_key(left).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_with_the_fewest_left_counts() {
        let part = |cidr: &str, used, capacity| (cidr.parse().unwrap(), used, capacity);
        let found = shares([
            part("fd00::/64", 9, u128::MAX),
            part("fd01::/64", 9, u128::MAX),
            part("10.1.0.0/29", 1, 5),
            part("10.2.0.0/29", 2, 5),
        ]);
        let families: Vec<Family> = found.iter().map(|(family, _)| *family).collect();
        assert_eq!(families, [Family::V4, Family::V6]);
        let (used, capacity) = (3, 10);
        assert_eq!(tightest(&found), Share { used, capacity });
        assert_eq!(tightest(&[]), Share::default());
    }
}
