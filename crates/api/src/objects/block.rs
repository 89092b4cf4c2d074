//! `Block`: a slice of a subnet that one node owns. `BlockRequest`: a node asks for a part of one.

use super::NetworkRef;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Whose block it is. Its name is [`name`](BlockSpec::name), so that creating it claims it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(
        group = "plexus.dev",
        version = "v1alpha1",
        kind = "Block",
        status = "BlockStatus"
    )
)]
pub struct BlockSpec {
    /// The network; `uuid` is its UID.
    pub network: NetworkRef,
    /// The addresses.
    #[cfg_attr(feature = "objects", schemars(with = "String"))]
    pub cidr: IpNet,
    /// Who owns it.
    pub node: String,
    /// The UID of that Node.
    #[serde(rename = "nodeUID")]
    pub node_uid: String,
}

impl BlockSpec {
    /// `<network uid>-<address in hex>-<length>`: a name conflict means that it is taken.
    pub fn name(network_uid: &str, cidr: &IpNet) -> String {
        let address = match cidr.network() {
            std::net::IpAddr::V4(address) => format!("{:08x}", u32::from(address)),
            std::net::IpAddr::V6(address) => format!("{:032x}", u128::from(address)),
        };
        format!("{network_uid}-{address}-{}", cidr.prefix_len())
    }
}

/// Written only by the owner.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct BlockStatus {
    /// Addresses in use.
    #[serde(default)]
    pub allocated: u64,
    /// Parts that now belong to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<Gift>,
}

/// A part of a block that was given to another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct Gift {
    /// The part.
    #[cfg_attr(feature = "objects", schemars(with = "String"))]
    pub cidr: IpNet,
    /// To whom.
    pub node: String,
}

/// A node asks for addresses where no block is free. Name: `<network uid>-<node>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(group = "plexus.dev", version = "v1alpha1", kind = "BlockRequest")
)]
pub struct BlockRequestSpec {
    /// The network.
    pub network: NetworkRef,
    /// Who asks.
    pub node: String,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// How many.
    pub addresses: u32,
}
