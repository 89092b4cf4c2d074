//! What a plan is told of the node. Owns which links a network asks about and what is known of
//! them; never looks itself.

use super::Device;
use plexus_api::cni::DeviceQuery;
use plexus_types::IfName;
use std::net::IpAddr;

/// What was looked up on the node for one attachment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The link that [`FactsQuery::parent`] names, if it is there.
    pub parent: Option<LinkFacts>,
    /// The link that has the bridge's name, if there is one.
    pub bridge: Option<LinkFacts>,
    /// How this node is reached by others.
    pub underlay: Option<Underlay>,
    /// The device that [`FactsQuery::device`] means, if it is there and nobody has it.
    pub device: Option<Device>,
}

/// What must be looked up for the networks of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FactsQuery<'a> {
    /// The link that pods' links hang off, or take their MTU from.
    pub parent: Option<ParentQuery<'a>>,
    /// The name of a bridge.
    pub bridge: Option<&'a IfName>,
    /// How this node is reached by others.
    pub underlay: bool,
    /// The device that the pod gets.
    pub device: Option<&'a DeviceQuery>,
}

impl<'a> FactsQuery<'a> {
    /// The link of that name alone; of none, the one that has the default route.
    pub(super) fn of_parent(name: Option<&'a IfName>) -> Self {
        let named = name.map(ParentQuery::Named);
        Self {
            parent: named.or(Some(ParentQuery::DefaultRoute)),
            ..Self::default()
        }
    }
}

/// One of the node's links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentQuery<'a> {
    /// By its name.
    Named(&'a IfName),
    /// The one that has the default route.
    DefaultRoute,
}

/// This node on the underlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Underlay {
    /// The node's name, as other nodes know it.
    pub node: String,
    /// Its address.
    pub address: IpAddr,
    /// MTU of the link that has the address.
    pub mtu: u32,
}

/// A link of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFacts {
    /// Name.
    pub name: IfName,
    /// Index.
    pub index: u32,
    /// MTU.
    pub mtu: u32,
    /// `bridge`, `veth`, …; empty for hardware.
    pub kind: String,
}
