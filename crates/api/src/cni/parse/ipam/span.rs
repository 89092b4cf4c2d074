//! Addresses as numbers: spans of a family, whether they overlap, how large they are.

use ipnet::IpNet;
use plexus_types::Family;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) family: Family,
    pub(crate) first: u128,
    pub(crate) last: u128,
}

impl Span {
    /// All addresses of a prefix.
    pub(crate) fn of(net: &IpNet) -> Self {
        let family = Family::of(net.addr());
        Self {
            family,
            first: number(net.network()),
            last: number(net.broadcast()),
        }
    }

    /// The addresses that interfaces can have: neither the network's own, nor the broadcast
    /// address. Where there are but two or one, all.
    pub(crate) fn usable(net: &IpNet) -> Self {
        let all = Self::of(net);
        if net.prefix_len() + 1 >= all.family.bits() {
            return all;
        }
        let broadcast = u128::from(all.family == Family::V4);
        Self {
            first: all.first + 1,
            last: all.last - broadcast,
            ..all
        }
    }

    /// How many addresses; `u128::MAX` stands for all of IPv6.
    pub(crate) fn len(&self) -> u128 {
        (self.last - self.first).saturating_add(1)
    }

    pub(crate) fn holds(&self, address: IpAddr) -> bool {
        self.family == Family::of(address) && (self.first..=self.last).contains(&number(address))
    }

    /// What two spans share.
    pub(crate) fn shared(&self, other: &Self) -> Option<Self> {
        let first = self.first.max(other.first);
        let last = self.last.min(other.last);
        (self.family == other.family && first <= last).then_some(Self {
            first,
            last,
            ..*self
        })
    }
}

/// Pairs of spans that overlap, each as (earlier, later) position. Not all pairs if many overlap,
/// but at least one for each span that overlaps another.
pub(crate) fn overlaps(spans: &[Span]) -> Vec<(usize, usize)> {
    let mut sorted: Vec<(Span, usize)> = spans.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let mut pairs = Vec::new();
    let mut widest: Option<(Span, usize)> = None;
    for (span, i) in sorted {
        if let Some((other, j)) = widest
            && other.shared(&span).is_some()
        {
            pairs.push((i.min(j), i.max(j)));
        }
        if widest.is_none_or(|(other, _)| (other.family, other.last) < (span.family, span.last)) {
            widest = Some((span, i));
        }
    }
    pairs.sort_unstable();
    pairs
}

pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The address of a number; the upper bits of an IPv4 address are cut.
pub(crate) fn address(family: Family, number: u128) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from((number & u128::from(u32::MAX)) as u32).into(),
        Family::V6 => Ipv6Addr::from(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn usable_addresses() {
        for (text, count) in [
            ("10.0.0.0/24", 254),
            ("10.0.0.0/30", 2),
            ("10.0.0.0/31", 2),
            ("10.0.0.0/32", 1),
            ("fd00::/126", 3),
            ("fd00::/127", 2),
            ("fd00::/128", 1),
            ("fd00::/64", (1 << 64) - 1),
            ("0.0.0.0/0", (1 << 32) - 2),
            ("::/0", u128::MAX),
        ] {
            assert_eq!(Span::usable(&net(text)).len(), count, "{text}");
        }
    }

    #[test]
    fn overlapping_spans_are_found() {
        let find = |list: &[&str]| {
            let spans: Vec<Span> = list.iter().map(|text| Span::of(&net(text))).collect();
            overlaps(&spans)
        };
        assert_eq!(find(&["10.0.0.0/24", "10.0.1.0/24", "::/0"]), []);
        assert_eq!(find(&["10.0.1.0/24", "10.0.0.0/16"]), [(0, 1)]);
        assert_eq!(find(&["10.0.0.0/24", "10.0.0.0/24"]), [(0, 1)]);
        assert_eq!(
            find(&["10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16"]),
            [(0, 1), (0, 2)]
        );
        assert_eq!(find(&["255.0.0.0/8", "::/8"]), []);
    }
}
