//! The `ipam` section: `host-local` and `static` with the reference plugins' JSON, `plexus`, and any other plugin,
//! which is executed.

use super::{Chain, Dns, Native};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;

/// Where addresses come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ipam {
    /// Files shared with the reference plugin.
    HostLocal(HostLocal),
    /// Written down in the configuration.
    Static(Static),
    /// Kept in the agent's journal.
    Plexus(PlexusIpam),
    /// From the blocks that this node owns of a network's subnets; kept in the agent's journal.
    Blocks(BlockIpam),
    /// Given by another IPAM plugin, which is executed before the link is made.
    Executed(Box<ExecutedIpam>),
}

/// How an IPAM learns which addresses a pod asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// When it chooses.
    Chosen,
    /// With its configuration, which is read together with them.
    Written,
    /// Its plugin gets them as they came.
    Passed,
}

/// What holds of an IPAM, for everyone who must tell them apart without knowing them.
impl Ipam {
    /// The name of `host-local`, of its pools too.
    pub const HOST_LOCAL: &str = "host-local";
    /// The same of `plexus`.
    pub const PLEXUS: &str = "plexus";
    /// The same of blocks, which no configuration asks for.
    pub const BLOCKS: &str = "blocks";

    /// As users write it.
    pub fn name(&self) -> &str {
        match self {
            Ipam::HostLocal(_) => Self::HOST_LOCAL,
            Ipam::Static(_) => "static",
            Ipam::Plexus(_) => Self::PLEXUS,
            Ipam::Blocks(_) => Self::BLOCKS,
            Ipam::Executed(ipam) => ipam.name(),
        }
    }

    /// Whether there is a plugin of its name, so that other plugins can use it.
    pub fn is_plugin(&self) -> bool {
        !matches!(self, Ipam::Plexus(_) | Ipam::Blocks(_))
    }

    /// How it learns which addresses a pod asks for.
    pub fn requests(&self) -> Requests {
        match self {
            Ipam::HostLocal(_) | Ipam::Plexus(_) | Ipam::Blocks(_) => Requests::Chosen,
            Ipam::Static(_) => Requests::Written,
            Ipam::Executed(_) => Requests::Passed,
        }
    }

    /// The routes for the interface.
    pub fn routes_mut(&mut self) -> &mut Vec<RouteConf> {
        match self {
            Ipam::HostLocal(ipam) => &mut ipam.routes,
            Ipam::Static(ipam) => &mut ipam.routes,
            Ipam::Plexus(ipam) => &mut ipam.routes,
            Ipam::Blocks(ipam) => &mut ipam.routes,
            Ipam::Executed(ipam) => &mut ipam.routes,
        }
    }
}

impl Native {
    /// The files that its addresses are in.
    pub fn host_local(&self) -> Option<&HostLocal> {
        match &self.ipam {
            Some(Ipam::HostLocal(ipam)) => Some(ipam),
            _ => None,
        }
    }

    /// The subnets that nodes share, if its addresses are from blocks of them.
    pub fn block_ipam(&self) -> Option<&BlockIpam> {
        match &self.ipam {
            Some(Ipam::Blocks(ipam)) => Some(ipam),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn block_ipam_mut(&mut self) -> Option<&mut BlockIpam> {
        match &mut self.ipam {
            Some(Ipam::Blocks(ipam)) => Some(ipam),
            _ => None,
        }
    }

    /// The IPAM plugin that is executed for its addresses.
    pub fn executed_ipam(&self) -> Option<&ExecutedIpam> {
        match &self.ipam {
            Some(Ipam::Executed(ipam)) => Some(ipam),
            _ => None,
        }
    }
}

impl From<BlockIpam> for Ipam {
    fn from(ipam: BlockIpam) -> Self {
        Ipam::Blocks(ipam)
    }
}

impl ExecutedIpam {
    /// The plugin's name.
    pub fn name(&self) -> &str {
        self.chain.executables().next().unwrap_or("?")
    }
}

/// `host-local`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLocal {
    /// One address from each set. The flat `subnet`/`rangeStart`/… form is set 0, range 0.
    pub ranges: Vec<Vec<Range>>,
    /// Routes for the interface.
    pub routes: Vec<RouteConf>,
    /// Default `/var/lib/cni/networks`.
    pub data_dir: PathBuf,
    /// A resolv.conf whose content becomes the result's DNS; read by the agent.
    pub resolv_conf: Option<PathBuf>,
}

/// A range of `host-local`, canonical: every field is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The subnet, masked.
    pub subnet: IpNet,
    /// First address to hand out.
    pub start: IpAddr,
    /// Last address to hand out.
    pub end: IpAddr,
    /// The gateway, never handed out.
    pub gateway: IpAddr,
}

/// `static`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Static {
    /// The addresses.
    pub addresses: Vec<StaticAddress>,
    /// Routes for the interface.
    pub routes: Vec<RouteConf>,
    /// DNS for the result.
    pub dns: Dns,
}

/// An address of `static`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticAddress {
    /// Address with prefix length.
    pub address: IpNet,
    /// Its gateway.
    pub gateway: Option<IpAddr>,
}

/// `plexus`: `{"type":"plexus","subnets":[…],"exclude":[…],"gateway":[…],"routes":[…]}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlexusIpam {
    /// Subnets in order of preference, masked; one address per family.
    pub subnets: Vec<IpNet>,
    /// Addresses (as /32 or /128) and prefixes that are not handed out; each inside a subnet.
    pub exclude: Vec<IpNet>,
    /// Gateways, each inside a subnet. A subnet without one: its first usable address.
    pub gateway: Vec<IpAddr>,
    /// Routes for the interface.
    pub routes: Vec<RouteConf>,
}

/// The subnets of a `Network`. Which blocks of them are this node's is asked when an address is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockIpam {
    /// The network's identity: with it two networks of one name are two pools.
    pub uid: String,
    /// In order of preference; one address per family.
    pub subnets: Vec<BlockSubnet>,
    /// Routes for the interface.
    pub routes: Vec<RouteConf>,
    /// The controller assigns the blocks: nodes claim none.
    pub assigned: bool,
}

/// A subnet that nodes share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSubnet {
    /// The subnet, masked.
    pub cidr: IpNet,
    /// Its gateway, never handed out; none: it has none.
    pub gateway: Option<IpAddr>,
    /// Inside it, never handed out.
    pub exclude: Vec<IpNet>,
    /// Prefix length of its blocks; none: it is this node's as a whole, and no block can be claimed (the node's
    /// podCIDRs).
    pub block_length: Option<u8>,
}

/// An IPAM plugin that is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedIpam {
    /// One configuration, the whole of the network's, of which the binary of `ipam.type` is executed.
    pub chain: Chain,
    /// Routes beside those that it answers. A default route among these replaces its own of that family.
    pub routes: Vec<RouteConf>,
}

/// A route as configurations write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteConf {
    /// Where to.
    pub dst: IpNet,
    /// Next hop; none: the address's gateway.
    pub gw: Option<IpAddr>,
    /// MTU of the path (1.1.0).
    pub mtu: Option<u32>,
    /// Advertised MSS (1.1.0).
    pub advmss: Option<u32>,
    /// Metric (1.1.0).
    pub priority: Option<u32>,
    /// Table (1.1.0).
    pub table: Option<u32>,
    /// Scope (1.1.0).
    pub scope: Option<u8>,
}
