//! The addresses of one subnet, or of one block of it, and who has them.
//!
//! Next-fit: the search starts after the address handed out last, so that a freed address rests
//! before it is used again. Every operation costs O(log n) in the addresses in use.

use super::index::{address_at, exclude_range, index_of, last_index};
use super::runs::Runs;
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The addresses of one subnet, or of a part of it. An owner is given at most one of them.
#[derive(Debug, Clone)]
pub struct Pool {
    /// What is handed out from here.
    subnet: IpNet,
    /// The subnet that it is a part of; itself, if it is not.
    whole: IpNet,
    exclude: Vec<IpNet>,
    reserved: Vec<IpAddr>,
    /// Never handed out: excludes, gateways, what the family reserves.
    blocked: Runs,
    /// `blocked` and everything that has an owner.
    busy: Runs,
    owners: BTreeMap<u128, String>,
    indices: BTreeMap<String, BTreeSet<u128>>,
    /// Where the search for a free address starts.
    cursor: u128,
    capacity: u128,
    used: u128,
}

/// Why an address is not handed out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The address is not in the subnet.
    #[error("address {0} is outside of subnet {1}")]
    Outside(IpAddr, IpNet),
    /// Somebody has it.
    #[error("address {address} of subnet {subnet} is in use by {owner}")]
    Taken {
        /// The address.
        address: IpAddr,
        /// The subnet.
        subnet: IpNet,
        /// Who has it.
        owner: String,
    },
    /// It is the gateway's.
    #[error("address {0} is the gateway of subnet {1}")]
    Gateway(IpAddr, IpNet),
    /// The configuration excludes it.
    #[error("address {address} of subnet {subnet} is excluded by {exclude}")]
    Excluded {
        /// The address.
        address: IpAddr,
        /// The subnet.
        subnet: IpNet,
        /// The exclude that covers it.
        exclude: IpNet,
    },
    /// The family does not let an interface have it.
    #[error(
        "address {address} is the {role} address of subnet {subnet}, which no interface can have"
    )]
    Unusable {
        /// The address.
        address: IpAddr,
        /// The subnet.
        subnet: IpNet,
        /// What it is instead.
        role: &'static str,
    },
    /// The owner has another one already.
    #[error("{owner} has address {has} of subnet {subnet} already, and asks for {address}")]
    HasAnother {
        /// Who asks.
        owner: String,
        /// What it has.
        has: IpAddr,
        /// What it asks for.
        address: IpAddr,
        /// The subnet.
        subnet: IpNet,
    },
}

impl Pool {
    /// A pool in which every usable address is free. Excludes and reserved addresses (gateways)
    /// may lie elsewhere: only what they cover of this subnet counts.
    pub fn new(subnet: IpNet, exclude: &[IpNet], reserved: &[IpAddr]) -> Self {
        Self::of_part(subnet, subnet, exclude, reserved)
    }

    /// As [`Pool::new`], of a part of a subnet: what the family sets apart are the subnet's first
    /// and last address, not the part's.
    pub fn of_part(part: IpNet, subnet: IpNet, exclude: &[IpNet], reserved: &[IpAddr]) -> Self {
        let (part, subnet) = (part.trunc(), subnet.trunc());
        let last = last_index(&part);
        let blocked = never_handed_out(&part, &subnet, exclude, reserved);
        Self {
            subnet: part,
            whole: subnet,
            exclude: exclude.to_vec(),
            reserved: reserved.to_vec(),
            capacity: blocked.count_free(last),
            busy: blocked.clone(),
            blocked,
            owners: BTreeMap::new(),
            indices: BTreeMap::new(),
            cursor: 0,
            used: 0,
        }
    }

    /// What it hands out addresses of: its subnet, or its part of it.
    pub fn subnet(&self) -> IpNet {
        self.subnet
    }

    /// How many addresses it can hand out in all.
    pub fn capacity(&self) -> u128 {
        self.capacity
    }

    /// How many of those are in use.
    pub fn used(&self) -> u128 {
        self.used
    }

    /// Whether it was made from just these.
    pub fn is_made_of(&self, subnet: &IpNet, exclude: &[IpNet], reserved: &[IpAddr]) -> bool {
        self.whole == *subnet && self.exclude == exclude && self.reserved == reserved
    }

    /// What the owner has; the lowest, if more than one was reserved for it.
    pub fn address_of(&self, owner: &str) -> Option<IpAddr> {
        address_at(&self.subnet, *self.indices.get(owner)?.first()?)
    }

    /// The next free address; the one that the owner has, if it has one. None: all are in use.
    pub fn allocate(&mut self, owner: &str) -> Option<IpAddr> {
        if let Some(address) = self.address_of(owner) {
            return Some(address);
        }
        let last = last_index(&self.subnet);
        let from_cursor = self.busy.next_free(self.cursor, last);
        let index = from_cursor.or_else(|| self.busy.next_free(0, last))?;
        let address = address_at(&self.subnet, index)?;
        self.take(index, owner);
        self.cursor = if index == last { 0 } else { index + 1 };
        Some(address)
    }

    /// A certain address, for who asks for it.
    pub fn allocate_specific(&mut self, address: IpAddr, owner: &str) -> Result<(), PoolError> {
        let index = self.free_for(address, owner)?;
        if self.owners.contains_key(&index) {
            return Ok(());
        }
        if let Some(has) = self.address_of(owner) {
            let (owner, subnet) = (owner.to_owned(), self.whole);
            return Err(PoolError::HasAnother {
                owner,
                has,
                address,
                subnet,
            });
        }
        check_usable(address, &self.whole, &self.exclude, &self.reserved)?;
        self.take(index, owner);
        Ok(())
    }

    /// A certain address that the owner is known to have: whatever the excludes say, since they
    /// may have been written after it was handed out, and even if it has another one.
    pub fn reserve(&mut self, address: IpAddr, owner: &str) -> Result<(), PoolError> {
        let index = self.free_for(address, owner)?;
        if !self.owners.contains_key(&index) {
            self.take(index, owner);
        }
        Ok(())
    }

    /// Frees what the owner has, and says what that was.
    pub fn release(&mut self, owner: &str) -> Vec<IpAddr> {
        let indices = self.indices.remove(owner).unwrap_or_default();
        for &index in &indices {
            self.owners.remove(&index);
            if !self.blocked.contains(index) {
                self.busy.remove(index);
                self.used -= 1;
            }
        }
        indices
            .into_iter()
            .filter_map(|index| address_at(&self.subnet, index))
            .collect()
    }

    /// Where the search starts: carried over when a pool is made anew.
    pub(crate) fn cursor(&self) -> u128 {
        self.cursor
    }

    /// See [`Pool::cursor`].
    pub(crate) fn set_cursor(&mut self, cursor: u128) {
        self.cursor = cursor.min(last_index(&self.subnet));
    }

    fn take(&mut self, index: u128, owner: &str) {
        self.owners.insert(index, owner.to_owned());
        self.indices
            .entry(owner.to_owned())
            .or_default()
            .insert(index);
        if !self.blocked.contains(index) {
            self.busy.insert(index, index);
            self.used += 1;
        }
    }

    /// The address's index, if nobody but the owner has it.
    fn free_for(&self, address: IpAddr, owner: &str) -> Result<u128, PoolError> {
        let subnet = self.subnet;
        let index = index_of(&subnet, address).ok_or(PoolError::Outside(address, subnet))?;
        match self.owners.get(&index).filter(|other| *other != owner) {
            Some(other) => Err(PoolError::Taken {
                address,
                subnet,
                owner: other.clone(),
            }),
            None => Ok(index),
        }
    }
}

/// Whether the address may be handed out at all: it is not the gateway's, not excluded, and the
/// family lets an interface have it.
pub(crate) fn check_usable(
    address: IpAddr,
    subnet: &IpNet,
    exclude: &[IpNet],
    reserved: &[IpAddr],
) -> Result<(), PoolError> {
    let subnet = *subnet;
    let index = index_of(&subnet, address).ok_or(PoolError::Outside(address, subnet))?;
    if let Some((_, role)) = unusable(&subnet).find(|(unusable, _)| *unusable == index) {
        return Err(PoolError::Unusable {
            address,
            subnet,
            role,
        });
    }
    if reserved.contains(&address) {
        return Err(PoolError::Gateway(address, subnet));
    }
    match exclude.iter().find(|exclude| exclude.contains(&address)) {
        Some(exclude) => Err(PoolError::Excluded {
            address,
            subnet,
            exclude: *exclude,
        }),
        None => Ok(()),
    }
}

/// The indices of a part that are never handed out.
pub(crate) fn never_handed_out(
    part: &IpNet,
    subnet: &IpNet,
    exclude: &[IpNet],
    reserved: &[IpAddr],
) -> Runs {
    let last = last_index(part);
    let mut blocked = Runs::default();
    let apart = unusable(subnet).filter_map(|(index, _)| address_at(subnet, index));
    for address in apart.chain(reserved.iter().copied()) {
        if let Some(index) = index_of(part, address) {
            blocked.insert(index, index);
        }
    }
    for exclude in exclude {
        if let Some((from, to)) = exclude_range(part, exclude) {
            blocked.insert(from, to.min(last));
        }
    }
    blocked
}

/// The first address that an interface can have; none in a subnet of one address, where it would
/// be the only one.
pub(crate) fn first_usable(subnet: &IpNet) -> Option<IpAddr> {
    let first = u128::from(unusable(subnet).any(|(index, _)| index == 0));
    if last_index(subnet) == 0 {
        None
    } else {
        address_at(subnet, first)
    }
}

/// What the family sets apart. IPv4: network and broadcast address, but not in a /31 (RFC 3021) or
/// /32. IPv6: the subnet-router anycast address (RFC 4291), but not in a /127 (RFC 6164) or /128.
fn unusable(subnet: &IpNet) -> impl Iterator<Item = (u128, &'static str)> {
    let last = last_index(subnet);
    let (first_role, last_role) = match subnet {
        _ if last <= 1 => (None, None),
        IpNet::V4(_) => (Some("network"), Some("broadcast")),
        IpNet::V6(_) => (Some("subnet-router anycast"), None),
    };
    let first = first_role.map(|role| (0, role));
    let last = last_role.map(|role| (last, role));
    first.into_iter().chain(last)
}
