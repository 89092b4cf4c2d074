//! Objects as they come from the API, cut down to what a node needs. Specs of our own kinds stay JSON, so that one
//! that cannot be read makes one object unusable and not a whole list.

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Resource;
use kube::api::ObjectMeta;
use plexus_api::objects::{
    Block, BlockRequest, HostInterface, MULTI_NIC_SUCCESSOR, MULTI_NIC_VERSION, MultiNicNetwork,
    Network, PodAttachments,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::marker::PhantomData;

pub(super) type PodWire = Wire<Pod, PodSpecWire, PodStatusWire>;
pub(super) type NodeWire = Wire<Node, NodeSpecWire, NodeStatusWire>;
pub(super) type NetworkWire = Wire<Network>;
pub(super) type NadWire = Wire<NetworkAttachmentDefinition>;
pub(super) type BlockWire = Wire<Block>;
pub(super) type RequestWire = Wire<BlockRequest>;
pub(super) type RecordWire = Wire<PodAttachments>;
pub(super) type MultiNicWire = Wire<MultiNicNetwork>;
pub(super) type SuccessorWire = Wire<SuccessorNetwork>;
pub(super) type HostInterfaceWire = Wire<HostInterface>;

/// The kind of NADs, which others define; there are no values of it.
#[derive(Debug, Clone)]
pub(super) enum NetworkAttachmentDefinition {}

impl Resource for NetworkAttachmentDefinition {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(&(): &()) -> Cow<'_, str> {
        "NetworkAttachmentDefinition".into()
    }
    fn group(&(): &()) -> Cow<'_, str> {
        "k8s.cni.cncf.io".into()
    }
    fn version(&(): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural(&(): &()) -> Cow<'_, str> {
        "network-attachment-definitions".into()
    }
    fn meta(&self) -> &ObjectMeta {
        match *self {}
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match *self {}
    }
}

/// MultiNicNetworks in the group in which later versions of their project have them; there are no values of it.
#[derive(Debug, Clone)]
pub(super) enum SuccessorNetwork {}

impl Resource for SuccessorNetwork {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind(&(): &()) -> Cow<'_, str> {
        "MultiNicNetwork".into()
    }
    fn group(&(): &()) -> Cow<'_, str> {
        MULTI_NIC_SUCCESSOR.into()
    }
    fn version(&(): &()) -> Cow<'_, str> {
        MULTI_NIC_VERSION.into()
    }
    fn plural(&(): &()) -> Cow<'_, str> {
        "multinicnetworks".into()
    }
    fn meta(&self) -> &ObjectMeta {
        match *self {}
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match *self {}
    }
}

/// An object of a kind, of which only this much is read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(
    deserialize = "Spec: Default + Deserialize<'de>, Status: Default + Deserialize<'de>"
))]
pub(super) struct Wire<Kind, Spec = Value, Status = Value> {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Spec,
    #[serde(default)]
    pub(super) status: Status,
    #[serde(skip)]
    kind: PhantomData<Kind>,
}

impl<Kind: Resource<DynamicType = ()>, Spec, Status> Resource for Wire<Kind, Spec, Status> {
    type DynamicType = ();
    type Scope = Kind::Scope;

    fn kind(&(): &()) -> Cow<'_, str> {
        Kind::kind(&())
    }
    fn group(&(): &()) -> Cow<'_, str> {
        Kind::group(&())
    }
    fn version(&(): &()) -> Cow<'_, str> {
        Kind::version(&())
    }
    fn plural(&(): &()) -> Cow<'_, str> {
        Kind::plural(&())
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpecWire {
    pub(super) host_network: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PodStatusWire {
    pub(super) phase: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NodeSpecWire {
    #[serde(rename = "podCIDR")]
    pub(super) pod_cidr: String,
    #[serde(rename = "podCIDRs")]
    pub(super) pod_cidrs: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NodeStatusWire {
    pub(super) addresses: Vec<NodeAddressWire>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NodeAddressWire {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) address: String,
}
