//! `IPPool`: who has the addresses of one host block, for people and tools. Written by the host's agent.

use serde::{Deserialize, Serialize};

/// A host block and its addresses in use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(
        group = "net.cogadvisor.io",
        version = "v1",
        kind = "IPPool",
        plural = "ippools",
        root = "IpPool"
    )
)]
pub struct IpPoolSpec {
    /// The host block.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: String,
    /// The interface block around it.
    #[serde(rename = "vlanCIDR")]
    pub vlan_cidr: String,
    /// The network.
    pub net_attach_def: String,
    /// The host.
    pub host_name: String,
    /// Its NIC.
    pub interface_name: String,
    /// What of the block nobody gets, beside its first and last address.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// Who has which address.
    #[serde(default)]
    pub allocations: Vec<Allocation>,
}

/// An address in use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct Allocation {
    /// The pod.
    pub pod: String,
    /// Its namespace.
    pub namespace: String,
    /// The address's place in the block.
    pub index: u64,
    /// The address.
    pub address: String,
}
