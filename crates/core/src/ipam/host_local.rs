//! The order in which `host-local` tries the addresses of a range set: round robin, from the one
//! after the last that was reserved, as the reference plugin does.
//!
//! Touches no file: who keeps them says through a function whether an address could be reserved.

use super::allocator::{AddressStore, Allocator};
use super::index::{index_of, number, with_prefix};
use super::{AllocateError, PoolKey};
use crate::attachment::{Assigned, AssignedIp, NativeSpec};
use ipnet::IpNet;
use plexus_api::cni::{HostLocal, Ipam, Range};
use plexus_types::NetworkName;
use std::net::IpAddr;

/// More addresses than this are not tried in one call.
pub const MOST_TRIES: usize = 1 << 20;

/// Why no address was reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostLocalError<E: std::error::Error + 'static> {
    /// Every address is taken.
    #[error("no IP addresses available in range set: {0}")]
    Full(String),
    /// Too many addresses are taken to go on looking.
    #[error("no free address among the {MOST_TRIES} that were tried in range set: {0}")]
    TooMany(String),
    /// The requested address is in none of the ranges.
    #[error("{address} not in range set {set}")]
    Outside {
        /// The address.
        address: IpAddr,
        /// The ranges.
        set: String,
    },
    /// The requested address is the gateway.
    #[error("requested ip {0} is subnet's gateway")]
    Gateway(IpAddr),
    /// The requested address is taken.
    #[error("requested IP address {address} is not available in range set {set}")]
    Taken {
        /// The address.
        address: IpAddr,
        /// The ranges.
        set: String,
    },
    /// Some of the requested addresses are in none of the range sets.
    #[error("failed to allocate all requested IPs: {0}")]
    Unused(String),
    /// The reservation itself failed.
    #[error("cannot reserve {address}")]
    Reserve {
        /// The address that was tried.
        address: IpAddr,
        /// Why.
        #[source]
        source: E,
    },
}

/// host-local's directory cannot be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Allocator for HostLocal {
    /// A configuration's directory is where the plugin has it, so that a Network's is another one.
    fn pool(&self, network: &NetworkName, of_object: bool) -> Option<PoolKey> {
        let data_dir = self.data_dir.to_string_lossy();
        Some(PoolKey::new(
            Ipam::HOST_LOCAL,
            &data_dir,
            network,
            of_object,
        ))
    }

    fn subnets(&self) -> Vec<(IpNet, Option<IpAddr>)> {
        let each = self.ranges.iter().flatten();
        each.map(|range| (range.subnet, Some(range.gateway)))
            .collect()
    }

    fn choose(
        &self,
        spec: &NativeSpec,
        _: &str,
        store: &mut dyn AddressStore,
    ) -> Result<Assigned, AllocateError> {
        let requested: Vec<IpAddr> = spec.native.ips.iter().map(|(ip, _)| *ip).collect();
        let shares = share_out(&self.ranges, &requested)?;
        let mut ips = Vec::with_capacity(self.ranges.len());
        for (set, (ranges, share)) in self.ranges.iter().zip(shares).enumerate() {
            let last = store.last_reserved(set);
            let picked = next(ranges, last, share, &mut |address| store.is_free(address))?;
            store.reserve(set, picked.address.addr());
            ips.push(picked);
        }
        Ok(Assigned {
            ips,
            routes: self.routes.clone(),
            ..Assigned::default()
        })
    }
}

/// Reserves one address of a range set. `reserve` says whether it could take the address that it
/// is given; it is called until it can, at most [`MOST_TRIES`] times.
pub fn next<E: std::error::Error + 'static>(
    set: &[Range],
    last_reserved: Option<IpAddr>,
    requested: Option<IpAddr>,
    reserve: &mut dyn FnMut(IpAddr) -> Result<bool, E>,
) -> Result<AssignedIp, HostLocalError<E>> {
    let mut take =
        |address| reserve(address).map_err(|source| HostLocalError::Reserve { address, source });
    if let Some(address) = requested {
        let range = range_of(set, address).ok_or_else(|| HostLocalError::Outside {
            address,
            set: name(set),
        })?;
        if address == range.gateway {
            return Err(HostLocalError::Gateway(address));
        }
        if !take(address)? {
            return Err(HostLocalError::Taken {
                address,
                set: name(set),
            });
        }
        return Ok(assigned(range, address));
    }
    for (range, address) in Candidates::new(set, last_reserved).take(MOST_TRIES) {
        if take(address)? {
            return Ok(assigned(range, address));
        }
    }
    let more = Candidates::new(set, last_reserved)
        .nth(MOST_TRIES)
        .is_some();
    Err(match more {
        true => HostLocalError::TooMany(name(set)),
        false => HostLocalError::Full(name(set)),
    })
}

/// Which of the requested addresses each range set is asked for: the first that it has. An
/// address that no set is asked for is an error.
pub fn share_out<E: std::error::Error + 'static>(
    sets: &[Vec<Range>],
    requested: &[IpAddr],
) -> Result<Vec<Option<IpAddr>>, HostLocalError<E>> {
    let mut left = requested.to_vec();
    left.dedup();
    let mut shares = Vec::with_capacity(sets.len());
    for set in sets {
        let position = left
            .iter()
            .position(|address| range_of(set, *address).is_some());
        shares.push(position.map(|position| left.remove(position)));
    }
    if left.is_empty() {
        return Ok(shares);
    }
    let addresses: Vec<String> = left.iter().map(IpAddr::to_string).collect();
    Err(HostLocalError::Unused(addresses.join(" ")))
}

/// The range of a set that has the address.
pub fn range_of(set: &[Range], address: IpAddr) -> Option<&Range> {
    set.iter().find(|range| {
        index_of(&range.subnet, address).is_some()
            && (number(range.start)..=number(range.end)).contains(&number(address))
    })
}

/// A range set as the reference plugin writes it.
pub fn name(set: &[Range]) -> String {
    let each = set
        .iter()
        .map(|range| format!("{}-{}", range.start, range.end));
    each.collect::<Vec<_>>().join(",")
}

/// All addresses of a set but the gateways, each once, from the one after `last_reserved` on.
struct Candidates<'a> {
    set: &'a [Range],
    range: usize,
    current: Option<IpAddr>,
    start: Option<IpAddr>,
}

impl<'a> Candidates<'a> {
    fn new(set: &'a [Range], last_reserved: Option<IpAddr>) -> Self {
        let last = last_reserved.and_then(|last| {
            let range = range_of(set, last)?;
            let position = set.iter().position(|other| std::ptr::eq(other, range))?;
            Some((position, last))
        });
        Self {
            set,
            range: last.map_or(0, |(position, _)| position),
            current: last.map(|(_, address)| address),
            start: None,
        }
    }

    /// One step of the wheel; none when it is back where it began.
    fn step(&mut self) -> Option<(&'a Range, IpAddr)> {
        let mut range = self.set.get(self.range)?;
        let address = match self.current {
            None => range.start,
            Some(current) if current == range.end => {
                self.range = (self.range + 1) % self.set.len();
                range = self.set.get(self.range)?;
                range.start
            }
            Some(current) => after(current)?,
        };
        self.current = Some(address);
        if self.start == Some(address) {
            return None;
        }
        self.start.get_or_insert(address);
        Some((range, address))
    }
}

impl<'a> Iterator for Candidates<'a> {
    type Item = (&'a Range, IpAddr);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (range, address) = self.step()?;
            if address != range.gateway {
                return Some((range, address));
            }
        }
    }
}

/// An address of a range, as an attachment gets it.
pub(crate) fn assigned(range: &Range, address: IpAddr) -> AssignedIp {
    AssignedIp {
        address: with_prefix(address, &range.subnet),
        gateway: Some(range.gateway),
    }
}

/// The next address, if there is one.
pub(crate) fn after(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) => u32::from(v4).checked_add(1).map(|n| IpAddr::V4(n.into())),
        IpAddr::V6(v6) => u128::from(v6).checked_add(1).map(|n| IpAddr::V6(n.into())),
    }
}
