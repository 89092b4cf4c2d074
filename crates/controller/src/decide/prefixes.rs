//! Which prefixes overlap. Two prefixes either lie one in the other or are apart, so that what
//! overlaps is found without looking at the rest: those around it by their length, those within
//! it by their place.

use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Prefixes and whose they are; one may belong to several.
#[derive(Debug)]
pub(crate) struct Prefixes<W>(BTreeMap<(IpAddr, u8), BTreeSet<W>>);

impl<W> Default for Prefixes<W> {
    fn default() -> Self {
        Prefixes(BTreeMap::new())
    }
}

impl<W: Ord + Clone> Prefixes<W> {
    pub(crate) fn insert(&mut self, net: IpNet, owner: W) {
        self.0.entry(key(net)).or_default().insert(owner);
    }

    pub(crate) fn remove(&mut self, net: IpNet, owner: &W) {
        if let Some(owners) = self.0.get_mut(&key(net)) {
            owners.remove(owner);
            if owners.is_empty() {
                self.0.remove(&key(net));
            }
        }
    }

    /// Every prefix that overlaps this one, itself included, with each of its owners.
    pub(crate) fn overlapping(&self, net: IpNet) -> Vec<(IpNet, W)> {
        let around = (0..net.prefix_len()).filter_map(|length| {
            let wider = IpNet::new(net.addr(), length).ok()?.trunc();
            self.0.get_key_value(&key(wider))
        });
        let first = (net.network(), net.prefix_len());
        let within = self.0.range(first..=(net.broadcast(), u8::MAX));
        // A wider prefix can begin at the same address; it is among those around.
        let within = within.filter(|((_, length), _)| *length >= net.prefix_len());
        around
            .chain(within)
            .filter_map(|((address, length), owners)| {
                Some((IpNet::new(*address, *length).ok()?, owners))
            })
            .flat_map(|(net, owners)| owners.iter().map(move |owner| (net, owner.clone())))
            .collect()
    }
}

fn key(net: IpNet) -> (IpAddr, u8) {
    (net.network(), net.prefix_len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn finds_what_a_look_at_all_finds() {
        let all: Vec<IpNet> = [
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.0.0/24",
            "10.1.1.0/24",
            "10.1.1.128/25",
            "10.2.0.0/16",
            "0.0.0.0/0",
            "10.1.1.1/32",
            "255.255.255.255/32",
            "fd00::/8",
            "fd00:1::/48",
            "::/0",
            "fd00:1::1/128",
        ]
        .map(net)
        .to_vec();
        let mut prefixes = Prefixes::default();
        for one in &all {
            prefixes.insert(*one, one.to_string());
        }
        for one in &all {
            let mut found: Vec<IpNet> = prefixes
                .overlapping(*one)
                .into_iter()
                .map(|(net, _)| net)
                .collect();
            found.sort();
            let mut expected: Vec<IpNet> = all
                .iter()
                .copied()
                .filter(|other| one.contains(other) || other.contains(one))
                .collect();
            expected.sort();
            assert_eq!(found, expected, "{one}");
        }
    }

    #[test]
    fn owners_come_and_go() {
        let mut prefixes = Prefixes::default();
        prefixes.insert(net("10.0.0.1/24"), 1);
        prefixes.insert(net("10.0.0.0/24"), 2);
        assert_eq!(prefixes.overlapping(net("10.0.0.7/32")).len(), 2);
        prefixes.remove(net("10.0.0.0/24"), &1);
        prefixes.remove(net("10.0.0.0/24"), &7);
        assert_eq!(
            prefixes.overlapping(net("10.0.0.0/8")),
            [(net("10.0.0.0/24"), 2)]
        );
        prefixes.remove(net("10.0.0.0/24"), &2);
        assert!(prefixes.0.is_empty());
    }
}
