//! Addresses from the blocks that this node owns of a network's subnets.
//!
//! One pool per block, and next-fit across the blocks of a subnet too: a freed address rests until
//! the others have had their turn. Claims nothing: says which block would help, and the agent asks.

use super::PoolKey;
use super::donation::Apart;
use super::error::AllocateError;
use super::index::with_prefix;
use super::pool::{PoolError, check_usable};
use super::pools::{Network, check_prefix, check_requests, families};
use crate::attachment::{Assigned, AssignedIp};
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, BlockSubnet, Dns};
use plexus_types::Family;
use std::net::IpAddr;

impl Network {
    /// See [`Pools::allocate_blocks`](super::Pools::allocate_blocks).
    pub(super) fn allocate_blocks(
        &mut self,
        key: &PoolKey,
        config: &BlockIpam,
        apart: &Apart,
        requested: &[(IpAddr, Option<u8>)],
        owner: &str,
    ) -> Result<Assigned, AllocateError> {
        let subnets: Vec<IpNet> = config.subnets.iter().map(|subnet| subnet.cidr).collect();
        check_requests(key, &subnets, requested)?;
        self.forget_all_but(&config.blocks);
        let mut ips = Vec::with_capacity(2);
        for family in families(&subnets) {
            let asked = requested
                .iter()
                .find(|(address, _)| Family::of(*address) == family);
            ips.push(match asked {
                Some(&(address, prefix)) => {
                    self.block_specific(key, (config, apart), (address, prefix), owner)?
                }
                None => self.block_any(key, (config, apart), family, owner)?,
            });
        }
        Ok(Assigned {
            ips,
            routes: config.routes.clone(),
            dns: Dns::default(),
        })
    }

    fn block_any(
        &mut self,
        key: &PoolKey,
        (config, apart): (&BlockIpam, &Apart),
        family: Family,
        owner: &str,
    ) -> Result<AssignedIp, AllocateError> {
        let subnets = || of_family(config, family);
        if let Some((address, subnet)) = self.block_has(config, family, owner) {
            return Ok(assigned(subnet, address));
        }
        let mut capacity = 0_u128;
        for subnet in subnets() {
            for block in self.in_turn(config, subnet) {
                let exclude = apart.excluded(subnet, &block);
                self.prepare_pool(&block, &subnet.cidr, &exclude, &[subnet.gateway]);
                let Some(pool) = self.pools.get_mut(&block) else {
                    continue;
                };
                if let Ok(address) = pool.allocate(owner) {
                    self.hold(address, owner);
                    self.last_block.insert(subnet.cidr, block);
                    return Ok(assigned(subnet, address));
                }
                capacity = capacity.saturating_add(pool.capacity());
            }
        }
        Err(no_room(key, (config, apart), family, capacity))
    }

    fn block_specific(
        &mut self,
        key: &PoolKey,
        (config, apart): (&BlockIpam, &Apart),
        (address, prefix): (IpAddr, Option<u8>),
        owner: &str,
    ) -> Result<AssignedIp, AllocateError> {
        let network = || key.network.clone();
        let family = Family::of(address);
        let refused = |source: PoolError| AllocateError::Requested {
            network: network(),
            source,
        };
        let subnet = of_family(config, family)
            .find(|subnet| subnet.cidr.contains(&address))
            .ok_or_else(|| AllocateError::Outside {
                network: network(),
                address,
                subnets: config.subnets.iter().map(|subnet| subnet.cidr).collect(),
            })?;
        check_prefix(key, address, prefix, subnet.cidr)?;
        match self.block_has(config, family, owner) {
            Some((has, subnet)) if has == address => return Ok(assigned(subnet, address)),
            Some((has, _)) => {
                return Err(refused(PoolError::HasAnother {
                    owner: owner.to_owned(),
                    has,
                    address,
                    subnet: subnet.cidr,
                }));
            }
            None => {}
        }
        check_usable(address, &subnet.cidr, &subnet.exclude, &[subnet.gateway]).map_err(refused)?;
        let block = of_subnet(config, subnet)
            .find(|block| block.contains(&address) && !apart.has(block, address));
        let block = block.ok_or_else(|| not_owned(key, (config, apart), subnet, address))?;
        let exclude = apart.excluded(subnet, &block);
        self.prepare_pool(&block, &subnet.cidr, &exclude, &[subnet.gateway]);
        if let Some(pool) = self.pools.get_mut(&block) {
            pool.allocate_specific(address, owner).map_err(refused)?;
        }
        self.hold(address, owner);
        Ok(assigned(subnet, address))
    }

    /// What the owner has of a family already, whoever owns the block now.
    fn block_has<'a>(
        &self,
        config: &'a BlockIpam,
        family: Family,
        owner: &str,
    ) -> Option<(IpAddr, &'a BlockSubnet)> {
        let mut has = self.owned.get(owner)?.iter();
        has.find_map(|address| {
            let subnet = of_family(config, family).find(|subnet| subnet.cidr.contains(address))?;
            Some((*address, subnet))
        })
    }

    /// The blocks of a subnet, the one that was used last first.
    fn in_turn(&self, config: &BlockIpam, subnet: &BlockSubnet) -> Vec<IpNet> {
        let mut blocks: Vec<IpNet> = of_subnet(config, subnet).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let last = self.last_block.get(&subnet.cidr);
        if let Some(at) = last.and_then(|last| blocks.iter().position(|block| block == last)) {
            blocks.rotate_left(at);
        }
        blocks
    }
}

/// Every subnet with its gateway: what the network needs on the node, whichever of them a pod's
/// address is from.
pub(crate) fn every_block_subnet(config: &BlockIpam) -> Vec<AssignedIp> {
    let each = config.subnets.iter();
    each.map(|subnet| assigned(subnet, subnet.cidr.network()))
        .collect()
}

pub(super) fn of_family(config: &BlockIpam, family: Family) -> impl Iterator<Item = &BlockSubnet> {
    let subnets = config.subnets.iter();
    subnets.filter(move |subnet| Family::of(subnet.cidr.network()) == family)
}

pub(super) fn of_subnet<'a>(
    config: &'a BlockIpam,
    subnet: &'a BlockSubnet,
) -> impl Iterator<Item = IpNet> + 'a {
    let blocks = config.blocks.iter();
    blocks
        .filter(|block| subnet.cidr.contains(*block))
        .map(IpNet::trunc)
}

/// Whether there may be a block in it, or a part of one, that the node does not own.
fn has_more(config: &BlockIpam, apart: &Apart, subnet: &BlockSubnet) -> bool {
    let Some(length) = subnet.block_length else {
        return false;
    };
    let is_whole = |block: &IpNet| block.prefix_len() <= length;
    let all = length.checked_sub(subnet.cidr.prefix_len());
    let all = all.map(|bits| 1_usize.checked_shl(u32::from(bits)).unwrap_or(usize::MAX));
    let owned = of_subnet(config, subnet).filter(is_whole).count();
    let everything = of_subnet(config, subnet).any(|block| block == subnet.cidr);
    let given = of_subnet(config, subnet).any(|block| apart.of(&block).next().is_some());
    given || (!everything && all.is_some_and(|all| owned < all))
}

fn no_room(
    key: &PoolKey,
    (config, apart): (&BlockIpam, &Apart),
    family: Family,
    capacity: u128,
) -> AllocateError {
    let network = key.network.clone();
    let could: Vec<IpNet> = of_family(config, family)
        .filter(|subnet| has_more(config, apart, subnet))
        .map(|subnet| subnet.cidr)
        .collect();
    if could.is_empty() {
        let blocks = of_family(config, family).flat_map(|subnet| of_subnet(config, subnet));
        return AllocateError::BlocksFull {
            network,
            family,
            blocks: blocks.collect(),
            subnets: of_family(config, family)
                .map(|subnet| subnet.cidr)
                .collect(),
            capacity,
        };
    }
    AllocateError::NeedsBlock {
        network,
        family,
        subnets: could,
        containing: None,
    }
}

fn not_owned(
    key: &PoolKey,
    (config, apart): (&BlockIpam, &Apart),
    subnet: &BlockSubnet,
    address: IpAddr,
) -> AllocateError {
    let network = key.network.clone();
    if has_more(config, apart, subnet) {
        return AllocateError::NeedsBlock {
            network,
            family: Family::of(address),
            subnets: vec![subnet.cidr],
            containing: Some(address),
        };
    }
    AllocateError::Elsewhere {
        network,
        address,
        subnet: subnet.cidr,
        blocks: of_subnet(config, subnet).collect(),
    }
}

fn assigned(subnet: &BlockSubnet, address: IpAddr) -> AssignedIp {
    AssignedIp {
        address: with_prefix(address, &subnet.cidr),
        gateway: Some(subnet.gateway),
    }
}
