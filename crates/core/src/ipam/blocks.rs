//! Addresses from the blocks that this node owns of a network's subnets.
//!
//! One pool per block, and next-fit across the blocks of a subnet too: a freed address rests until
//! the others have had their turn. Which blocks are this node's is asked when an address is chosen
//! ([`BlockSource`]): they come and go while the configuration of the network stays. Claims nothing: says which
//! block would help, and the agent asks.

use super::PoolKey;
use super::allocator::{AddressStore, Allocator};
use super::donation::Apart;
use super::error::AllocateError;
use super::index::with_prefix;
use super::pool::{PoolError, check_usable};
use super::pools::{Network, check_prefix, check_requests, families};
use crate::attachment::{Assigned, AssignedIp, NativeSpec};
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, BlockSubnet, Dns, Ipam};
use plexus_types::{Family, NetworkName};
use std::net::IpAddr;

/// What this node has of a network's subnets. A subnet that is not divided into blocks is the node's as a whole,
/// whatever this says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeBlocks {
    /// Its blocks, each inside one of the subnets.
    pub own: Vec<IpNet>,
    /// Parts of those that are blocks of their own, whoever's: from the block around them nothing is handed out
    /// there.
    pub donated: Vec<IpNet>,
}

/// Who knows which blocks are this node's.
pub trait BlockSource {
    /// The blocks of a network, by its identity, from which addresses may be issued now.
    fn blocks(&self, network_uid: &str) -> NodeBlocks;
}

/// The same for every network.
impl BlockSource for NodeBlocks {
    fn blocks(&self, _: &str) -> NodeBlocks {
        self.clone()
    }
}

/// A network's subnets, and what of them is this node's to hand out.
#[derive(Clone, Copy)]
pub(super) struct BlockView<'a> {
    pub(super) config: &'a BlockIpam,
    pub(super) own: &'a NodeBlocks,
    pub(super) apart: &'a Apart,
}

impl Allocator for BlockIpam {
    fn pool(&self, network: &NetworkName, _: bool) -> Option<PoolKey> {
        Some(PoolKey::new(Ipam::BLOCKS, &self.uid, network, false))
    }

    fn subnets(&self) -> Vec<(IpNet, Option<IpAddr>)> {
        let each = self.subnets.iter();
        each.map(|subnet| (subnet.cidr, subnet.gateway)).collect()
    }

    fn every_subnet(&self) -> Option<Vec<AssignedIp>> {
        let each = self.subnets.iter();
        let each = each.map(|subnet| assigned(subnet, subnet.cidr.network()));
        Some(each.collect())
    }

    fn choose(
        &self,
        spec: &NativeSpec,
        owner: &str,
        store: &mut dyn AddressStore,
    ) -> Result<Assigned, AllocateError> {
        let key = PoolKey::of_spec(spec).ok_or(AllocateError::NoIpam)?;
        let own = store.blocks(&self.uid);
        let mut pools = store.pools();
        pools.allocate_blocks(&key, self, &own, &spec.native.ips, owner)
    }
}

impl Network {
    /// See [`Pools::allocate_blocks`](super::Pools::allocate_blocks).
    pub(super) fn allocate_blocks(
        &mut self,
        key: &PoolKey,
        view: BlockView<'_>,
        requested: &[(IpAddr, Option<u8>)],
        owner: &str,
    ) -> Result<Assigned, AllocateError> {
        let config = view.config;
        let subnets: Vec<IpNet> = config.subnets.iter().map(|subnet| subnet.cidr).collect();
        check_requests(key, &subnets, requested)?;
        let blocks = config.subnets.iter();
        let blocks = blocks.flat_map(|subnet| of_subnet(view.own, subnet));
        self.forget_all_but(&blocks.collect::<Vec<_>>());
        let mut ips = Vec::with_capacity(2);
        for family in families(&subnets) {
            let asked = requested
                .iter()
                .find(|(address, _)| Family::of(*address) == family);
            ips.push(match asked {
                Some(&(address, prefix)) => {
                    self.block_specific(key, view, (address, prefix), owner)?
                }
                None => self.block_any(key, view, family, owner)?,
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
        view: BlockView<'_>,
        family: Family,
        owner: &str,
    ) -> Result<AssignedIp, AllocateError> {
        let BlockView { config, apart, .. } = view;
        let subnets = || of_family(config, family);
        if let Some((address, subnet)) = self.block_has(config, family, owner) {
            return Ok(assigned(subnet, address));
        }
        let mut capacity = 0_u128;
        for subnet in subnets() {
            for block in self.in_turn(view.own, subnet) {
                let exclude = apart.excluded(subnet, &block);
                self.prepare_pool(&block, &subnet.cidr, &exclude, subnet.gateway.as_slice());
                let Some(pool) = self.pools.get_mut(&block) else {
                    continue;
                };
                if let Some(address) = pool.allocate(owner) {
                    self.hold(address, owner);
                    self.last_block.insert(subnet.cidr, block);
                    return Ok(assigned(subnet, address));
                }
                capacity = capacity.saturating_add(pool.capacity());
            }
        }
        Err(no_room(key, view, family, capacity))
    }

    fn block_specific(
        &mut self,
        key: &PoolKey,
        view: BlockView<'_>,
        (address, prefix): (IpAddr, Option<u8>),
        owner: &str,
    ) -> Result<AssignedIp, AllocateError> {
        let BlockView { config, own, apart } = view;
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
        check_usable(
            address,
            &subnet.cidr,
            &subnet.exclude,
            subnet.gateway.as_slice(),
        )
        .map_err(refused)?;
        let block = of_subnet(own, subnet)
            .find(|block| block.contains(&address) && !apart.has(block, address));
        let block = block.ok_or_else(|| AllocateError::NeedsBlock {
            network: network(),
            family,
            subnets: vec![subnet.cidr],
            containing: Some(address),
            have: own.own.clone(),
        })?;
        let exclude = apart.excluded(subnet, &block);
        self.prepare_pool(&block, &subnet.cidr, &exclude, subnet.gateway.as_slice());
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
    fn in_turn(&self, own: &NodeBlocks, subnet: &BlockSubnet) -> Vec<IpNet> {
        let mut blocks: Vec<IpNet> = of_subnet(own, subnet).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let last = self.last_block.get(&subnet.cidr);
        if let Some(at) = last.and_then(|last| blocks.iter().position(|block| block == last)) {
            blocks.rotate_left(at);
        }
        blocks
    }
}

pub(super) fn of_family(config: &BlockIpam, family: Family) -> impl Iterator<Item = &BlockSubnet> {
    let subnets = config.subnets.iter();
    subnets.filter(move |subnet| Family::of(subnet.cidr.network()) == family)
}

/// This node's blocks of a subnet.
pub(super) fn of_subnet<'a>(
    own: &'a NodeBlocks,
    subnet: &'a BlockSubnet,
) -> impl Iterator<Item = IpNet> + 'a {
    let undivided = subnet.block_length.is_none().then_some(&subnet.cidr);
    let blocks = own.own.iter().chain(undivided);
    blocks
        .filter(|block| subnet.cidr.contains(*block))
        .map(IpNet::trunc)
}

/// Whether there may be a block in it, or a part of one, that the node does not own.
fn has_more(view: BlockView<'_>, subnet: &BlockSubnet) -> bool {
    let BlockView { config, own, apart } = view;
    let Some(length) = subnet.block_length.filter(|_| !config.assigned) else {
        return false;
    };
    let is_whole = |block: &IpNet| block.prefix_len() <= length;
    let all = length.checked_sub(subnet.cidr.prefix_len());
    let all = all.map(|bits| 1_usize.checked_shl(u32::from(bits)).unwrap_or(usize::MAX));
    let owned = of_subnet(own, subnet).filter(is_whole).count();
    let everything = of_subnet(own, subnet).any(|block| block == subnet.cidr);
    let given = of_subnet(own, subnet).any(|block| apart.of(&block).next().is_some());
    given || (!everything && all.is_some_and(|all| owned < all))
}

fn no_room(key: &PoolKey, view: BlockView<'_>, family: Family, capacity: u128) -> AllocateError {
    let BlockView { config, own, .. } = view;
    let network = key.network.clone();
    let could: Vec<IpNet> = of_family(config, family)
        .filter(|subnet| has_more(view, subnet))
        .map(|subnet| subnet.cidr)
        .collect();
    if could.is_empty() {
        let blocks = of_family(config, family).flat_map(|subnet| of_subnet(own, subnet));
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
        have: own.own.clone(),
    }
}

fn assigned(subnet: &BlockSubnet, address: IpAddr) -> AssignedIp {
    AssignedIp {
        address: with_prefix(address, &subnet.cidr),
        gateway: subnet.gateway,
    }
}
