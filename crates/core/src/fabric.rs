//! How the blocks of other nodes are reached: routes over the underlay (`routed`), tunnels between
//! routers (`overlay`). Owns which route, neighbour and forwarding entry there is for which block;
//! state is per block and node, never per pod.
//!
//! Takes what the cluster says of nodes and blocks; gives plain lists that the kernel room makes true.

use crate::ipam::enclosing_block;
use ipnet::IpNet;
use plexus_api::objects::DonatedPart;
use plexus_types::{Family, Mac};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The UDP port of our VXLANs: IANA's.
pub const VXLAN_PORT: u16 = 4789;
/// The first VNI of ours: smaller ones are left to others on the same underlay and port (Calico's is 4096).
pub const FIRST_VNI: u32 = 4097;

/// A node, as the fabric sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricNode {
    /// Its name.
    pub name: String,
    /// Its addresses on the underlay (InternalIP), in order; at most one per family is used.
    pub addresses: Vec<IpAddr>,
}

/// Who owns which part of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedBlock {
    /// The network's identity.
    pub uid: String,
    /// The part.
    pub cidr: IpNet,
    /// The owner's name.
    pub node: String,
    /// It is one that nodes claim, no part of one.
    pub whole: bool,
    /// Parts of it that the owner gave away.
    pub given: Vec<DonatedPart>,
    /// Since when it is the owner's.
    pub claimed: ClaimAge,
    /// Why no new route may lead to it, if so: its network is not Active, or may not have that prefix.
    pub no_route: Option<String>,
}

/// Since when a prefix is its owner's, as far as that is known of what no node can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimAge {
    /// It is a podCIDR of the Node: the control plane gave it, before any network did.
    ControlPlane,
    /// The API server made its Block then, in seconds since 1970.
    Made(i64),
    /// Nobody says.
    Unknown,
}

impl ClaimAge {
    /// Whether it is known to be older than the other one.
    fn precedes(self, other: ClaimAge) -> bool {
        match (self, other) {
            (ClaimAge::ControlPlane, ClaimAge::Made(_) | ClaimAge::Unknown) => true,
            (ClaimAge::Made(one), ClaimAge::Made(other)) => one < other,
            _ => false,
        }
    }
}

/// The routes of ours that a node's main table has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExistingRoutes {
    /// To blocks of other nodes.
    pub to_blocks: BTreeSet<BlockRoute>,
    /// Blocks of this node: what no pod has of them is unreachable.
    pub own: BTreeSet<IpNet>,
}

/// Another node, as a router reaches it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remote {
    /// Its name.
    pub node: String,
    /// Its address on the underlay, of the same family as ours.
    pub underlay: IpAddr,
    /// MAC of its VXLAN device for this network.
    pub mac: Mac,
    /// What is there, sorted.
    pub blocks: Vec<IpNet>,
}

/// A block of a `routed` network on another node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockRoute {
    /// The block.
    pub dst: IpNet,
    /// The owner's address on the underlay, of the block's family.
    pub via: IpAddr,
}

/// MAC of a node's VXLAN device of a network: every node computes every other's.
pub fn vtep_mac(network_uid: &str, node: &str) -> Mac {
    Mac::derived(&["vtep", network_uid, node])
}

/// Where a network's other blocks are: one entry per node that owns some and has an address of
/// `local`'s family, sorted by node. What cannot be reached is named in the second list, with the
/// reason.
pub fn remotes(
    network_uid: &str,
    here: &str,
    local: IpAddr,
    nodes: &[FabricNode],
    blocks: &[OwnedBlock],
) -> (Vec<Remote>, Vec<String>) {
    let of_network = blocks.iter().filter(|block| block.uid == network_uid);
    let (by_node, mut unreachable) = elsewhere(here, of_network, |_| false);
    let mut remotes = Vec::with_capacity(by_node.len());
    for (node, blocks) in by_node {
        match address_of(node, nodes, Family::of(local)) {
            Ok(underlay) if underlay == local => unreachable.push(format!(
                "{}: node {node} has the address {underlay}, which is this node's own",
                list(&blocks)
            )),
            Ok(underlay) => remotes.push(Remote {
                node: node.to_owned(),
                underlay,
                mac: vtep_mac(network_uid, node),
                blocks: blocks.into_iter().collect(),
            }),
            Err(reason) => unreachable.push(format!("{}: {reason}", list(&blocks))),
        }
    }
    (remotes, unreachable)
}

/// Routes to the blocks of `routed` networks (the caller passes only theirs) on other nodes, sorted. To a
/// block that may get no new route leads only the route that is there. What cannot be reached is named
/// in the second list, with the reason.
pub fn block_routes(
    here: &str,
    nodes: &[FabricNode],
    blocks: &[OwnedBlock],
    existing: &ExistingRoutes,
) -> (Vec<BlockRoute>, Vec<String>) {
    let is_there = |block: &OwnedBlock| is_routed(here, nodes, block, existing);
    let (open, closed): (Vec<_>, Vec<_>) = blocks
        .iter()
        .partition(|block| block.no_route.is_none() || is_there(block));
    let (by_node, mut unreachable) = elsewhere(here, open.iter().copied(), is_there);
    let closed = closed.into_iter().filter(|block| block.node != here);
    unreachable.extend(closed.map(|block| {
        let (cidr, why) = (block.cidr.trunc(), block.no_route.as_deref());
        format!(
            "{cidr}: its network gets no new routes: {}",
            why.unwrap_or_default()
        )
    }));
    let mut routes = Vec::new();
    for (node, blocks) in by_node {
        for family in Family::ALL {
            let of_family = |block: &&IpNet| Family::of(block.network()) == family;
            let blocks: BTreeSet<IpNet> = blocks.iter().filter(of_family).copied().collect();
            if blocks.is_empty() {
                continue;
            }
            match address_of(node, nodes, family) {
                Ok(via) => routes.extend(blocks.iter().map(|dst| BlockRoute { dst: *dst, via })),
                Err(reason) => unreachable.push(format!("{}: {reason}", list(&blocks))),
            }
        }
    }
    routes.sort();
    (routes, unreachable)
}

/// Whether the node has the very route that a block would get.
fn is_routed(
    here: &str,
    nodes: &[FabricNode],
    block: &OwnedBlock,
    existing: &ExistingRoutes,
) -> bool {
    let dst = block.cidr.trunc();
    if block.node == here {
        return existing.own.contains(&dst);
    }
    let via = address_of(&block.node, nodes, Family::of(dst.network()));
    via.is_ok_and(|via| existing.to_blocks.contains(&BlockRoute { dst, via }))
}

/// This node's legal blocks of a network that are inside another node's: given parts. What is in none of
/// its pods must lead nowhere, or it would go to the node that has the block around it, and back.
pub fn islands(here: &str, blocks: &[OwnedBlock]) -> Vec<IpNet> {
    let all = Blocks::of(blocks.iter());
    let (legal, _) = all.legal();
    let inside = legal.iter().filter(|block| {
        let others = legal.iter().filter(|other| other.node != here);
        let mut others = others.filter(|other| other.uid == block.uid);
        block.node == here && others.any(|other| other.cidr.contains(&block.cidr.trunc()))
    });
    let inside: BTreeSet<IpNet> = inside.map(|block| block.cidr.trunc()).collect();
    inside.into_iter().collect()
}

/// This node's blocks, without parts that nobody gave it. One that may get no new route is there only if the node
/// has it already: what no pod has of it is unreachable from then on.
pub fn own(here: &str, blocks: &[OwnedBlock], existing: &ExistingRoutes) -> Vec<IpNet> {
    let (legal, _) = Blocks::of(blocks.iter()).legal();
    let ours = legal.iter().filter(|block| block.node == here);
    let open =
        ours.filter(|block| block.no_route.is_none() || existing.own.contains(&block.cidr.trunc()));
    open.map(|block| block.cidr.trunc()).collect()
}

/// The blocks of other nodes, by owner. A part of a block that was given by its owner is beside it:
/// the longer prefix leads. One that was not given is nobody's, as if it were not there. Of blocks that
/// overlap otherwise this node's come first, then the one that is known to be older, then the one that is
/// routed already; if nothing tells, none of them is reached. What leads nowhere is in the second list.
fn elsewhere<'a>(
    here: &str,
    blocks: impl Iterator<Item = &'a OwnedBlock> + Clone,
    is_routed: impl Fn(&OwnedBlock) -> bool,
) -> (BTreeMap<&'a str, BTreeSet<IpNet>>, Vec<String>) {
    let (legal, mut refused) = Blocks::of(blocks).legal();
    let comes_before = |one: &OwnedBlock, other: &OwnedBlock| {
        if one.node == here || other.node == here {
            return one.node == here;
        }
        let (older, younger) = (
            one.claimed.precedes(other.claimed),
            other.claimed.precedes(one.claimed),
        );
        older || (!younger && is_routed(one) && !is_routed(other))
    };
    let (won, lost) = decide(legal, comes_before);
    refused.extend(lost);
    refused.sort();
    let mut by_node: BTreeMap<&str, BTreeSet<IpNet>> = BTreeMap::new();
    for block in won.into_iter().filter(|block| block.node != here) {
        let blocks = by_node.entry(&block.node).or_default();
        blocks.insert(block.cidr.trunc());
    }
    (by_node, refused)
}

/// The blocks that have all that they claim, and why others have not. The order of the blocks does not matter.
fn decide(
    mut undecided: Vec<&OwnedBlock>,
    comes_before: impl Fn(&OwnedBlock, &OwnedBlock) -> bool,
) -> (Vec<&OwnedBlock>, Vec<String>) {
    let mut rivals = Rivals::among(&undecided);
    let (mut won, mut lost) = (Vec::new(), Vec::new());
    loop {
        let (winners, others): (Vec<_>, Vec<_>) = undecided
            .into_iter()
            .partition(|block| rivals.of(block).all(|rival| comes_before(block, rival)));
        // Whoever has lost takes nothing from anybody.
        for winner in &winners {
            let losers: Vec<_> = rivals.of(winner).collect();
            for loser in losers {
                lost.push(overlaps(loser, &winner.cidr, &winner.node));
                rivals.remove(loser);
            }
        }
        won.extend(winners);
        let before = others.len();
        undecided = others;
        undecided.retain(|block| rivals.has(block));
        if undecided.len() == before {
            break;
        }
    }
    let tied = undecided.iter().filter_map(|block| {
        let rival = rivals.of(block).find(|rival| !comes_before(block, rival))?;
        let text = overlaps(block, &rival.cidr, &rival.node);
        Some(format!(
            "{text}, and nothing tells which was first: delete the Block that is wrong"
        ))
    });
    lost.extend(tied);
    (won, lost)
}

fn overlaps(block: &OwnedBlock, other: &IpNet, node: &str) -> String {
    format!(
        "{}: owned by node {}, but it overlaps with {} of node {node}",
        block.cidr.trunc(),
        block.node,
        other.trunc(),
    )
}

/// Blocks by their prefix: which of them claim the same addresses.
struct Rivals<'a>(BTreeMap<IpNet, Vec<&'a OwnedBlock>>);

impl<'a> Rivals<'a> {
    fn among(blocks: &[&'a OwnedBlock]) -> Self {
        let mut by_prefix: BTreeMap<IpNet, Vec<&OwnedBlock>> = BTreeMap::new();
        for block in blocks {
            by_prefix.entry(block.cidr.trunc()).or_default().push(block);
        }
        Self(by_prefix)
    }

    /// Those that a block may not overlap with. Prefixes are disjoint or nested: they are among the wider
    /// ones, or among those inside.
    fn of<'r>(&'r self, block: &'r OwnedBlock) -> impl Iterator<Item = &'a OwnedBlock> + 'r {
        let cidr = block.cidr.trunc();
        let wider = std::iter::successors(cidr.supernet(), IpNet::supernet);
        let wider = wider.filter_map(|wider| self.0.get(&wider));
        let inside = self.0.range(cidr..);
        let inside = inside.take_while(move |(other, _)| cidr.contains(*other));
        let overlapping = wider.chain(inside.map(|(_, blocks)| blocks)).flatten();
        overlapping
            .filter(|other| other.node != block.node && !is_beside(block, other))
            .copied()
    }

    fn has(&self, block: &OwnedBlock) -> bool {
        let there = self.0.get(&block.cidr.trunc());
        there.is_some_and(|blocks| blocks.iter().any(|one| std::ptr::eq(*one, block)))
    }

    fn remove(&mut self, block: &OwnedBlock) {
        if let Some(blocks) = self.0.get_mut(&block.cidr.trunc()) {
            blocks.retain(|one| !std::ptr::eq(*one, block));
        }
    }
}

/// Whether one of two legal blocks is a part of the other.
fn is_beside(one: &OwnedBlock, other: &OwnedBlock) -> bool {
    let nested = one.cidr.prefix_len() != other.cidr.prefix_len();
    nested && one.uid == other.uid && !(one.whole && other.whole)
}

/// All blocks, by network and prefix.
struct Blocks<'a> {
    all: Vec<&'a OwnedBlock>,
    by_prefix: BTreeMap<(&'a str, IpNet), &'a OwnedBlock>,
}

impl<'a> Blocks<'a> {
    fn of(blocks: impl Iterator<Item = &'a OwnedBlock>) -> Self {
        let all: Vec<&OwnedBlock> = blocks.collect();
        let each = all
            .iter()
            .map(|block| ((&*block.uid, block.cidr.trunc()), *block));
        Self {
            by_prefix: each.collect(),
            all,
        }
    }

    /// Those that are their owners', and why others are not.
    fn legal(&self) -> (Vec<&'a OwnedBlock>, Vec<String>) {
        let mut legal = Vec::with_capacity(self.all.len());
        let mut refused = Vec::new();
        for block in &self.all {
            match self.robbed(block) {
                Some((cidr, node)) => refused.push(overlaps(block, &cidr, node)),
                None => legal.push(*block),
            }
        }
        (legal, refused)
    }

    /// The block that a part is in without having been given, and its owner.
    fn robbed(&self, block: &'a OwnedBlock) -> Option<(IpNet, &'a str)> {
        if block.whole {
            return None;
        }
        let enclosing_block = enclosing_block(block.cidr, |prefix| {
            let holder = self.by_prefix.get(&(&*block.uid, *prefix))?;
            Some((&*holder.node, &*holder.given))
        });
        let enclosing_block = enclosing_block
            .filter(|enclosing_block| !enclosing_block.gives(&block.cidr, &block.node))?;
        Some((enclosing_block.cidr, enclosing_block.node))
    }
}

fn address_of(node: &str, nodes: &[FabricNode], family: Family) -> Result<IpAddr, String> {
    let known = nodes
        .iter()
        .find(|known| known.name == node)
        .ok_or_else(|| format!("its owner {node} is not a node of the cluster"))?;
    let mut addresses = known.addresses.iter();
    addresses
        .find(|address| Family::of(**address) == family)
        .copied()
        .ok_or_else(|| format!("node {node} has no {family} InternalIP"))
}

fn list(blocks: &BTreeSet<IpNet>) -> String {
    let each: Vec<String> = blocks.iter().map(IpNet::to_string).collect();
    each.join(", ")
}

#[cfg(test)]
mod tests;
