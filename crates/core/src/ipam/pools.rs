//! IPAM `plexus`: the pools of every network, and the choice of one address per family.
//!
//! What is held is kept per network, apart from the subnets: a configuration may change while
//! its addresses are in use, and after a restart they are replayed before any configuration is
//! seen. A pool is made from both when a subnet is first asked for.

use super::blocks::BlockView;
use super::error::AllocateError;
use super::index::{index_of, with_prefix};
use super::pool::{Pool, PoolError, first_usable};
use super::{NodeBlocks, PoolKey};
use crate::attachment::{Assigned, AssignedIp};
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, Dns, PlexusIpam};
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The pools of a node.
#[derive(Debug, Clone, Default)]
pub struct Pools {
    pub(super) networks: BTreeMap<PoolKey, Network>,
    /// Parts of blocks that were given away, by the network's identity.
    pub(super) donated: BTreeMap<String, BTreeSet<IpNet>>,
}

/// How many pools of subnets that a configuration no longer names are kept, for the place where
/// their next search starts.
const KEPT: usize = 64;

impl Pools {
    /// One address per family, each from the first subnet of its family that has room; addresses
    /// asked for are taken or refused. The same owner gets the same answer. On error nothing
    /// has changed.
    pub fn allocate(
        &mut self,
        key: &PoolKey,
        config: &PlexusIpam,
        requested: &[(IpAddr, Option<u8>)],
        owner: &str,
    ) -> Result<Assigned, AllocateError> {
        self.all_or_nothing(key, owner, |network| {
            network.allocate(key, config, requested, owner)
        })
    }

    /// As [`Pools::allocate`], from the blocks that the node owns: one address per family, each
    /// from the first subnet whose blocks have room. [`AllocateError::NeedsBlock`] if another
    /// block would help.
    pub fn allocate_blocks(
        &mut self,
        key: &PoolKey,
        config: &BlockIpam,
        own: &NodeBlocks,
        requested: &[(IpAddr, Option<u8>)],
        owner: &str,
    ) -> Result<Assigned, AllocateError> {
        let apart = &self.apart(config, own);
        let view = BlockView { config, own, apart };
        self.all_or_nothing(key, owner, |network| {
            network.allocate_blocks(key, view, requested, owner)
        })
    }

    /// Marks an address as held: replay, and links that were found with our mark. Says who has it
    /// if somebody else does.
    pub fn reserve(
        &mut self,
        key: &PoolKey,
        address: IpAddr,
        owner: &str,
    ) -> Result<(), AllocateError> {
        let network = self.networks.entry(key.clone()).or_default();
        match network.held.get(&address).filter(|other| *other != owner) {
            Some(other) => Err(AllocateError::Held {
                network: key.network.clone(),
                address,
                owner: other.clone(),
            }),
            None => {
                network.hold(address, owner);
                Ok(())
            }
        }
    }

    /// Frees all that the owner has under this key, and says what that was.
    pub fn release(&mut self, key: &PoolKey, owner: &str) -> Vec<IpAddr> {
        self.networks
            .get_mut(key)
            .map(|network| network.release(owner))
            .unwrap_or_default()
    }

    /// Everything held, in order: key, address, owner.
    pub fn held(&self) -> impl Iterator<Item = (&PoolKey, IpAddr, &str)> {
        self.networks.iter().flat_map(|(key, network)| {
            network
                .held
                .iter()
                .map(move |(address, owner)| (key, *address, owner.as_str()))
        })
    }

    /// The pools made so far, with their key.
    pub fn pools(&self) -> impl Iterator<Item = (&PoolKey, &Pool)> {
        self.networks
            .iter()
            .flat_map(|(key, network)| network.pools.values().map(move |pool| (key, pool)))
    }

    /// Drops the pools of networks that are gone, where nothing is held any more.
    pub fn forget(&mut self, is_gone: impl Fn(&PoolKey) -> bool) {
        self.networks
            .retain(|key, network| !network.held.is_empty() || !is_gone(key));
    }

    fn all_or_nothing<T>(
        &mut self,
        key: &PoolKey,
        owner: &str,
        allocate: impl FnOnce(&mut Network) -> Result<T, AllocateError>,
    ) -> Result<T, AllocateError> {
        let network = self.networks.entry(key.clone()).or_default();
        let before = network.owned.get(owner).cloned().unwrap_or_default();
        let result = allocate(network);
        if result.is_err() {
            network.release(owner);
            for address in before {
                network.hold(address, owner);
            }
        }
        if network.held.is_empty() && result.is_err() {
            self.networks.remove(key);
        }
        result
    }
}

/// All of one key.
#[derive(Debug, Clone, Default)]
pub(super) struct Network {
    pub(super) held: BTreeMap<IpAddr, String>,
    pub(super) owned: BTreeMap<String, BTreeSet<IpAddr>>,
    pub(super) pools: BTreeMap<IpNet, Pool>,
    /// Blocks: the one of each subnet that an address was handed out from last.
    pub(super) last_block: BTreeMap<IpNet, IpNet>,
    /// The highest address ever held: where a pool that is made after a restart begins, so that an
    /// address that was freed meanwhile rests.
    highest: BTreeMap<Family, IpAddr>,
}

impl Network {
    fn allocate(
        &mut self,
        key: &PoolKey,
        config: &PlexusIpam,
        requested: &[(IpAddr, Option<u8>)],
        owner: &str,
    ) -> Result<Assigned, AllocateError> {
        self.prepare(config);
        check_requests(key, &config.subnets, requested)?;
        let mut ips = Vec::with_capacity(2);
        for family in families(&config.subnets) {
            let asked = requested
                .iter()
                .find(|(address, _)| Family::of(*address) == family);
            ips.push(match asked {
                Some(&(address, prefix)) => self.specific(key, config, address, prefix, owner)?,
                None => self.any(key, config, family, owner)?,
            });
        }
        Ok(Assigned {
            ips,
            routes: config.routes.clone(),
            dns: Dns::default(),
        })
    }

    /// Makes a pool for each subnet, anew if the configuration has changed.
    fn prepare(&mut self, config: &PlexusIpam) {
        self.forget_all_but(&config.subnets);
        for subnet in &config.subnets {
            let reserved = gateways(config, subnet);
            self.prepare_pool(subnet, subnet, &config.exclude, &reserved);
        }
    }

    /// Drops pools that nobody asks for, once there are many.
    pub(super) fn forget_all_but(&mut self, parts: &[IpNet]) {
        if self.pools.len() > KEPT.saturating_add(parts.len()) {
            self.pools.retain(|part, _| parts.contains(part));
        }
    }

    /// Makes the pool of a subnet or a part of it, anew if it was made of something else.
    pub(super) fn prepare_pool(
        &mut self,
        part: &IpNet,
        subnet: &IpNet,
        exclude: &[IpNet],
        reserved: &[IpAddr],
    ) {
        let old = self.pools.get(part);
        if old.is_some_and(|pool| pool.is_made_of(subnet, exclude, reserved)) {
            return;
        }
        let mut pool = Pool::of_part(*part, *subnet, exclude, reserved);
        let after_highest = || {
            let highest = self.highest.get(&Family::of(part.network()))?;
            index_of(part, *highest).map(|index| index.saturating_add(1))
        };
        pool.set_cursor(old.map_or_else(|| after_highest().unwrap_or(0), Pool::cursor));
        for (address, owner) in self.held.range(part.network()..=part.broadcast()) {
            // Cannot fail: the pool is empty, and `held` has each address once.
            let _ = pool.reserve(*address, owner);
        }
        self.pools.insert(*part, pool);
    }

    fn any(
        &mut self,
        key: &PoolKey,
        config: &PlexusIpam,
        family: Family,
        owner: &str,
    ) -> Result<AssignedIp, AllocateError> {
        let subnets = || of_family(config, family);
        let has = subnets().find(|subnet| {
            self.pools
                .get(*subnet)
                .is_some_and(|pool| pool.address_of(owner).is_some())
        });
        let mut full = Vec::new();
        for subnet in has.into_iter().chain(subnets()) {
            let Some(pool) = self.pools.get_mut(subnet) else {
                continue;
            };
            if let Some(address) = pool.allocate(owner) {
                self.hold(address, owner);
                return Ok(assigned(config, subnet, address));
            }
            full.push((*subnet, pool.capacity()));
        }
        Err(AllocateError::Full {
            network: key.network.clone(),
            family,
            subnets: full,
        })
    }

    fn specific(
        &mut self,
        key: &PoolKey,
        config: &PlexusIpam,
        address: IpAddr,
        prefix: Option<u8>,
        owner: &str,
    ) -> Result<AssignedIp, AllocateError> {
        let network = || key.network.clone();
        let outside = || AllocateError::Outside {
            network: network(),
            address,
            subnets: config.subnets.clone(),
        };
        let subnet = config
            .subnets
            .iter()
            .find(|subnet| subnet.contains(&address));
        let subnet = *subnet.ok_or_else(outside)?;
        check_prefix(key, address, prefix, subnet)?;
        let refused = |source: PoolError| AllocateError::Requested {
            network: network(),
            source,
        };
        let pool = self.pools.get_mut(&subnet).ok_or_else(outside)?;
        pool.allocate_specific(address, owner).map_err(refused)?;
        self.hold(address, owner);
        Ok(assigned(config, &subnet, address))
    }

    /// Records a holding here and in every pool whose subnet has the address.
    pub(super) fn hold(&mut self, address: IpAddr, owner: &str) {
        let highest = self.highest.entry(Family::of(address)).or_insert(address);
        *highest = (*highest).max(address);
        self.held.insert(address, owner.to_owned());
        self.owned
            .entry(owner.to_owned())
            .or_default()
            .insert(address);
        for pool in self.pools.values_mut() {
            // Fails for a pool elsewhere; in any other nobody else has the address.
            let _ = pool.reserve(address, owner);
        }
    }

    fn release(&mut self, owner: &str) -> Vec<IpAddr> {
        for pool in self.pools.values_mut() {
            pool.release(owner);
        }
        let addresses = self.owned.remove(owner).unwrap_or_default();
        for address in &addresses {
            self.held.remove(address);
        }
        addresses.into_iter().collect()
    }
}

/// At most one address per family, and only of families that the network has.
pub(super) fn check_requests(
    key: &PoolKey,
    subnets: &[IpNet],
    requested: &[(IpAddr, Option<u8>)],
) -> Result<(), AllocateError> {
    let network = || key.network.clone();
    for (position, &(address, _)) in requested.iter().enumerate() {
        let family = Family::of(address);
        if !families(subnets).any(|known| known == family) {
            return Err(AllocateError::Outside {
                network: network(),
                address,
                subnets: subnets.to_vec(),
            });
        }
        let mut earlier = requested.iter().take(position).map(|(address, _)| *address);
        if let Some(other) = earlier.find(|other| Family::of(*other) == family) {
            return Err(AllocateError::TwoRequested {
                network: network(),
                family,
                address,
                other,
            });
        }
    }
    Ok(())
}

/// A prefix length that is asked for is the subnet's, or that of a single address.
pub(super) fn check_prefix(
    key: &PoolKey,
    address: IpAddr,
    prefix: Option<u8>,
    subnet: IpNet,
) -> Result<(), AllocateError> {
    let legal = [subnet.prefix_len(), subnet.max_prefix_len()];
    match prefix.filter(|prefix| !legal.contains(prefix)) {
        None => Ok(()),
        Some(prefix) => Err(AllocateError::Prefix {
            network: key.network.clone(),
            address,
            prefix,
            subnet,
        }),
    }
}

/// The families of the subnets, in the order of their first subnets.
pub(super) fn families(subnets: &[IpNet]) -> impl Iterator<Item = Family> {
    let mut each = subnets.iter().map(|subnet| Family::of(subnet.network()));
    let first = each.next();
    let other = each.find(move |family| Some(*family) != first);
    first.into_iter().chain(other)
}

fn of_family(config: &PlexusIpam, family: Family) -> impl Iterator<Item = &IpNet> {
    config
        .subnets
        .iter()
        .filter(move |subnet| Family::of(subnet.network()) == family)
}

/// The gateways of a subnet: those that are configured, else its first usable address.
fn gateways(config: &PlexusIpam, subnet: &IpNet) -> Vec<IpAddr> {
    let configured = config
        .gateway
        .iter()
        .filter(|gateway| subnet.contains(*gateway));
    let configured: Vec<IpAddr> = configured.copied().collect();
    if configured.is_empty() {
        first_usable(subnet).into_iter().collect()
    } else {
        configured
    }
}

pub(super) fn assigned(config: &PlexusIpam, subnet: &IpNet, address: IpAddr) -> AssignedIp {
    AssignedIp {
        address: with_prefix(address, subnet),
        gateway: gateways(config, subnet).first().copied(),
    }
}
