//! `CIDR`: the blocks of a MultiNicNetwork in one object, for people and tools. It has the name of the network.

use serde::{Deserialize, Serialize};

/// All blocks of a network, by the subnet of the NICs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(
        group = "net.cogadvisor.io",
        version = "v1",
        kind = "CIDR",
        plural = "cidrs",
        root = "Cidr"
    )
)]
pub struct CidrSpec {
    /// What they were computed from.
    pub config: CidrConfig,
    /// The blocks.
    #[serde(default)]
    pub cidr: Vec<CidrEntry>,
}

/// What the blocks were computed from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct CidrConfig {
    /// The network.
    pub name: String,
    /// `multi-nic-ipam`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its subnet.
    pub subnet: String,
    /// The subnets of the NICs.
    #[serde(default)]
    pub master_nets: Vec<String>,
    /// Bits of the host's index.
    pub host_block: u8,
    /// Bits of the interface's index.
    pub interface_block: u8,
    /// What nobody gets.
    #[serde(default, rename = "excludeCIDRs")]
    pub exclude_cidrs: Vec<String>,
    /// l2, l3 or l3s.
    pub vlan_mode: String,
}

/// The blocks of one interface index.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct CidrEntry {
    /// The subnet of the NICs.
    pub net_address: String,
    /// The index.
    pub interface_index: u32,
    /// The interface block: what a pod has on its link.
    #[serde(rename = "vlanCIDR")]
    pub vlan_cidr: String,
    /// Hosts that have a block here.
    #[serde(default)]
    pub num_of_hosts: u64,
    /// These hosts; empty in a network of more than 500: the Blocks have them.
    #[serde(default)]
    pub hosts: Vec<CidrHost>,
}

/// The block of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct CidrHost {
    /// The host's index on this interface.
    pub host_index: u32,
    /// The host.
    pub host_name: String,
    /// Its NIC.
    pub interface_name: String,
    /// The address of the NIC.
    #[serde(rename = "hostIP", default)]
    pub host_ip: String,
    /// The host block.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: String,
    /// The IPPool that says who has its addresses.
    pub ippool: String,
}
