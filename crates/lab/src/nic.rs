//! The NICs of a lab's nodes: what they are called, the wire that each is on, and the addresses that each node has
//! there. The same in every lab that was made by flags; a topology says others. Computes; makes nothing.
//!
//! ```text
//!   by flags, NIC k of node i:  eth<k>  10.200.k.i/24  fd00:200:k::i/64        eth0 is on wire 0, the fabric's
//! ```

use crate::address;
use crate::name::NodeName;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use plexus_api::Problems;
use plexus_types::IfName;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A NIC that nodes have, all of them on one wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Nic {
    /// Its name on each of the nodes.
    pub name: IfName,
    /// The subnets of its addresses.
    pub subnets: Vec<IpNet>,
    /// The nodes that have it; none: all, also those that come later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<BTreeSet<NodeName>>,
    /// A node's address is that many behind its number.
    #[serde(default)]
    pub offset: u32,
    /// The addresses of nodes that have others than by their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<NodeName, Vec<IpAddr>>,
    /// Its MTU; none: the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The nodes on which it is down when they come.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub down: BTreeSet<NodeName>,
}

/// A NIC as one node has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeNic {
    /// Its name.
    pub name: IfName,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
    /// Its MTU.
    pub mtu: Option<u32>,
    /// Whether it is up when the node comes.
    pub up: bool,
}

impl Nic {
    /// NIC `number` of a lab without a topology; 0 is the uplink of every lab.
    pub(crate) fn numbered(number: u8) -> Option<Self> {
        Some(Self {
            name: IfName::new(&format!("eth{number}")).ok()?,
            subnets: address::networks(number).into(),
            nodes: None,
            offset: 0,
            addresses: BTreeMap::new(),
            mtu: None,
            down: BTreeSet::new(),
        })
    }

    /// Whether the node has it.
    pub(crate) fn is_of(&self, node: NodeName) -> bool {
        self.nodes
            .as_ref()
            .is_none_or(|nodes| nodes.contains(&node))
    }

    /// As the node has it; none if it does not.
    pub(crate) fn of(&self, node: NodeName) -> Option<NodeNic> {
        let addresses = self.subnets.iter();
        self.is_of(node).then(|| NodeNic {
            name: self.name.clone(),
            addresses: addresses
                .filter_map(|net| self.address(node, *net))
                .collect(),
            mtu: self.mtu,
            up: !self.down.contains(&node),
        })
    }

    /// The node's address in a subnet; none if the subnet ends before it.
    fn address(&self, node: NodeName, subnet: IpNet) -> Option<IpNet> {
        let chosen = self.addresses.get(&node).into_iter().flatten();
        let mut chosen = chosen.filter(|address| subnet.contains(*address));
        if let Some(address) = chosen.next() {
            return IpNet::new(*address, subnet.prefix_len()).ok();
        }
        host(subnet, self.offset.checked_add(node.number().into())?)
    }
}

/// An address of a subnet by its number. Neither the first nor the last one of IPv4 is a host's.
fn host(subnet: IpNet, number: u32) -> Option<IpNet> {
    let address = match subnet {
        IpNet::V4(net) => {
            let address = Ipv4Addr::from(u32::from(net.network()).checked_add(number)?);
            IpNet::V4(Ipv4Net::new(address, net.prefix_len()).ok()?)
        }
        IpNet::V6(net) => {
            let address = u128::from(net.network()).checked_add(number.into())?;
            IpNet::V6(Ipv6Net::new(Ipv6Addr::from(address), net.prefix_len()).ok()?)
        }
    };
    (subnet.contains(&address.addr()) && is_of_host(subnet, address.addr())).then_some(address)
}

/// Whether an address of a subnet can be a host's.
pub(crate) fn is_of_host(subnet: IpNet, address: IpAddr) -> bool {
    let is_last = address.is_ipv4() && address == subnet.broadcast();
    address != subnet.network() && !is_last
}

/// What cannot be if these nodes have these NICs: names and addresses that are there twice, and subnets that are too small.
pub(crate) fn conflicts(nics: &[Nic], nodes: &BTreeSet<NodeName>) -> Problems {
    let mut problems = Problems::default();
    for (index, nic) in nics.iter().enumerate() {
        let has = |node: &&NodeName| nic.is_of(**node);
        for (number, subnet) in nic.subnets.iter().enumerate() {
            let lacks = |node: &&NodeName| nic.address(**node, *subnet).is_none();
            if let Some(node) = nodes.iter().filter(has).find(lacks) {
                problems.add(
                    format!("nics[{index}].subnets[{number}]"),
                    format!(
                        "{subnet} has no address for node {node}, which is number {} there: make it larger, lower \
                         `offset`, or name one in `addresses`",
                        u64::from(nic.offset) + u64::from(node.number())
                    ),
                );
            }
        }
        if let Some((node, address, other)) = shared_address(nic, nodes) {
            problems.add(
                format!("nics[{index}].addresses"),
                format!("{address} is both {other}'s and {node}'s: name another in `addresses`"),
            );
        }
        for (earlier, other) in nics.iter().take(index).enumerate() {
            if let Some((key, text)) = conflict(nic, (earlier, other), nodes) {
                problems.add(format!("nics[{index}].{key}"), text);
            }
        }
    }
    problems
}

/// What a node cannot have of both.
fn conflict(
    nic: &Nic,
    (number, other): (usize, &Nic),
    nodes: &BTreeSet<NodeName>,
) -> Option<(&'static str, String)> {
    let both = nodes.iter().filter_map(|node| {
        let (one, two) = (other.of(*node)?, nic.of(*node)?);
        let is_shared = |a: &&IpNet| one.addresses.iter().any(|b| a.addr() == b.addr());
        let address = two.addresses.iter().find(is_shared).map(IpNet::addr);
        Some((*node, address))
    });
    let both: Vec<(NodeName, Option<IpAddr>)> = both.collect();
    let (node, _) = both.first()?;
    if other.name == nic.name {
        let text = format!(
            "node {node} has {} already, by nics[{number}]: choose another name, or other `nodes`",
            nic.name
        );
        return Some(("name", text));
    }
    let mut shared = both.iter();
    let (node, address) = shared.find_map(|(node, address)| Some((node, (*address)?)))?;
    let text = format!(
        "node {node} has {address} already, on {} (nics[{number}]): give this NIC an `offset`, such as 100",
        other.name
    );
    Some(("subnets", text))
}

/// Two nodes with one address on a wire.
fn shared_address(nic: &Nic, nodes: &BTreeSet<NodeName>) -> Option<(NodeName, IpAddr, NodeName)> {
    let mut owners = BTreeMap::new();
    for node in nodes {
        for net in nic.of(*node).map(|nic| nic.addresses).unwrap_or_default() {
            if let Some(other) = owners.insert(net.addr(), *node)
                && other != *node
            {
                return Some((*node, net.addr(), other));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u8) -> NodeName {
        NodeName::numbered(number).unwrap()
    }

    fn nodes(numbers: &[u8]) -> BTreeSet<NodeName> {
        numbers.iter().map(|number| node(*number)).collect()
    }

    fn nic(name: &str, subnets: &[&str]) -> Nic {
        Nic {
            name: name.parse().unwrap(),
            subnets: subnets.iter().map(|text| text.parse().unwrap()).collect(),
            ..Nic::numbered(1).unwrap()
        }
    }

    fn addresses(nic: &Nic, number: u8) -> Vec<String> {
        let nic = nic.of(node(number)).unwrap();
        nic.addresses.iter().map(IpNet::to_string).collect()
    }

    fn problems(nics: &[Nic], of: &[u8]) -> Vec<String> {
        let found = conflicts(nics, &nodes(of)).0;
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn without_a_topology_every_nic_has_its_own_network() {
        let text = |number| addresses(&Nic::numbered(number).unwrap(), 10);
        assert_eq!(text(0), ["10.200.0.10/24", "fd00:200::a/64"]);
        assert_eq!(text(2), ["10.200.2.10/24", "fd00:200:2::a/64"]);
        assert_eq!(Nic::numbered(8).unwrap().name.as_str(), "eth8");
    }

    #[test]
    fn addresses_are_by_number_unless_they_are_named() {
        let mut rail = nic("eth1", &["10.0.1.0/24", "fd00:10:1::/64"]);
        rail.offset = 100;
        rail.addresses
            .insert(node(2), vec!["10.0.1.99".parse().unwrap()]);
        rail.down.insert(node(2));
        assert_eq!(addresses(&rail, 1), ["10.0.1.101/24", "fd00:10:1::65/64"]);
        assert_eq!(addresses(&rail, 2), ["10.0.1.99/24", "fd00:10:1::66/64"]);
        assert!(rail.of(node(1)).unwrap().up && !rail.of(node(2)).unwrap().up);
        rail.nodes = Some(nodes(&[1]));
        assert_eq!(rail.of(node(2)), None);
    }

    #[test]
    fn a_subnet_has_room_for_each_node() {
        let small = [nic("eth1", &["10.0.1.0/29", "fd00::/126"])];
        assert_eq!(problems(&small, &[1, 3]), Vec::<String>::new());
        let found = problems(&small, &[1, 7]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("nics[0].subnets[0]: 10.0.1.0/29 has no address for node n7"),
            "{found:?}"
        );
        let mut far = nic("eth1", &["255.255.255.0/24"]);
        far.offset = u32::MAX;
        assert_eq!(problems(&[far], &[1]).len(), 1);
    }

    #[test]
    fn an_address_and_a_name_are_there_once() {
        let one = nic("eth1", &["10.0.1.0/24"]);
        let mut two = nic("eth2", &["10.0.0.0/16"]);
        assert_eq!(problems(&[one.clone(), two.clone()], &[1]), [""; 0]);
        two.subnets.clone_from(&one.subnets);
        let found = problems(&[one.clone(), two.clone()], &[1]);
        assert_eq!(
            found,
            [
                "nics[1].subnets: node n1 has 10.0.1.1 already, on eth1 (nics[0]): give this NIC an `offset`, such as 100"
            ]
        );
        two.offset = 100;
        assert_eq!(problems(&[one.clone(), two.clone()], &[1, 2]), [""; 0]);
        two.name = one.name.clone();
        let found = problems(&[one.clone(), two.clone()], &[1, 2]);
        assert!(
            found[0].starts_with("nics[1].name: node n1 has eth1 already, by nics[0]"),
            "{found:?}"
        );
        two.nodes = Some(nodes(&[2]));
        let mut of_one = one.clone();
        of_one.nodes = Some(nodes(&[1]));
        assert_eq!(problems(&[of_one, two], &[1, 2]), [""; 0]);
        let mut taken = one;
        taken
            .addresses
            .insert(node(1), vec!["10.0.1.2".parse().unwrap()]);
        let found = problems(&[taken], &[1, 2]);
        assert_eq!(
            found,
            ["nics[0].addresses: 10.0.1.2 is both n1's and n2's: name another in `addresses`"]
        );
    }
}
