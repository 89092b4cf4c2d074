//! Objects as they come from the API, cut down to what a node needs: whatever is not named here is
//! never stored. Specs of our own kinds stay JSON, so that one that cannot be read makes one
//! object unusable and not a whole list.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::Resource;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Implements [`Resource`] for a type with a field `metadata`.
macro_rules! resource {
    ($name:ty, $scope:ty, $group:literal, $version:literal, $kind:literal, $plural:literal) => {
        impl Resource for $name {
            type DynamicType = ();
            type Scope = $scope;

            fn kind(&(): &()) -> Cow<'_, str> {
                $kind.into()
            }
            fn group(&(): &()) -> Cow<'_, str> {
                $group.into()
            }
            fn version(&(): &()) -> Cow<'_, str> {
                $version.into()
            }
            fn plural(&(): &()) -> Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

/// A pod.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PodWire {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: PodSpecWire,
    pub(super) status: PodStatusWire,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpecWire {
    pub(super) host_network: bool,
    pub(super) node_name: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PodStatusWire {
    pub(super) phase: String,
}

/// A Node.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NodeWire {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: NodeSpecWire,
    pub(super) status: NodeStatusWire,
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

/// A Network.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NetworkWire {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Value,
    pub(super) status: Value,
}

/// A NetworkAttachmentDefinition.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NadWire {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Value,
}

/// A Block.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct BlockWire {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Value,
    pub(super) status: Value,
}

/// A request for a part of a block.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RequestWire {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Value,
}

/// A record of a pod.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RecordWire {
    pub(super) metadata: ObjectMeta,
    pub(super) status: Value,
}

resource!(PodWire, NamespaceResourceScope, "", "v1", "Pod", "pods");
resource!(NodeWire, ClusterResourceScope, "", "v1", "Node", "nodes");
resource!(
    NetworkWire,
    NamespaceResourceScope,
    "plexus.dev",
    "v1alpha1",
    "Network",
    "networks"
);
resource!(
    NadWire,
    NamespaceResourceScope,
    "k8s.cni.cncf.io",
    "v1",
    "NetworkAttachmentDefinition",
    "network-attachment-definitions"
);
resource!(
    BlockWire,
    ClusterResourceScope,
    "plexus.dev",
    "v1alpha1",
    "Block",
    "blocks"
);
resource!(
    RequestWire,
    ClusterResourceScope,
    "plexus.dev",
    "v1alpha1",
    "BlockRequest",
    "blockrequests"
);
resource!(
    RecordWire,
    NamespaceResourceScope,
    "plexus.dev",
    "v1alpha1",
    "PodAttachments",
    "podattachments"
);
