//! The objects of `plexus.dev/v1alpha1`, as users write them, and those of multi-NIC networks ([`multinic`]).
//!
//! The specs and statuses are plain values that every room may use. With the feature `objects`
//! they are Kubernetes objects too ([`Network`], [`Block`], …) with generated CRDs, and with that of the
//! NetworkAttachmentDefinition; the shim and what it is made of do without.

mod attachments;
mod block;
mod check;
#[cfg(feature = "objects")]
mod definitions;
mod multinic;
mod network;
#[cfg(feature = "objects")]
mod rules;
mod selector;
#[cfg(test)]
mod tests;
mod text;

pub use attachments::{
    AttachmentState, AttachmentStatus, NetworkRef, PodAttachmentsSpec, PodAttachmentsStatus,
    PodIdentity,
};
pub use block::{BlockNic, BlockRequestSpec, BlockSpec, BlockStatus, DonatedPart};
pub(crate) use check::DELEGATE;
pub use check::providers;
pub use multinic::{
    Allocation, AttachPolicy, BlockBits, CidrConfig, CidrEntry, CidrHost, CidrSpec, ComputeResult,
    Discovery, Dns, GENERATED_LABEL, HostInterfaceSpec, HostInterfaceStatus, HostNic, IpPoolSpec,
    MULTI_NIC_GROUP, MULTI_NIC_IPAM, MULTI_NIC_SUCCESSOR, MULTI_NIC_VERSION, MultiNic,
    MultiNicIpam, MultiNicNetworkSpec, MultiNicNetworkStatus, MultiNicPlugin, NicState, OnNicDown,
    POOL_HOST_LABEL, POOL_NETWORK_LABEL, PluginSpec, UNMANAGED_LABEL, VlanMode,
};
pub use network::{
    AllowedNamespaces, BlockSize, Condition, From, NetworkSpec, NetworkStatus, Phase, RouteSpec,
    Subnet, Usage,
};
pub use selector::{LabelOperator, LabelRequirement, LabelSelector};

#[cfg(feature = "objects")]
pub use {
    attachments::PodAttachments,
    block::{Block, BlockRequest},
    definitions::crds,
    multinic::{Cidr, HostInterface, IpPool, MultiNicNetwork},
    network::Network,
    rules::provider_rule,
};

/// Group of our own kinds.
pub const GROUP: &str = "plexus.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// The finalizer that an agent keeps on the records of its pods.
pub const FINALIZER: &str = "plexus.dev/agent";
/// The finalizer that keeps a network until nobody uses it.
pub const IN_USE_FINALIZER: &str = "plexus.dev/in-use";
/// Label of a record: its pod's name.
pub const POD_LABEL: &str = "plexus.dev/pod";
/// Label of a record and of a block: its node's name.
pub const NODE_LABEL: &str = "plexus.dev/node";
/// Label of a block and of a record's networks: the network's UID.
pub const NETWORK_LABEL: &str = "plexus.dev/network";
/// Label of a block that is a part of another one: the node that gave it.
pub const FROM_LABEL: &str = "plexus.dev/from";
/// The reason of condition Ready of a Node that an agent registered itself, where there is no kubelet.
pub const REGISTERED_BY_AGENT: &str = "AgentReady";
