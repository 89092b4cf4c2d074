//! Arithmetic on prefixes: an address is its prefix plus an index, whatever the family.

use ipnet::IpNet;
use plexus_types::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which address of the prefix it is, from 0; none if it is not in it.
pub fn index_of(prefix: &IpNet, address: IpAddr) -> Option<u128> {
    let same_family = Family::of(prefix.network()) == Family::of(address);
    (same_family && prefix.contains(&address))
        .then(|| number(address).wrapping_sub(number(prefix.network())))
}

/// The address with that index; none if the prefix has no such address.
pub fn address_at(prefix: &IpNet, index: u128) -> Option<IpAddr> {
    if index > last_index(prefix) {
        return None;
    }
    let sum = number(prefix.network()).checked_add(index)?;
    match prefix {
        IpNet::V4(_) => Some(IpAddr::V4(Ipv4Addr::from(u32::try_from(sum).ok()?))),
        IpNet::V6(_) => Some(IpAddr::V6(Ipv6Addr::from(sum))),
    }
}

/// The indices, first and last, that an exclude takes from the prefix; none if they do not meet.
/// An exclude that is wider than the prefix ends where it ends, not where the prefix does.
pub fn exclude_range(prefix: &IpNet, exclude: &IpNet) -> Option<(u128, u128)> {
    if Family::of(prefix.network()) != Family::of(exclude.network()) {
        return None;
    }
    let base = number(prefix.network());
    let (first, last) = (number(exclude.network()), number(exclude.broadcast()));
    if last < base || first > number(prefix.broadcast()) {
        return None;
    }
    Some((first.saturating_sub(base), last - base))
}

/// The index of the last address of a prefix: how many it has, less one.
pub(crate) fn last_index(prefix: &IpNet) -> u128 {
    number(prefix.broadcast()) - number(prefix.network())
}

/// An address with the prefix length of a subnet that it is in.
pub(crate) fn with_prefix(address: IpAddr, subnet: &IpNet) -> IpNet {
    IpNet::new(address, subnet.prefix_len()).unwrap_or_else(|_| IpNet::from(address))
}

/// An address as a number.
pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    }
}
