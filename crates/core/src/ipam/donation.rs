//! Donations: parts of a node's blocks that other nodes get when no block is free. Decides which part a
//! donor gives, and when a node answers if several could; never asks, never writes.
//!
//! ```text
//!   requester                     donor
//!   "I need 8 addresses"  ──►  donate: a part that nobody uses; from now on nothing is handed out
//!                              from it, whatever happens next
//!   its own block         ◄──  journaled, flushed, and only then said
//! ```
//! A part is aligned, has no address that is in use, excluded, a gateway's or set apart by its
//! family, and is always less than the block: a block of one address is not given. Once given, a
//! part never counts to its block again: whoever has it has another block for it.

use super::blocks::{of_family, of_subnet};
use super::index::{address_at, exclude_range, index_of, last_index};
use super::pool::never_handed_out;
use super::runs::Runs;
use super::{NodeBlocks, PoolKey, Pools};
use crate::stable::hash64;
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, BlockSubnet};
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A donated part of a block: another node's, or another block of the same node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Donation {
    /// The network's identity.
    pub network: String,
    /// The block.
    pub block: IpNet,
    /// The part of it.
    pub part: IpNet,
    /// Its new owner.
    pub node: String,
}

/// Those donations of `block` that are void because another node has the part around them.
///
/// A node that journals a donation may lose the block before it publishes it. Whoever has the block next
/// knows nothing of the donation, and may donate a part around it. `is_alive`: a Block of the donation exists, or the
/// block's status has it; such a donation is never void.
pub fn superseded<'a>(
    journaled: &'a [Donation],
    network: &str,
    block: &IpNet,
    part: &IpNet,
    is_alive: impl Fn(&Donation) -> bool,
) -> Vec<&'a Donation> {
    let of_block = journaled
        .iter()
        .filter(|one| one.network == network && one.block == *block);
    let inside = of_block.filter(|one| one.part != *part && part.contains(&one.part));
    inside.filter(|one| !is_alive(one)).collect()
}

impl Pools {
    /// Gives up a part of the node's blocks for `node`: as many addresses as it would like, but no
    /// more than half of what is free here, and never less than one. None: nothing is free.
    ///
    /// From now on nothing is handed out from the part. What is chosen would have been handed out
    /// next: it has rested the longest.
    pub fn donate(
        &mut self,
        config: &BlockIpam,
        own: &NodeBlocks,
        family: Family,
        addresses: u32,
        node: &str,
    ) -> Option<Donation> {
        let rooms = self.rooms(config, own, family);
        let free = rooms.iter().map(|room| room.free);
        let free = free.fold(0_u128, u128::saturating_add);
        let most = u128::from(addresses).min(free / 2).max(1);
        let (block, part) = (0..=most.ilog2()).rev().find_map(|bits| {
            let mut rooms = rooms.iter();
            rooms.find_map(|room| Some((room.block, room.part(bits)?)))
        })?;
        let donation = Donation {
            network: config.uid.clone(),
            block,
            part,
            node: node.to_owned(),
        };
        self.mark_donated(&donation);
        Some(donation)
    }

    /// Marks a part as donated that somebody else says is, unless an address of it is in use here, or
    /// another part of it is donated. Returns whether it is marked.
    ///
    /// A donation around the whole block does not count: the block was made of it.
    /// What this node has of the part by its owner's word ([`given_within`](super::given_within)) does not count:
    /// the owner issues nothing from that.
    pub fn mark_donated_if_free(&mut self, donation: &Donation, given_back: &[IpNet]) -> bool {
        let part = donation.part.trunc();
        let known = self.donated.get(&donation.network).into_iter().flatten();
        let known = known.filter(|one| !given_back.iter().any(|back| back.contains(*one)));
        let mut known = known.filter(|one| !one.contains(&donation.block));
        let overlaps = |one: &&IpNet| one.contains(&part) || part.contains(*one);
        if let Some(known) = known.find(overlaps) {
            return *known == part;
        }
        let of_it = |key: &&PoolKey| key.network_uid() == Some(&*donation.network);
        let pools = self.networks.iter().filter(|(key, _)| of_it(key));
        let inside = part.network()..=part.broadcast();
        let in_use = |held: &BTreeMap<IpAddr, _>| {
            let mut held = held.range(inside.clone());
            held.any(|(address, _)| !given_back.iter().any(|back| back.contains(address)))
        };
        let free = !pools.map(|(_, network)| &network.held).any(in_use);
        if free {
            self.mark_donated(donation);
        }
        free
    }

    /// Marks a part as donated, as the journal says.
    pub fn mark_donated(&mut self, donation: &Donation) {
        let parts = self.donated.entry(donation.network.clone()).or_default();
        parts.insert(donation.part.trunc());
    }

    /// Unmarks it: nobody was told of it, or its block is another node's altogether.
    pub fn unmark_donated(&mut self, donation: &Donation) {
        if let Some(parts) = self.donated.get_mut(&donation.network) {
            parts.remove(&donation.part.trunc());
            if parts.is_empty() {
                self.donated.remove(&donation.network);
            }
        }
    }

    /// What no block of the network may hand out though it is inside.
    pub(super) fn apart(&self, config: &BlockIpam, own: &NodeBlocks) -> Apart {
        let marked = self.donated.get(&config.uid).into_iter().flatten().copied();
        let in_blocks = own.donated.iter().chain(&own.own).map(IpNet::trunc);
        Apart(marked.chain(in_blocks).collect())
    }

    fn rooms(&self, config: &BlockIpam, own: &NodeBlocks, family: Family) -> Vec<Room> {
        let apart = self.apart(config, own);
        let mut rooms = Vec::new();
        for subnet in of_family(config, family) {
            let blocks: BTreeSet<IpNet> = of_subnet(own, subnet).collect();
            for block in blocks {
                let mut busy = apart.busy(subnet, &block);
                let mut cursor = None;
                let mut highest = None;
                for (key, network) in &self.networks {
                    if key.network_uid() != Some(&*config.uid) {
                        continue;
                    }
                    let held = network.held.range(block.network()..=block.broadcast());
                    for index in held.filter_map(|(address, _)| index_of(&block, *address)) {
                        busy.insert(index, index);
                        highest = highest.max(Some(index));
                    }
                    cursor = cursor.or(network.pools.get(&block).map(|pool| pool.cursor()));
                }
                let after = highest.map_or(0, |index: u128| index.saturating_add(1));
                rooms.push(Room {
                    free: busy.count_free(last_index(&block)),
                    cursor: cursor.unwrap_or(after),
                    block,
                    busy,
                });
            }
        }
        rooms
    }
}

/// What is inside blocks without being theirs: parts given, and smaller blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Apart(BTreeSet<IpNet>);

impl Apart {
    /// What is inside of a block.
    pub(super) fn of(&self, block: &IpNet) -> impl Iterator<Item = &IpNet> {
        let parts = self.0.range(*block..);
        let inside = parts.take_while(|part| block.contains(*part));
        inside.filter(move |part| *part != block)
    }

    /// Whether an address of a block is.
    pub(super) fn has(&self, block: &IpNet, address: IpAddr) -> bool {
        self.of(block).any(|part| part.contains(&address))
    }

    /// What a block hands out nothing from: the subnet's excludes, and what is inside.
    pub(super) fn excluded(&self, subnet: &BlockSubnet, block: &IpNet) -> Vec<IpNet> {
        let written = subnet.exclude.iter().copied();
        written.chain(self.of(block).copied()).collect()
    }

    /// The indices of a block that are nobody's to hand out.
    fn busy(&self, subnet: &BlockSubnet, block: &IpNet) -> Runs {
        let gateway = subnet.gateway.as_slice();
        let mut busy = never_handed_out(block, &subnet.cidr, &subnet.exclude, gateway);
        for part in self.of(block) {
            if let Some((first, last)) = exclude_range(block, part) {
                busy.insert(first, last);
            }
        }
        busy
    }
}

/// A block, as its owner sees it when it is asked.
struct Room {
    block: IpNet,
    busy: Runs,
    free: u128,
    cursor: u128,
}

impl Room {
    /// A free part of 2^`bits` addresses.
    fn part(&self, bits: u32) -> Option<IpNet> {
        let bits = u8::try_from(bits).ok()?;
        let length = self.block.max_prefix_len().checked_sub(bits)?;
        if length <= self.block.prefix_len() {
            return None;
        }
        let (last, size) = (last_index(&self.block), 1_u128 << bits);
        let found = self.busy.next_free_aligned(self.cursor, last, size);
        let found = found.or_else(|| self.busy.next_free_aligned(0, last, size))?;
        IpNet::new(address_at(&self.block, found)?, length).ok()
    }
}

/// How many rounds an owner waits before it answers a request, so that one answers and not all: the
/// one with the most free addresses at once, then two more, then four… `free` is what is known of
/// every owner, `request` spreads those that have as much. One who has nothing is not waited for.
pub fn rounds_to_wait(node: &str, free: &BTreeMap<String, u128>, request: &str) -> u32 {
    let order = |name: &str, free: u128| (std::cmp::Reverse(free), hash64(&[request, name]));
    let mine = order(node, free.get(node).copied().unwrap_or(0));
    let others = free
        .iter()
        .filter(|(name, free)| *name != node && **free > 0);
    let before = others.filter(|(name, free)| order(name, **free) < mine);
    u32::try_from(before.count())
        .unwrap_or(u32::MAX)
        .saturating_add(1)
        .ilog2()
}
