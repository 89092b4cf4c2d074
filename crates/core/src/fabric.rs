//! How the blocks of other nodes are reached: routes over the underlay (`routed`), tunnels between
//! routers (`overlay`). Owns which route, neighbour and forwarding entry there is for which block;
//! state is per block and node, never per pod.
//!
//! Takes what the cluster says of nodes and blocks; gives plain lists that the kernel room makes true.

use ipnet::IpNet;
use plexus_types::{Family, Mac};
use std::collections::{BTreeMap, BTreeSet};
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
    let (by_node, mut unreachable) = elsewhere(here, of_network);
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

/// Routes to the blocks of `routed` networks (the caller passes only theirs) on other nodes, sorted.
/// What cannot be reached is named in the second list, with the reason.
pub fn block_routes(
    here: &str,
    nodes: &[FabricNode],
    blocks: &[OwnedBlock],
) -> (Vec<BlockRoute>, Vec<String>) {
    let (by_node, mut unreachable) = elsewhere(here, blocks.iter());
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

/// The blocks of other nodes, by owner. One that overlaps with a block of this node, or with one
/// of a node that comes first by name, leads nowhere: the second list says so.
fn elsewhere<'a>(
    here: &str,
    blocks: impl Iterator<Item = &'a OwnedBlock> + Clone,
) -> (BTreeMap<&'a str, BTreeSet<IpNet>>, Vec<String>) {
    let ours = blocks.clone().filter(|block| block.node == here);
    let mut owners: BTreeMap<IpNet, &str> = ours
        .map(|block| (block.cidr.trunc(), &*block.node))
        .collect();
    let mut others: Vec<&OwnedBlock> = blocks.filter(|block| block.node != here).collect();
    others.sort_by_key(|block| (&block.node, block.cidr));
    let mut by_node: BTreeMap<&str, BTreeSet<IpNet>> = BTreeMap::new();
    let mut refused = Vec::new();
    for block in others {
        let cidr = block.cidr.trunc();
        match overlapping(&owners, &cidr) {
            Some((other, owner)) if owner != block.node => refused.push(format!(
                "{cidr}: owned by node {}, but it overlaps with {other} of node {owner}",
                block.node
            )),
            _ => {
                owners.insert(cidr, &block.node);
                by_node.entry(&block.node).or_default().insert(cidr);
            }
        }
    }
    (by_node, refused)
}

/// Prefixes are disjoint or nested, so that one look at the wider ones and one at those inside
/// suffice.
fn overlapping<'a>(owners: &BTreeMap<IpNet, &'a str>, cidr: &IpNet) -> Option<(IpNet, &'a str)> {
    let wider = (0..=cidr.prefix_len()).rev().find_map(|length| {
        let wider = IpNet::new(cidr.network(), length).ok()?.trunc();
        owners.get_key_value(&wider)
    });
    let inside = || {
        let from = IpNet::new(cidr.network(), cidr.prefix_len()).ok()?;
        let mut after = owners.range(from..);
        after.next().filter(|(other, _)| cidr.contains(*other))
    };
    let (other, owner) = wider.or_else(inside)?;
    Some((*other, owner))
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
mod tests {
    use super::*;

    fn block(uid: &str, cidr: &str, node: &str) -> OwnedBlock {
        OwnedBlock {
            uid: uid.to_owned(),
            cidr: cidr.parse().unwrap(),
            node: node.to_owned(),
        }
    }

    fn node(name: &str, addresses: &[&str]) -> FabricNode {
        FabricNode {
            name: name.to_owned(),
            addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
        }
    }

    fn nodes() -> Vec<FabricNode> {
        vec![
            node("n1", &["192.0.2.1", "2001:db8::1"]),
            node("n2", &["192.0.2.2", "192.0.2.22", "2001:db8::2"]),
            node("n3", &["192.0.2.3"]),
            node("n6", &["2001:db8::6"]),
        ]
    }

    #[test]
    fn one_remote_per_node_with_all_its_blocks_of_the_network() {
        let blocks = [
            block("a", "10.1.0.128/26", "n2"),
            block("a", "fd00::40/122", "n2"),
            block("a", "10.1.0.0/26", "n2"),
            block("b", "10.1.0.64/26", "n3"),
            block("a", "10.1.0.64/26", "n1"),
            block("a", "10.1.1.0/26", "n6"),
            block("a", "10.1.2.0/26", "gone"),
        ];
        let local = "192.0.2.1".parse().unwrap();
        let (remotes, unreachable) = remotes("a", "n1", local, &nodes(), &blocks);
        assert_eq!(remotes.len(), 1);
        assert_eq!(remotes[0].underlay, "192.0.2.2".parse::<IpAddr>().unwrap());
        assert_eq!(remotes[0].mac, vtep_mac("a", "n2"));
        let cidrs: Vec<String> = remotes[0].blocks.iter().map(IpNet::to_string).collect();
        assert_eq!(cidrs, ["10.1.0.0/26", "10.1.0.128/26", "fd00::40/122"]);
        assert_eq!(
            unreachable,
            [
                "10.1.2.0/26: its owner gone is not a node of the cluster",
                "10.1.1.0/26: node n6 has no IPv4 InternalIP",
            ]
        );
    }

    #[test]
    fn the_order_of_what_goes_in_does_not_matter() {
        let mut blocks = vec![
            block("a", "10.1.0.128/26", "n2"),
            block("a", "10.1.0.0/26", "n3"),
            block("a", "10.1.0.0/27", "n2"),
            block("a", "10.1.0.0/24", "n6"),
        ];
        let local = "192.0.2.1".parse().unwrap();
        let one = remotes("a", "n1", local, &nodes(), &blocks);
        let routes = block_routes("n1", &nodes(), &blocks);
        blocks.reverse();
        assert_eq!(one, remotes("a", "n1", local, &nodes(), &blocks));
        assert_eq!(routes, block_routes("n1", &nodes(), &blocks));
    }

    #[test]
    fn a_block_that_overlaps_with_another_node_s_leads_nowhere() {
        for (mine, theirs) in [
            ("10.1.0.0/26", "10.1.0.0/26"),
            ("10.1.0.0/26", "10.1.0.7/32"),
            ("10.1.0.0/26", "10.0.0.0/8"),
        ] {
            let blocks = [
                block("a", mine, "n1"),
                block("a", theirs, "n2"),
                block("a", "10.200.0.0/26", "n3"),
            ];
            let (routes, refused) = block_routes("n1", &nodes(), &blocks);
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert!(refused[0].contains("overlaps with 10.1.0.0/26 of node n1"));
            assert_eq!(routes.len(), 1);
        }
    }

    #[test]
    fn routes_go_to_the_owner_s_address_of_the_block_s_family() {
        let blocks = [
            block("a", "fd00:244:2::/64", "n2"),
            block("b", "10.244.2.0/24", "n2"),
            block("b", "10.244.1.0/24", "n1"),
            block("a", "fd00:244:3::/64", "n3"),
        ];
        let (routes, unreachable) = block_routes("n1", &nodes(), &blocks);
        let text: Vec<String> = routes
            .iter()
            .map(|route| format!("{} via {}", route.dst, route.via))
            .collect();
        assert_eq!(
            text,
            [
                "10.244.2.0/24 via 192.0.2.2",
                "fd00:244:2::/64 via 2001:db8::2"
            ]
        );
        assert_eq!(
            unreachable,
            ["fd00:244:3::/64: node n3 has no IPv6 InternalIP"]
        );
    }

    #[test]
    fn a_node_that_has_our_own_address_is_not_a_remote() {
        let twin = [node("n1", &["192.0.2.1"]), node("twin", &["192.0.2.1"])];
        let blocks = [block("a", "10.1.0.0/26", "twin")];
        let local = "192.0.2.1".parse().unwrap();
        let (remotes, unreachable) = remotes("a", "n1", local, &twin, &blocks);
        assert!(remotes.is_empty() && unreachable.len() == 1);
    }
}
