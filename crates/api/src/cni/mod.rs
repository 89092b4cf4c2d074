//! The CNI specification, versions 0.3.0 to 1.1.0: configuration, arguments, results, errors, and
//! the request that the shim carries to the agent.

mod args;
mod config;
mod device;
mod environment;
mod error;
mod from;
mod ipam;
mod kind;
pub(crate) mod parse;
mod provider;
mod request;
mod result;
mod runtime;
mod version;
mod wire;

pub use args::Args;
pub use config::{
    Body, Chain, DefaultGw, Executable, FqName, NetConf, Network, NetworkBackend, ValidAttachment,
};
pub use device::{DeviceKey, DeviceQuery};
pub use environment::Target;
pub use error::{Code, Error};
#[cfg(feature = "manifest")]
pub(crate) use from::nad_problems;
pub(crate) use from::provider_problems;
pub use from::{ObjectFacts, ParsedNetwork};
pub use ipam::{
    BlockIpam, BlockSubnet, ExecutedIpam, HostLocal, Ipam, PlexusIpam, Range, Requests, RouteConf,
    Static, StaticAddress,
};
#[cfg(feature = "manifest")]
pub(crate) use kind::every_type;
pub use kind::{NetworkConfigKind, uncommon_plugins};
pub use parse::{MAX_CONFIG, OWN_TYPES, Remains, RemainsNetwork};
pub(crate) use parse::{default_gw, port_mappings};
pub use plexus_types::MacvlanMode;
pub use provider::*;
pub use request::{Command, Request};
pub use result::{Dns, Interface, Ip, Outcome, Route};
pub use runtime::{POD_ANNOTATIONS, PortMapping, Protocol, Runtime};
pub use version::Version;
