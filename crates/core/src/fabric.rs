//! How the blocks of other nodes are reached: routes over the underlay (`routed`), tunnels between
//! routers (`overlay`). Owns which route, neighbour and forwarding entry there is for which block;
//! state is per block and node, never per pod.
//!
//! Takes what the cluster says of nodes and blocks; gives plain lists that the kernel room makes true.

use ipnet::IpNet;
use plexus_types::Mac;
use std::net::IpAddr;

/// The UDP port of our VXLANs: IANA's.
pub const VXLAN_PORT: u16 = 4789;

/// A node, as the fabric sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricNode {
    /// Its name.
    pub name: String,
    /// Its addresses on the underlay (InternalIP), in order; at most one per family is used.
    pub addresses: Vec<IpAddr>,
}

/// Who owns which part of a network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedBlock {
    /// The network's identity.
    pub uid: String,
    /// The part.
    pub cidr: IpNet,
    /// The owner's name.
    pub node: String,
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
/// `local`'s family. What cannot be reached is named in the second list, with the reason.
pub fn remotes(
    network_uid: &str,
    here: &str,
    local: IpAddr,
    nodes: &[FabricNode],
    blocks: &[OwnedBlock],
) -> (Vec<Remote>, Vec<String>) {
    let _ = (network_uid, here, local, nodes, blocks);
    (Vec::new(), Vec::new())
}

/// Routes to the blocks of `routed` networks (the caller passes only theirs) on other nodes. What
/// cannot be reached is named in the second list, with the reason.
pub fn block_routes(
    here: &str,
    nodes: &[FabricNode],
    blocks: &[OwnedBlock],
) -> (Vec<BlockRoute>, Vec<String>) {
    let _ = (here, nodes, blocks);
    (Vec::new(), Vec::new())
}
