//! `Block`: a slice of a subnet that one node owns. `BlockRequest`: a node asks for a part of one.

use super::NetworkRef;
use ipnet::IpNet;
use plexus_types::Family;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

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
    ),
    schemars(extend("x-kubernetes-validations" = super::rules::BLOCK))
)]
pub struct BlockSpec {
    /// The network; its identity is the UID of its object, and is called `uid` here.
    #[serde(with = "NetworkByUid")]
    pub network: NetworkRef,
    /// The addresses.
    #[serde(deserialize_with = "super::text::net")]
    #[cfg_attr(feature = "objects", schemars(with = "String", length(max = 43)))]
    pub cidr: IpNet,
    /// Who owns it.
    pub node: String,
    /// The UID of that Node.
    #[serde(rename = "nodeUID")]
    pub node_uid: String,
    /// Of a MultiNicNetwork: the NIC of the node that it is for. Such blocks are made by the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<BlockNic>,
}

/// The NIC that a block of a MultiNicNetwork is for, and its place among the network's blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct BlockNic {
    /// The NIC's name.
    #[cfg_attr(feature = "objects", schemars(length(min = 1, max = 15)))]
    pub interface: String,
    /// The NIC's subnet.
    #[serde(deserialize_with = "super::text::net")]
    #[cfg_attr(feature = "objects", schemars(with = "String", length(max = 43)))]
    pub net_address: IpNet,
    /// Which interface block of the subnet.
    pub interface_index: u32,
    /// Which host block of that.
    pub host_index: u32,
    /// The NIC's address of the block's family, by which other nodes reach the block; none if it has none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::text::address"
    )]
    #[cfg_attr(
        feature = "objects",
        schemars(with = "Option<String>", length(max = 39))
    )]
    pub via: Option<IpAddr>,
    /// Its NIC, or its place in the network, is gone: the node issues nothing new from it and says so by
    /// `status.closed`; it is deleted once nothing of it is in use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
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
    /// Its network is being deleted, or it was retired, and nothing more is issued from it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
    /// Parts that are blocks of their own now, or will be once those to whom they were given make them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<DonatedPart>,
}

/// A part of a block that was given to another node. Nothing is handed out from it any more as a part
/// of that block: whoever has it has a block of its own for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
pub struct DonatedPart {
    /// The part.
    #[serde(deserialize_with = "super::text::net")]
    #[cfg_attr(feature = "objects", schemars(with = "String", length(max = 43)))]
    pub cidr: IpNet,
    /// To whom; the owner itself, once nobody else is there to have it.
    pub node: String,
}

/// A node asks for addresses where no block is free. Name: `<network uid>-<node>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    feature = "objects",
    derive(kube::CustomResource, schemars::JsonSchema),
    kube(group = "plexus.dev", version = "v1alpha1", kind = "BlockRequest"),
    schemars(extend("x-kubernetes-validations" = super::rules::BLOCK_REQUEST))
)]
pub struct BlockRequestSpec {
    /// The network, as in a block.
    #[serde(with = "NetworkByUid")]
    pub network: NetworkRef,
    /// Who asks.
    pub node: String,
    /// `ipv4` or `ipv6`.
    #[cfg_attr(feature = "objects", schemars(extend("enum" = ["ipv4", "ipv6"])))]
    pub family: String,
    /// How many it would like; it may be given fewer, down to one.
    #[cfg_attr(feature = "objects", schemars(range(min = 1, max = 65536)))]
    pub addresses: u32,
}

impl BlockRequestSpec {
    /// `<network uid>-<node>`: a node asks once for a network.
    pub fn name(network_uid: &str, node: &str) -> String {
        format!("{network_uid}-{node}")
    }

    /// As `family` is written.
    pub fn family_name(family: Family) -> &'static str {
        match family {
            Family::V4 => "ipv4",
            Family::V6 => "ipv6",
        }
    }

    /// The family; none if it is not one that we know.
    pub fn family(&self) -> Option<Family> {
        let known = |family: &Family| Self::family_name(*family) == self.family;
        Family::ALL.into_iter().find(known)
    }
}

/// A network by the UID of its object.
#[derive(Serialize, Deserialize)]
#[serde(remote = "NetworkRef", deny_unknown_fields)]
#[cfg_attr(feature = "objects", derive(schemars::JsonSchema))]
struct NetworkByUid {
    /// Its namespace; empty for the cluster-wide default network.
    #[serde(default)]
    namespace: String,
    /// Its name.
    name: String,
    /// UID of the object.
    #[serde(rename = "uid")]
    uuid: String,
}
