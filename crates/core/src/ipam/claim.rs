//! Which block of a shared subnet a node tries to claim. Owns the order, which spreads the nodes
//! over the subnet so that they seldom want the same block; never claims.

use super::index::{address_at, index_of, last_index};
use super::pool::never_handed_out;
use super::runs::Runs;
use crate::stable::hash64;
use ipnet::IpNet;
use plexus_api::cni::BlockSubnet;
use std::net::IpAddr;

/// As many candidates are named in one call; when they are taken, ask again with what was learnt.
pub const MOST_CANDIDATES: usize = 64;

/// The blocks of a subnet that `node` may try to claim, best first: from a place that its name
/// gives, round the subnet once. None overlaps with one of `taken` (all known blocks of the
/// network, of any node), and each has an address that may be handed out. With `containing`, only
/// the block of that address. Empty: nothing is left, or the subnet has no blocks to claim.
pub fn blocks_to_try(
    subnet: &BlockSubnet,
    taken: &[IpNet],
    node: &str,
    containing: Option<IpAddr>,
) -> Vec<IpNet> {
    let Some(grid) = Grid::of(subnet) else {
        return Vec::new();
    };
    let closed = grid.closed(subnet, taken);
    if let Some(address) = containing {
        let index = index_of(&grid.subnet, address).map(|index| grid.block_of(index));
        let open = index.filter(|index| !closed.contains(*index));
        return open
            .and_then(|index| grid.block(index))
            .into_iter()
            .collect();
    }
    let place = u128::from(hash64(&["block", node, &grid.subnet.to_string()]));
    let start = match grid.last.checked_add(1) {
        Some(count) => place % count,
        None => place,
    };
    let mut found = Vec::new();
    grid.open_from(&closed, start, grid.last, &mut found);
    if let Some(before) = start.checked_sub(1) {
        grid.open_from(&closed, 0, before, &mut found);
    }
    found
}

/// A subnet, as a row of blocks.
struct Grid {
    subnet: IpNet,
    length: u8,
    /// Bits of an address within its block.
    shift: u32,
    /// Number of the last block.
    last: u128,
}

impl Grid {
    fn of(subnet: &BlockSubnet) -> Option<Self> {
        let length = subnet.block_length?;
        let subnet = subnet.cidr.trunc();
        let legal = subnet.prefix_len()..=subnet.max_prefix_len();
        let shift = u32::from(subnet.max_prefix_len().checked_sub(length)?);
        legal.contains(&length).then(|| Self {
            subnet,
            length,
            shift,
            last: last_index(&subnet).checked_shr(shift).unwrap_or(0),
        })
    }

    fn block_of(&self, index: u128) -> u128 {
        index.checked_shr(self.shift).unwrap_or(0)
    }

    fn block(&self, number: u128) -> Option<IpNet> {
        let first = number.checked_shl(self.shift).unwrap_or(0);
        IpNet::new(address_at(&self.subnet, first)?, self.length).ok()
    }

    /// Numbers of the blocks that are not to be had.
    fn closed(&self, subnet: &BlockSubnet, taken: &[IpNet]) -> Runs {
        let mut closed = Runs::default();
        for taken in taken {
            let (first, last) = (taken.network(), taken.broadcast());
            match (index_of(&self.subnet, first), index_of(&self.subnet, last)) {
                (Some(first), Some(last)) => {
                    closed.insert(self.block_of(first), self.block_of(last));
                }
                _ if taken.contains(&self.subnet) => closed.insert(0, self.last),
                _ => {}
            }
        }
        let never = never_handed_out(
            &self.subnet,
            &self.subnet,
            &subnet.exclude,
            subnet.gateway.as_slice(),
        );
        for (first, last) in never.iter() {
            if let Some((first, last)) = self.wholly_in(first, last) {
                closed.insert(first, last);
            }
        }
        closed
    }

    /// The blocks all of whose addresses are between two indices, both included.
    fn wholly_in(&self, first: u128, last: u128) -> Option<(u128, u128)> {
        let mut from = self.block_of(first);
        if from.checked_shl(self.shift).unwrap_or(0) < first {
            from = from.checked_add(1)?;
        }
        let to = match last.checked_add(1) {
            Some(after) if last < last_index(&self.subnet) => {
                self.block_of(after).checked_sub(1)?
            }
            _ => self.last,
        };
        (from <= to).then_some((from, to))
    }

    fn open_from(&self, closed: &Runs, from: u128, last: u128, found: &mut Vec<IpNet>) {
        let mut from = Some(from);
        while let Some(start) = from
            && found.len() < MOST_CANDIDATES
            && let Some(number) = closed.next_free(start, last)
        {
            found.extend(self.block(number));
            from = number.checked_add(1).filter(|next| *next <= last);
        }
    }
}
