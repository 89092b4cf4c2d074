//! The objects of `net.cogadvisor.io/v1`: one name for an interface on each NIC of a host.
//!
//! ```text
//!   user ──► MultiNicNetwork ─┐
//!                             ├─► controller ──► Block (spec.nic) ──► CIDR, IPPool: the same, for people and tools
//!   agent ─► HostInterface ───┘
//! ```
//! All are cluster-scoped. What is assigned is in Blocks alone; nothing is decided by a CIDR or an IPPool.

mod cidr;
mod host_interface;
mod ip_pool;
mod ipam;
mod meaning;
mod network;
#[cfg(test)]
mod tests;

pub use cidr::{CidrConfig, CidrEntry, CidrHost, CidrSpec};
pub use host_interface::{HostInterfaceSpec, HostInterfaceStatus, HostNic, NicState};
pub use ip_pool::{Allocation, IpPoolSpec};
pub use ipam::{BlockBits, MULTI_NIC_IPAM, MultiNicIpam, VlanMode};
pub use meaning::{MultiNic, MultiNicPlugin};
pub use network::{
    AttachPolicy, ComputeResult, Discovery, Dns, MultiNicNetworkSpec, MultiNicNetworkStatus,
    OnNicDown, PluginSpec,
};

#[cfg(feature = "objects")]
pub use {cidr::Cidr, host_interface::HostInterface, ip_pool::IpPool, network::MultiNicNetwork};

/// Group of these kinds.
pub const MULTI_NIC_GROUP: &str = "net.cogadvisor.io";
/// The group in which the project's later versions have them; MultiNicNetworks are read there too.
pub const MULTI_NIC_SUCCESSOR: &str = "multinic.fms.io";
/// Their version, in both groups.
pub const MULTI_NIC_VERSION: &str = "v1";
/// Label of a HostInterface that a user keeps: no agent writes it.
pub const UNMANAGED_LABEL: &str = "multi-nic-unmanaged";
/// Label of the NetworkAttachmentDefinitions that are made from a MultiNicNetwork.
pub const GENERATED_LABEL: &str = "multi-nic-cni-generated";
/// Label of an IPPool: its host.
pub const POOL_HOST_LABEL: &str = "hostname";
/// Label of an IPPool: its network.
pub const POOL_NETWORK_LABEL: &str = "netname";
