//! Bits of addresses: which part of a prefix has which number, and what of a block nobody gets.

use crate::ipam::{address_at, index_of};
use ipnet::IpNet;
use plexus_types::Family;

/// Why a prefix has no part of that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BitsError {
    /// The number needs more bits.
    #[error("index {index} needs more than {bits} bits: the last one is {}", last(*bits))]
    Index {
        /// The number.
        index: u32,
        /// Bits that there are for it.
        bits: u8,
    },
    /// The prefix has fewer bits.
    #[error("{base} has no {bits} bits left to number its parts")]
    Bits {
        /// The prefix.
        base: IpNet,
        /// Bits that are asked for.
        bits: u8,
    },
}

/// The part of a prefix that has this number, if its parts are numbered with so many bits.
pub fn numbered_net(base: &IpNet, index: u32, bits: u8) -> Result<IpNet, BitsError> {
    let base = base.trunc();
    if index > last(bits) {
        return Err(BitsError::Index { index, bits });
    }
    let short = BitsError::Bits { base, bits };
    let length = base.prefix_len().checked_add(bits).ok_or(short)?;
    let rest = base.max_prefix_len().checked_sub(length).ok_or(short)?;
    let offset = u128::from(index).checked_shl(u32::from(rest)).unwrap_or(0);
    let first = address_at(&base, offset).ok_or(short)?;
    IpNet::new(first, length).map_err(|_| short)
}

/// The highest number of so many bits.
pub(super) fn last(bits: u8) -> u32 {
    1_u32
        .checked_shl(u32::from(bits))
        .map_or(u32::MAX, |count| count - 1)
}

/// What the pods of one interface index have on their links.
pub fn interface_block(subnet: &IpNet, bits: u8, index: u32) -> Result<IpNet, BitsError> {
    numbered_net(subnet, index, bits)
}

/// The block of one host within an interface block.
pub fn host_block(interface_block: &IpNet, bits: u8, index: u32) -> Result<IpNet, BitsError> {
    numbered_net(interface_block, index, bits)
}

/// Whether a part of the subnet is left out as a whole: an exclude that is not smaller than it covers it.
pub fn is_skipped(block: &IpNet, excludes: &[IpNet]) -> bool {
    excludes
        .iter()
        .any(|exclude| exclude.trunc().contains(&block.trunc()))
}

/// The excludes that concern addresses of a block, and not the block as a whole.
pub fn within_block(block: &IpNet, excludes: &[IpNet]) -> Vec<IpNet> {
    let block = block.trunc();
    let smaller = |one: &&IpNet| one.prefix_len() > block.prefix_len() && block.contains(*one);
    excludes.iter().filter(smaller).map(IpNet::trunc).collect()
}

/// All that nobody gets of a block: its first and its last address, and what is excluded.
pub fn pool_excludes(block: &IpNet, excludes: &[IpNet]) -> Vec<IpNet> {
    let ends = [block.network(), block.broadcast()].map(IpNet::from);
    let mut all: Vec<IpNet> = ends
        .into_iter()
        .chain(within_block(block, excludes))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The numbers of those parts of a prefix that another prefix meets; parts are numbered with so many bits.
pub(super) fn numbers_met(base: &IpNet, bits: u8, other: &IpNet) -> Option<(u32, u32)> {
    let (base, other) = (base.trunc(), other.trunc());
    if Family::of(base.addr()) != Family::of(other.addr()) {
        return None;
    }
    if other.contains(&base) {
        return Some((0, last(bits)));
    }
    let rest = base
        .max_prefix_len()
        .checked_sub(base.prefix_len().checked_add(bits)?)?;
    let number = |address| u32::try_from(index_of(&base, address)? >> rest).ok();
    Some((number(other.network())?, number(other.broadcast())?))
}
