//! Rails: the interface blocks of a network, each for the NICs of one subnet. A host with more than one NIC on a subnet
//! has them on as many rails.

use super::arithmetic::{interface_block, last, numbers_met};
use super::assign::MultiNicTarget;
use super::indices::Indices;
use super::left_out::LeftOut;
use ipnet::IpNet;
use std::collections::BTreeMap;

/// Interface indices, and for the NICs of which subnet each is.
#[derive(Debug, Clone, Default)]
pub(super) struct Rails {
    by_index: BTreeMap<u32, IpNet>,
}

impl Rails {
    /// Gives every subnet as many rails as it needs: `held` stay as they are; then each subnet has one, in the given
    /// order, then those that need more. Gives those for which there is none left, too.
    pub(super) fn assign(
        target: &MultiNicTarget<'_>,
        held: BTreeMap<u32, IpNet>,
        stale: &[IpNet],
        needed: &[(IpNet, usize)],
    ) -> (Self, Vec<LeftOut>) {
        let bits = target.bits.interface;
        let mut indices = Indices::to(last(bits));
        for index in held.keys() {
            indices.take(*index);
        }
        for subnet in target.subnets {
            // One that an exclude leaves no host block of, and one that is in use by earlier arithmetic as a whole.
            for exclude in target.bits.exclude.iter().chain(stale) {
                bar_whole(&mut indices, subnet, bits, exclude);
            }
        }
        let mut rails = Rails { by_index: held };
        let mut left_out = Vec::new();
        let most = needed.iter().map(|(_, count)| *count).max().unwrap_or(0);
        for round in 1..=most {
            for (net, count) in needed {
                if *count < round || rails.of(net).count() >= round {
                    continue;
                }
                match indices.lowest() {
                    Some(index) => {
                        rails.by_index.insert(index, *net);
                    }
                    None => left_out.push(LeftOut::NoInterfaceIndex { net: *net }),
                }
            }
        }
        left_out.dedup();
        (rails, left_out)
    }

    /// The indices of a subnet, in order.
    pub(super) fn of<'r>(&'r self, net: &IpNet) -> impl Iterator<Item = u32> + use<'r> {
        let net = *net;
        let own = self.by_index.iter().filter(move |(_, one)| **one == net);
        own.map(|(index, _)| *index)
    }

    /// All, by index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &IpNet)> {
        self.by_index.iter().map(|(index, net)| (*index, net))
    }
}

/// Bars the indices whose whole interface block another prefix covers.
fn bar_whole(indices: &mut Indices, subnet: &IpNet, bits: u8, other: &IpNet) {
    let Some((first, end)) = numbers_met(subnet, bits, other) else {
        return;
    };
    // Only a prefix that is not smaller than an interface block covers one.
    let covers = |index| {
        interface_block(subnet, bits, index).is_ok_and(|block| other.trunc().contains(&block))
    };
    if covers(first) && covers(end) {
        indices.bar(first, end);
    }
}
