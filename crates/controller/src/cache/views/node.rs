//! What nodes have (Blocks, PodAttachments) and what surrounds networks: Nodes, Services, policies.

use super::{Identity, Name, View};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Node as ApiNode;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::Resource;
use kube::core::DeserializeGuard;
use plexus_api::objects::{Block, BlockNic, BlockRequest, DonatedPart, PodAttachments};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A Block that could be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BlockView {
    pub(crate) id: Identity,
    /// Its network's UID; empty if the Block cannot be read.
    pub(crate) network: String,
    /// Namespace and name of the network.
    pub(crate) of: Name,
    pub(crate) cidr: Option<IpNet>,
    pub(crate) node: String,
    pub(crate) node_uid: String,
    pub(crate) allocated: u64,
    /// Nothing more is issued from it.
    pub(crate) closed: bool,
    /// The parts that its owner has donated.
    pub(crate) given: Vec<DonatedPart>,
    /// Its owner never wrote how much of it is in use.
    pub(crate) untouched: bool,
    /// Of a MultiNicNetwork: which NIC it is for.
    pub(crate) nic: Option<BlockNic>,
}

impl BlockView {
    /// Whether another block is a part of this one.
    pub(crate) fn contains_block(&self, other: &BlockView) -> bool {
        let (Some(mine), Some(theirs)) = (self.cidr, other.cidr) else {
            return false;
        };
        self.network == other.network && mine != theirs && mine.contains(&theirs)
    }
}

impl View for BlockView {
    type Object = DeserializeGuard<Block>;

    fn of(object: Self::Object) -> Self {
        let id = Identity::of(object.meta());
        match object.0 {
            Ok(block) => {
                let untouched = block.status.is_none();
                let status = block.status.unwrap_or_default();
                BlockView {
                    id,
                    network: block.spec.network.uuid,
                    of: Name::new(block.spec.network.namespace, block.spec.network.name),
                    cidr: Some(block.spec.cidr),
                    node: block.spec.node,
                    node_uid: block.spec.node_uid,
                    allocated: status.allocated,
                    closed: status.closed,
                    given: status.given,
                    untouched,
                    nic: block.spec.nic,
                }
            }
            Err(invalid) => {
                tracing::warn!(
                    block = invalid.metadata.name,
                    error = invalid.error,
                    "a Block that cannot be read is left alone"
                );
                BlockView {
                    id,
                    network: String::new(),
                    of: Name::new("", ""),
                    cidr: None,
                    node: String::new(),
                    node_uid: String::new(),
                    allocated: 0,
                    closed: false,
                    given: Vec::new(),
                    untouched: false,
                    nic: None,
                }
            }
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A node asks for a part of a block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestView {
    pub(crate) id: Identity,
    /// The network's UID; empty if the request cannot be read.
    pub(crate) network: String,
    /// Namespace and name of the network.
    pub(crate) of: Name,
    pub(crate) node: String,
}

impl View for RequestView {
    type Object = DeserializeGuard<BlockRequest>;

    fn of(object: Self::Object) -> Self {
        let id = Identity::of(object.meta());
        match object.0 {
            Ok(request) => RequestView {
                id,
                network: request.spec.network.uuid,
                of: Name::new(request.spec.network.namespace, request.spec.network.name),
                node: request.spec.node,
            },
            Err(invalid) => {
                tracing::warn!(
                    request = invalid.metadata.name,
                    error = invalid.error,
                    "a BlockRequest that cannot be read is left alone"
                );
                RequestView {
                    id,
                    network: String::new(),
                    of: Name::new("", ""),
                    node: String::new(),
                }
            }
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// The record of a pod's attachments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordView {
    pub(crate) id: Identity,
    pub(crate) pod: String,
    pub(crate) pod_uid: String,
    /// Empty if the record cannot be read: then nobody but its agent acts on it.
    pub(crate) node: String,
    /// Identities of the networks that it is on.
    pub(crate) networks: BTreeSet<String>,
}

impl View for RecordView {
    type Object = DeserializeGuard<PodAttachments>;

    fn of(object: Self::Object) -> Self {
        let id = Identity::of(object.meta());
        match object.0 {
            Ok(record) => RecordView {
                id,
                pod: record.spec.pod.name,
                pod_uid: record.spec.pod.uid,
                node: record.spec.node,
                networks: record
                    .status
                    .map(|status| status.attachments)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|attachment| attachment.network.uuid)
                    .filter(|uuid| !uuid.is_empty())
                    .collect(),
            },
            Err(invalid) => {
                tracing::warn!(
                    record = invalid.metadata.name,
                    error = invalid.error,
                    "a PodAttachments that cannot be read is left alone"
                );
                RecordView {
                    id,
                    pod: String::new(),
                    pod_uid: String::new(),
                    node: String::new(),
                    networks: BTreeSet::new(),
                }
            }
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A Node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NodeView {
    pub(crate) id: Identity,
    pub(crate) pod_cidrs: Vec<IpNet>,
    pub(crate) addresses: Vec<IpAddr>,
}

impl View for NodeView {
    type Object = ApiNode;

    fn of(node: ApiNode) -> Self {
        let spec = node.spec.as_ref();
        let cidrs = spec
            .and_then(|spec| spec.pod_cidrs.as_deref())
            .unwrap_or_default();
        let addresses = node
            .status
            .as_ref()
            .and_then(|status| status.addresses.as_deref());
        NodeView {
            id: Identity::of(&node.metadata),
            pod_cidrs: cidrs.iter().filter_map(|cidr| cidr.parse().ok()).collect(),
            addresses: addresses
                .unwrap_or_default()
                .iter()
                .filter_map(|address| address.address.parse().ok())
                .collect(),
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A range of Services' addresses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServiceCidrView {
    pub(crate) id: Identity,
    pub(crate) cidrs: Vec<IpNet>,
}

impl View for ServiceCidrView {
    type Object = ServiceCIDR;

    fn of(services: ServiceCIDR) -> Self {
        let cidrs = services
            .spec
            .and_then(|spec| spec.cidrs)
            .unwrap_or_default();
        ServiceCidrView {
            id: Identity::of(&services.metadata),
            cidrs: cidrs.iter().filter_map(|cidr| cidr.parse().ok()).collect(),
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// Where the Service `default/kubernetes` leads: nothing of other Services' EndpointSlices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiServerView {
    pub(crate) id: Identity,
    pub(crate) addresses: Vec<IpNet>,
}

impl View for ApiServerView {
    type Object = EndpointSlice;

    fn of(slice: EndpointSlice) -> Self {
        let labels = slice.metadata.labels.as_ref();
        let service = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
        let is_it = service.is_some_and(|service| service == "kubernetes");
        let addresses = slice.endpoints.iter().flat_map(|one| &one.addresses);
        let addresses = addresses.filter_map(|one| one.parse::<IpAddr>().ok());
        ApiServerView {
            id: Identity::of(&slice.metadata),
            addresses: addresses.filter(|_| is_it).map(IpNet::from).collect(),
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A NetworkPolicy: only that it is there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PolicyView {
    pub(crate) id: Identity,
}

impl View for PolicyView {
    type Object = kube::core::PartialObjectMeta<k8s_openapi::api::networking::v1::NetworkPolicy>;

    fn of(object: Self::Object) -> Self {
        PolicyView {
            id: Identity::of(object.meta()),
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}
