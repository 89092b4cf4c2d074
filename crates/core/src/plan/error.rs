//! Why there is no plan.

use crate::refusal::{Fault, Refusal};
use ipnet::IpNet;
use plexus_types::{IfName, NetworkName};
use std::borrow::Cow;
use std::net::IpAddr;

/// Why there is no plan: each names the network, the value and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The master does not exist.
    #[error("network {network}: master {master} is not a link of this node")]
    UnknownMaster {
        /// Whose configuration.
        network: NetworkName,
        /// The name in it.
        master: IfName,
    },
    /// No master is given, and there is no default route to take one from.
    #[error(
        "network {network}: no master is given, and the node has no default route to take one from"
    )]
    NoMaster {
        /// Whose configuration.
        network: NetworkName,
    },
    /// The node's address on the underlay is not known.
    #[error(
        "network {network}: this node's address is not known, so that other nodes could not reach it"
    )]
    NoUnderlay {
        /// Whose configuration.
        network: NetworkName,
    },
    /// The MTU is greater than the parent's.
    #[error(
        "network {network}: mtu {mtu} is greater than {parent_mtu}, the MTU of its master {parent}"
    )]
    MtuTooLarge {
        /// Whose configuration.
        network: NetworkName,
        /// The MTU asked for.
        mtu: u32,
        /// The parent.
        parent: IfName,
        /// The parent's MTU.
        parent_mtu: u32,
    },
    /// The MTU leaves no room for what the tunnel adds.
    #[error(
        "network {network}: mtu {mtu} is greater than {fits}, which is what a tunnel over this node's underlay (MTU {underlay}) carries"
    )]
    DoesNotFit {
        /// Whose configuration.
        network: NetworkName,
        /// The MTU asked for.
        mtu: u32,
        /// The greatest that is possible.
        fits: u32,
        /// The underlay's MTU.
        underlay: u32,
    },
    /// IPv6 does not work with so small an MTU.
    #[error("network {network}: mtu {mtu} is less than 1280, which IPv6 needs")]
    MtuTooSmall {
        /// Whose configuration.
        network: NetworkName,
        /// The MTU asked for.
        mtu: u32,
    },
    /// The bridge's name is taken by something else.
    #[error(
        "network {network}: link {bridge} of this node exists but is not a bridge (it is {kind})"
    )]
    NotABridge {
        /// Whose configuration.
        network: NetworkName,
        /// The name in it.
        bridge: IfName,
        /// What it is.
        kind: String,
    },
    /// The device is not there.
    #[error("network {network}: there is no {device} on this node")]
    UnknownDevice {
        /// Whose configuration.
        network: NetworkName,
        /// What it says of the device.
        device: String,
    },
    /// IPAM is configured, but gave nothing.
    #[error("network {network}: its IPAM gave no address")]
    NoAddress {
        /// Whose configuration.
        network: NetworkName,
    },
    /// A gateway is of another family than what it is for.
    #[error("network {network}: gateway {gateway} is of another family than {of}")]
    GatewayFamily {
        /// Whose configuration.
        network: NetworkName,
        /// The gateway.
        gateway: IpAddr,
        /// The address or the route's destination.
        of: IpNet,
    },
    /// A route of `routed` names a gateway that nobody is.
    #[error(
        "network {network}: route {dst} via {gateway} cannot work: the only next hop of a routed interface is the node"
    )]
    RoutedGateway {
        /// Whose configuration.
        network: NetworkName,
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
        let next = match self {
            PlanError::UnknownMaster { .. } => {
                "check the spelling, `ip link` lists the node's links; if it is a device that comes and goes, try again when it is there"
            }
            PlanError::NoUnderlay { .. } => {
                "give the agent the node's address (--node-ip), or wait until its Node object has one"
            }
            PlanError::NoMaster { .. } => "name a link of the node in `master`",
            PlanError::MtuTooLarge { .. } => {
                "leave `mtu` out to take the master's, or raise the master's MTU"
            }
            PlanError::DoesNotFit { .. } => {
                "leave `mtu` out to take what fits, or raise the MTU of the underlay"
            }
            PlanError::MtuTooSmall { .. } => "raise `mtu`, or use IPv4 addresses only",
            PlanError::NotABridge { .. } => "choose another name in `bridge`, or rename that link",
            PlanError::UnknownDevice { .. } => {
                "check the spelling, `ip -d link` lists the node's devices and what they are part of; if it comes and goes, try again when it is there"
            }
            PlanError::NoAddress { .. } => {
                "list an address, or leave `ipam` out for a link without"
            }
            PlanError::GatewayFamily { .. } => "give IPv4 gateways to IPv4, and IPv6 to IPv6",
            PlanError::RoutedGateway { .. } => "leave the route's `gw` out",
        };
        next.into()
    }
}
