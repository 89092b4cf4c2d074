//! Why there is no plan.

use crate::refusal::{Fault, Refusal};
use ipnet::IpNet;
use plexus_types::{IfName, NetworkName};
use std::borrow::Cow;
use std::net::IpAddr;

/// Why there is no plan: names the network, the value and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("network {network}: {problem}")]
pub struct PlanError {
    /// Whose configuration.
    pub network: NetworkName,
    /// What is wrong with it.
    pub problem: PlanProblem,
}

/// What is wrong with a network's configuration, on this node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanProblem {
    /// The master does not exist.
    #[error("master {0} is not a link of this node")]
    UnknownMaster(IfName),
    /// No master is given, and there is no default route to take one from.
    #[error("no master is given, and the node has no default route to take one from")]
    NoMaster,
    /// The node's address on the underlay is not known.
    #[error("this node's address is not known, so that other nodes could not reach it")]
    NoUnderlay,
    /// The MTU is greater than the parent's.
    #[error("mtu {mtu} is greater than {parent_mtu}, the MTU of its master {parent}")]
    MtuTooLarge {
        /// The MTU asked for.
        mtu: u32,
        /// The parent.
        parent: IfName,
        /// The parent's MTU.
        parent_mtu: u32,
    },
    /// The MTU leaves no room for what the tunnel adds.
    #[error(
        "mtu {mtu} is greater than {fits}, which is what a tunnel over this node's underlay (MTU {underlay}) carries"
    )]
    DoesNotFit {
        /// The MTU asked for.
        mtu: u32,
        /// The greatest that is possible.
        fits: u32,
        /// The underlay's MTU.
        underlay: u32,
    },
    /// IPv6 does not work with so small an MTU.
    #[error("mtu {0} is less than 1280, which IPv6 needs")]
    MtuTooSmall(u32),
    /// The bridge's name is taken by something else.
    #[error("link {bridge} of this node exists but is not a bridge (it is {kind})")]
    NotABridge {
        /// The name in the configuration.
        bridge: IfName,
        /// What it is.
        kind: String,
    },
    /// The device, as the configuration describes it, is not there.
    #[error("there is no {0} on this node")]
    UnknownDevice(String),
    /// IPAM is configured, but gave nothing.
    #[error("its IPAM gave no address")]
    NoAddress,
    /// A gateway is of another family than what it is for.
    #[error("gateway {gateway} is of another family than {of}")]
    GatewayFamily {
        /// The gateway.
        gateway: IpAddr,
        /// The address or the route's destination.
        of: IpNet,
    },
    /// A route of `routed` names a gateway that nobody is.
    #[error(
        "route {dst} via {gateway} cannot work: the only next hop of a routed interface is the node"
    )]
    RoutedGateway {
        /// The route's destination.
        dst: IpNet,
        /// Its gateway.
        gateway: IpAddr,
    },
}

impl Refusal for PlanError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn remedy(&self) -> Cow<'static, str> {
        let next = match self.problem {
            PlanProblem::UnknownMaster(_) => {
                "check the spelling, `ip link` lists the node's links; if it is a device that comes and goes, try again when it is there"
            }
            PlanProblem::NoUnderlay => {
                "give the agent the node's address (--node-ip), or wait until its Node object has one"
            }
            PlanProblem::NoMaster => "name a link of the node in `master`",
            PlanProblem::MtuTooLarge { .. } => {
                "leave `mtu` out to take the master's, or raise the master's MTU"
            }
            PlanProblem::DoesNotFit { .. } => {
                "leave `mtu` out to take what fits, or raise the MTU of the underlay"
            }
            PlanProblem::MtuTooSmall(_) => "raise `mtu`, or use IPv4 addresses only",
            PlanProblem::NotABridge { .. } => {
                "choose another name in `bridge`, or rename that link"
            }
            PlanProblem::UnknownDevice(_) => {
                "check the spelling, `ip -d link` lists the node's devices and what they are part of; if it comes and goes, try again when it is there"
            }
            PlanProblem::NoAddress => "list an address, or leave `ipam` out for a link without",
            PlanProblem::GatewayFamily { .. } => "give IPv4 gateways to IPv4, and IPv6 to IPv6",
            PlanProblem::RoutedGateway { .. } => "leave the route's `gw` out",
        };
        next.into()
    }
}
