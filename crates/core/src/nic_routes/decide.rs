//! Which routes a node has: to every block of another node that is on the same place of its network as one of its own.

use super::{NetworkRoutes, NextHop, tables};
use crate::nics::{Nic, NicState};
use ipnet::IpNet;
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A network with an interface per NIC whose nodes route to each other (modes l3 and l3s).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct L3Network {
    /// Its identity.
    pub uid: String,
    /// What its blocks are parts of.
    pub subnets: Vec<IpNet>,
}

/// A block that a node has on one of its NICs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NicBlock {
    /// The network's identity.
    pub uid: String,
    /// The part of it.
    pub cidr: IpNet,
    /// The node.
    pub node: String,
    /// Which of the network's interfaces: blocks of different nodes with the same number reach each other.
    pub interface_index: u32,
    /// The node's NIC.
    pub interface: String,
    /// The node's address on it; none: there is no way to the block.
    pub via: Option<IpAddr>,
    /// Nothing new is issued from it.
    pub retired: bool,
}

/// What a node is to have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// Its tables, by their numbers.
    pub tables: BTreeMap<u32, NetworkRoutes>,
    /// What no route can lead to, with the reason; one entry for all blocks that have the same.
    pub unreachable: BTreeSet<String>,
    /// NICs of its networks that are in the same IPv4 subnet as another link: each must answer only for its own addresses,
    /// or packets of one come in by the other.
    pub shared: BTreeSet<String>,
}

/// The tables of the node `here`. A network of which it has no block has none: nobody here would use it.
pub fn decide(here: &str, nics: &[Nic], networks: &[L3Network], blocks: &[NicBlock]) -> Decision {
    let mut decision = Decision::default();
    let mut by_network: BTreeMap<&str, Vec<&NicBlock>> = BTreeMap::new();
    for block in blocks {
        by_network.entry(&block.uid).or_default().push(block);
    }
    let tables = tables(networks.iter().map(|network| network.uid.as_str()));
    for network in networks {
        let blocks = by_network.get(network.uid.as_str());
        let blocks = blocks.map(Vec::as_slice).unwrap_or_default();
        let of_network = OfNetwork::of(here, nics, network, blocks);
        decision.shared.extend(of_network.shared(nics));
        let routes = of_network.routes(here, blocks, &mut decision.unreachable);
        if let Some(table) = tables.get(network.uid.as_str())
            && !routes.sources.is_empty()
        {
            decision.tables.insert(*table, routes);
        }
    }
    decision
}

/// What a node itself has of a network.
struct OfNetwork<'a> {
    network: &'a L3Network,
    /// The NIC for each interface of the network; none: it has none of that name.
    nics: BTreeMap<(Family, u32), (&'a str, Option<&'a Nic>)>,
}

impl<'a> OfNetwork<'a> {
    fn of(here: &str, nics: &'a [Nic], network: &'a L3Network, blocks: &[&'a NicBlock]) -> Self {
        let own = blocks.iter().filter(|block| block.node == here);
        // Where two have the same place the one counts that addresses are issued from.
        let mut own: Vec<_> = own.filter(|block| is_in(network, block)).collect();
        own.sort_by_key(|block| (!block.retired, &block.interface));
        let nic = |name: &str| nics.iter().find(|nic| nic.name == name);
        let nics = own.into_iter().map(|block| {
            let name = block.interface.as_str();
            (key(block), (name, nic(name)))
        });
        Self {
            network,
            nics: nics.collect(),
        }
    }

    fn shared(&self, all: &[Nic]) -> impl Iterator<Item = String> {
        let own = self.nics.values().filter_map(|(_, nic)| *nic);
        let shares = |nic: &&Nic| {
            let mut others = all.iter().filter(|other| other.index != nic.index);
            others.any(|other| share_a_subnet(nic, other))
        };
        own.filter(shares).map(|nic| nic.name.clone())
    }

    fn routes(
        &self,
        here: &str,
        blocks: &[&NicBlock],
        unreachable: &mut BTreeSet<String>,
    ) -> NetworkRoutes {
        let families: BTreeSet<Family> = self.nics.keys().map(|(family, _)| *family).collect();
        let subnets = self.network.subnets.iter().map(IpNet::trunc);
        let mut routes = NetworkRoutes {
            sources: subnets
                .filter(|subnet| families.contains(&Family::of(subnet.addr())))
                .collect(),
            ..NetworkRoutes::default()
        };
        let others = blocks.iter().filter(|block| block.node != here);
        for block in others.filter(|block| is_in(self.network, block)) {
            let Some((name, nic)) = self.nics.get(&key(block)) else {
                continue;
            };
            match next_hop(block, name, *nic) {
                Ok(hop) => drop(routes.routes.insert(block.cidr.trunc(), hop)),
                Err(why) => drop(unreachable.insert(why)),
            }
        }
        routes
    }
}

fn key(block: &NicBlock) -> (Family, u32) {
    (Family::of(block.cidr.addr()), block.interface_index)
}

/// Of IPv6 a link answers only for its own addresses anyway.
fn share_a_subnet(one: &Nic, other: &Nic) -> bool {
    let v4 = |nic: &Nic| {
        let nets = nic.global_addresses();
        let nets: Vec<IpNet> = nets.filter(|net| net.addr().is_ipv4()).collect();
        nets
    };
    let (one, other) = (v4(one), v4(other));
    one.iter().any(|net| {
        other
            .iter()
            .any(|n| net.contains(&n.addr()) || n.contains(&net.addr()))
    })
}

/// Nobody gets a route to himself by writing a block that is no part of his network.
fn is_in(network: &L3Network, block: &NicBlock) -> bool {
    let mut subnets = network.subnets.iter();
    subnets.any(|subnet| subnet.contains(&block.cidr) && subnet.prefix_len() > 0)
}

fn next_hop(block: &NicBlock, name: &str, nic: Option<&Nic>) -> Result<NextHop, String> {
    let NicBlock { node, cidr, .. } = block;
    let family = Family::of(cidr.addr());
    let Some(via) = block.via.filter(|via| Family::of(*via) == family) else {
        return Err(format!(
            "node {node} has no {family} address on {}: there is no way to its blocks there",
            block.interface
        ));
    };
    let Some(nic) = nic else {
        return Err(format!(
            "this node has no NIC {name}: there is no way to blocks of other nodes on it"
        ));
    };
    if nic.state != NicState::Up {
        return Err(format!(
            "NIC {name} is {}: there is no way to blocks of other nodes on it until it is up",
            nic.state.word()
        ));
    }
    if nic.addresses.iter().any(|net| net.addr() == via) {
        return Err(format!(
            "node {node} says that {via} is its address on {}, but it is this node's on {name}",
            block.interface
        ));
    }
    // A next hop in a subnet of the NIC is found there; the kernel is told of any other.
    let near = nic.addresses.iter().any(|net| net.contains(&via));
    Ok(NextHop {
        via,
        link: nic.index,
        onlink: !near,
    })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
