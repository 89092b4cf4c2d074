//! The plan: a plain value that says which kernel objects must exist for a pod, and what its
//! networks keep on the node. Owns the shape of that value, how it is made ([`build()`]), how it is
//! compared with what the kernel has ([`diff_pod`]) and how it reads as `ip` commands ([`pod_text`]).
//!
//! Never talks to a kernel. The same inputs give the same plan, byte for byte.

mod build;
mod device;
mod diff;
mod effective;
mod error;
mod facts;
mod host_ports;
mod node;
mod observed;
mod outcome;
mod provider;
mod route;
mod settings;
mod stacked;
mod text;

pub use build::{LinkOwner, build, group, pod_plan};
pub use device::{Device, Hardware};
pub use diff::{Difference, Object, Side, State, diff_host_ends, diff_node, diff_pod};
pub use effective::effective;
pub(crate) use effective::{gateway, is_main_default, plain_route};
pub use error::{PlanError, PlanProblem};
pub use facts::{Facts, FactsQuery, LinkFacts, ParentQuery, Underlay};
pub use host_ports::host_ports;
pub use node::node_plan;
pub(crate) use node::{is_like_object, kept_as};
pub use observed::{
    Observed, ObservedAddress, ObservedLink, ObservedNeighbour, ObservedRoute, ObservedRule,
};
pub use outcome::{ObservedMacs, dns, outcome};
pub use plexus_api::cni::Protocol;
pub(crate) use provider::next_preparation;
pub use provider::{facts_query, features, provider_of};
pub use route::{reported_route, source_table};
pub use stacked::{LinkOption, Parent, ParentUse, RECEIVED, Refusal, Stacked, StackedKind, Width};
pub use text::{node_text, pod_text, ports_text};

use ipnet::IpNet;
use plexus_types::{IfName, Mac, NetworkName, RouterName};
use std::net::{IpAddr, SocketAddr};

/// The route protocol number that marks our routes and neighbours.
pub const PROTOCOL: u8 = 80;
/// The first word of the alias that marks our links.
pub const ALIAS_MARK: &str = "plexus";
/// Priority of our source rules inside a pod.
pub const RULE_PRIORITY: u32 = 5080;

/// What a pod gets: links in its namespace, with their ends on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPlan {
    /// The link group of all links of this plan, unique on the node while the plan lives: one
    /// message removes them all.
    pub group: u32,
    /// In the order in which they are made.
    pub links: Vec<Link>,
    /// Ports of the node that lead to the pod.
    pub host_ports: Vec<HostPort>,
}

/// A port of the node that leads to a port of the pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// Which transport.
    pub protocol: Protocol,
    /// Only this address of the node; none: every one of the family.
    pub host_ip: Option<IpAddr>,
    /// The node's port.
    pub port: u16,
    /// Where it leads: an address of the pod, and its port.
    pub to: SocketAddr,
}

/// One interface of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name in the pod.
    pub name: IfName,
    /// What it is made of.
    pub kind: LinkKind,
    /// Given or derived; none where the parent's must be kept.
    pub mac: Option<Mac>,
    /// None: the kernel takes the parent's.
    pub mtu: Option<u32>,
    /// Our mark; see [`Alias`](crate::attachment::Alias).
    pub alias: String,
    /// Sysctls of this interface, written before it goes up.
    pub settings: Vec<Setting>,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Permanent neighbours.
    pub neighbours: Vec<Neighbour>,
    /// Routes through it, in order.
    pub routes: Vec<Route>,
    /// Rules that send its own traffic to its own table.
    pub rules: Vec<Rule>,
}

/// What a link is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkKind {
    /// A link on a link of the node.
    Stacked(Stacked),
    /// One end of a veth pair; the other end stays on the node.
    Veth(HostEnd),
    /// A device of the node, which is moved here and goes back.
    Moved(Device),
}

impl LinkKind {
    /// The kernel's word for it.
    pub fn name(&self) -> &str {
        match self {
            LinkKind::Stacked(stacked) => &stacked.kind,
            LinkKind::Veth(_) => HostEnd::LINK_KIND,
            LinkKind::Moved(device) => &device.kind,
        }
    }

    /// Its other end on the node, if it has one.
    pub fn host_end(&self) -> Option<&HostEnd> {
        match self {
            LinkKind::Veth(end) => Some(end),
            LinkKind::Stacked(_) | LinkKind::Moved(_) => None,
        }
    }

    /// The link itself, if it is on a link of the node.
    pub fn stacked(&self) -> Option<&Stacked> {
        match self {
            LinkKind::Stacked(stacked) => Some(stacked),
            LinkKind::Veth(_) | LinkKind::Moved(_) => None,
        }
    }

    /// The device of the node that it is, if it is moved.
    pub fn moved(&self) -> Option<&Device> {
        match self {
            LinkKind::Moved(device) => Some(device),
            LinkKind::Stacked(_) | LinkKind::Veth(_) => None,
        }
    }
}

/// The node's end of a veth pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEnd {
    /// Its name on the node: a hash, see [`IfName::host_end`].
    pub name: IfName,
    /// Known beforehand, so that a neighbour entry can point at it.
    pub mac: Mac,
    /// As the other end.
    pub mtu: Option<u32>,
    /// Our mark, on this end too.
    pub alias: String,
    /// The router that it is in; none: the node's own namespace.
    pub router: Option<RouterName>,
    /// The bridge that it is a port of. The bridge itself is in the [`NodePlan`].
    pub bridge: Option<IfName>,
    /// Whether the bridge sends frames back out of this port.
    pub hairpin: bool,
    /// Packets from the pod are let in only if their source leads back through this end.
    pub source_check: bool,
    /// Sysctls of this end.
    pub settings: Vec<Setting>,
    /// Routes of the node to the pod's addresses.
    pub routes: Vec<Route>,
    /// Permanent neighbours on the node.
    pub neighbours: Vec<Neighbour>,
}

impl HostEnd {
    /// The kernel's word for both ends.
    pub const LINK_KIND: &str = "veth";
    /// The group of the ends whose sources are checked: one rule is for all of them.
    pub const CHECKED_GROUP: u32 = 0x2000_5080;

    /// The group that it is in; not the one of the pod's links.
    pub fn group(&self) -> Option<u32> {
        self.source_check.then_some(Self::CHECKED_GROUP)
    }
}

/// One sysctl: key as a path below `/proc/sys`, without a leading slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// `net/ipv6/conf/eth0/accept_ra`
    pub key: String,
    /// `0`
    pub value: String,
}

/// An address of an interface. IPv6 addresses are set without duplicate address detection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The address with its prefix length; host bits are kept.
    pub net: IpNet,
}

/// A permanent neighbour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// Who.
    pub address: IpAddr,
    /// Where.
    pub mac: Mac,
}

/// A route through the link that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Where to.
    pub dst: IpNet,
    /// The next hop; none for what is on the link.
    pub via: Option<IpAddr>,
    /// The preferred source.
    pub src: Option<IpAddr>,
    /// None: the main table.
    pub table: Option<u32>,
    /// Metric (priority).
    pub metric: Option<u32>,
    /// None: `link` without a next hop, else `global`.
    pub scope: Option<u8>,
    /// MTU of the path.
    pub mtu: Option<u32>,
    /// Advertised MSS.
    pub advmss: Option<u32>,
    /// The next hop is on the link though no address says so.
    pub onlink: bool,
}

impl Route {
    /// A route with nothing but a destination and perhaps a next hop.
    pub fn new(dst: IpNet, via: Option<IpAddr>) -> Self {
        Self {
            dst,
            via,
            src: None,
            table: None,
            metric: None,
            scope: None,
            mtu: None,
            advmss: None,
            onlink: false,
        }
    }

    /// Whether it is a default route.
    pub fn is_default(&self) -> bool {
        self.dst.prefix_len() == 0
    }
}

/// `ip rule add from … lookup …`
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Whose traffic.
    pub from: IpNet,
    /// Which table.
    pub table: u32,
    /// Where in the order of rules.
    pub priority: u32,
}

/// What the networks of a pod keep on the node: made when first needed, kept when the pod goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePlan {
    /// Sysctls of the node: forwarding.
    pub settings: Vec<Setting>,
    /// Bridges with their gateway addresses.
    pub bridges: Vec<Bridge>,
    /// Source networks that leave under the node's address.
    pub masquerades: Vec<Masquerade>,
    /// Routers of overlay networks.
    pub routers: Vec<Router>,
    /// It is all that the network keeps: what an earlier plan of it had besides is over. Not so where
    /// networks of different places may have one name.
    pub whole: bool,
    /// The network is an object of the API: what it keeps goes with that.
    pub of_object: bool,
}

impl NodePlan {
    /// Whether nothing is needed on the node.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
            && self.bridges.is_empty()
            && self.masquerades.is_empty()
            && self.routers.is_empty()
    }
}

/// The router of an overlay network: a namespace of its own on the node, with a VXLAN device whose
/// socket is in the node's namespace. Which other nodes it reaches is not part of it: see
/// [`Remote`](crate::fabric::Remote).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Router {
    /// The namespace's name.
    pub name: RouterName,
    /// The network's identity.
    pub uid: String,
    /// The number of the VXLAN.
    pub vni: u32,
    /// This node's address on the underlay.
    pub local: IpAddr,
    /// MAC of the VXLAN device: [`vtep_mac`](crate::fabric::vtep_mac), so that other nodes know it.
    pub mac: Mac,
    /// MTU of the VXLAN device and of the pods' links.
    pub mtu: u32,
    /// The subnets, masked.
    pub subnets: Vec<IpNet>,
    /// Gateways that answer in the router, one per subnet.
    pub gateways: Vec<IpAddr>,
    /// Traffic to elsewhere leaves under the node's address.
    pub snat: bool,
    /// Whether a pod may send only from its own addresses.
    pub source_check: bool,
}

/// A bridge on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: IfName,
    /// Given to a bridge that we create.
    pub mtu: Option<u32>,
    /// Promiscuous mode.
    pub promisc: bool,
    /// The gateway addresses that it must have.
    pub addresses: Vec<IpNet>,
    /// Whether a different address of the same family is replaced instead of refused.
    pub force_address: bool,
    /// Its sysctls.
    pub settings: Vec<Setting>,
}

impl Bridge {
    /// The kernel's word for such a link.
    pub const LINK_KIND: &str = "bridge";
}

/// Traffic from `source` to anywhere but `source` and multicast leaves under the node's address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Masquerade {
    /// Whose rule it is.
    pub network: NetworkName,
    /// The subnet.
    pub source: IpNet,
    /// Destinations that see the real source all the same.
    pub except: Vec<IpNet>,
}
