//! The options of the native providers: the reference plugins' JSON.

use super::{Dns, Ipam};
use ipnet::IpNet;
use plexus_types::{IfName, Mac, MacvlanMode};
use std::net::IpAddr;

/// A network that we make ourselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Native {
    /// What the interface is made of.
    pub provider: Provider,
    /// Where its addresses come from; none: a link without addresses.
    pub ipam: Option<Ipam>,
    /// The MAC asked for: runtimeConfig, else `args.cni`, else CNI_ARGS, else the configuration.
    pub mac: Option<Mac>,
    /// Addresses asked for: runtimeConfig, else `args.cni`, else CNI_ARGS; prefix if written.
    /// Empty for `static`: there they are among its addresses already.
    pub ips: Vec<(IpAddr, Option<u8>)>,
    /// MTU of the interface.
    pub mtu: Option<u32>,
    /// DNS of the configuration, passed on in the result.
    pub dns: Dns,
}

/// The native providers of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// A macvlan on one of the node's links.
    Macvlan(Macvlan),
    /// A veth into a bridge on the node.
    Bridge(Bridge),
    /// A veth that the node routes to.
    Routed(Routed),
    /// A veth into the network's own router on the node.
    Overlay(Overlay),
}

impl Provider {
    /// Whether a pod has its addresses alone (/32, /128) and a link-local next hop.
    pub fn is_routed(&self) -> bool {
        matches!(self, Provider::Routed(_) | Provider::Overlay(_))
    }

    /// As users write it.
    pub fn name(&self) -> &'static str {
        match self {
            Provider::Macvlan(_) => "macvlan",
            Provider::Bridge(_) => "bridge",
            Provider::Routed(_) => "routed",
            Provider::Overlay(_) => "overlay",
        }
    }
}

/// Options of `macvlan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macvlan {
    /// The node's link; none: the one that has the default route.
    pub master: Option<IfName>,
    /// `mode`, default bridge.
    pub mode: MacvlanMode,
    /// `bcqueuelen`.
    pub bcqueuelen: Option<u32>,
}

/// Options of `bridge`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Its name, default `cni0`.
    pub bridge: IfName,
    /// The bridge has the gateway's address, and the node forwards.
    pub is_gateway: bool,
    /// … and the default route points there.
    pub is_default_gateway: bool,
    /// A different address on the bridge is replaced, not refused.
    pub force_address: bool,
    /// Traffic that leaves the subnet takes the node's address.
    pub ip_masq: bool,
    /// Frames may go back out of the port that they came in by.
    pub hairpin_mode: bool,
    /// The bridge is promiscuous.
    pub promisc_mode: bool,
}

/// Options of `routed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// Traffic that leaves the subnet takes the node's address.
    pub ip_masq: bool,
    /// Destinations outside the subnets that are reached without that: other nodes' pods.
    pub not_masq: Vec<IpNet>,
    /// Whether the pod may send only from its own addresses.
    pub source_check: bool,
}

/// Options of `overlay`: an isolated routing domain across nodes. Only a `Network` object can ask
/// for it: it needs a number that the cluster agrees on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    /// The network's identity: names the router.
    pub uid: String,
    /// The number of its VXLAN.
    pub vni: u32,
    /// Its subnets, masked, each with the gateway that answers in the router.
    pub subnets: Vec<(IpNet, IpAddr)>,
    /// Traffic to elsewhere leaves under the node's address.
    pub snat: bool,
    /// Whether a pod may send only from its own addresses.
    pub source_check: bool,
}
