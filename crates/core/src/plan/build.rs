//! Makes plans.

use super::{Link, NodePlan, PodPlan};
use crate::attachment::{Assigned, DefaultRoute, Wanted};
use plexus_api::cni::Native;
use plexus_types::{ContainerId, IfName, NetworkName};

/// Whose attachment it is.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// CNI_CONTAINERID.
    pub container: &'a ContainerId,
    /// CNI_IFNAME of the call.
    pub cni_ifname: &'a IfName,
}

/// What was looked up on the node for one attachment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// macvlan: the master, or without one the link of the node's default route. `routed`: the
    /// link whose MTU the pod takes over, if any.
    pub parent: Option<LinkFacts>,
    /// bridge: the link that has the bridge's name, if there is one.
    pub bridge: Option<LinkFacts>,
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

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The master does not exist.
    #[error(
        "network {network}: there is no link {master} on this node to be the master; check the spelling, `ip link` lists the links of the node"
    )]
    UnknownMaster {
        /// Whose configuration.
        network: NetworkName,
        /// The name in it.
        master: IfName,
    },
}

/// One interface of a pod.
pub fn build(
    wanted: &Wanted,
    assigned: &Assigned,
    default_route: DefaultRoute,
    place: &Place<'_>,
    facts: &Facts,
) -> Result<Link, PlanError> {
    let _ = (wanted, assigned, default_route, place, facts);
    todo!()
}

/// The plan of all links of a call.
pub fn pod_plan(place: &Place<'_>, links: Vec<Link>) -> PodPlan {
    PodPlan {
        group: group(place),
        links,
    }
}

/// The link group of a call.
pub fn group(place: &Place<'_>) -> u32 {
    let _ = place;
    1
}

/// What the network needs on the node.
pub fn node_plan(network: &NetworkName, native: &Native, assigned: &Assigned) -> NodePlan {
    let _ = (network, native, assigned);
    NodePlan::default()
}
