//! What of an API object matters to us: plain values, small enough to keep one of everything. Two
//! that are equal need no work, whatever else changed in the object.

use ipnet::IpNet;
use k8s_openapi::api::core::v1::Node as ApiNode;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::DeserializeGuard;
use kube::{Resource, ResourceExt};
use plexus_api::objects::{Block, Network, NetworkSpec, NetworkStatus, PodAttachments};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

/// Namespace and name; the namespace is empty for what has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Name {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Name {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// Who and when an object is.
#[derive(Debug, Clone, Eq, Default)]
pub(crate) struct Identity {
    pub(crate) uid: String,
    /// RFC 3339, as the API server wrote it: sorts by time.
    pub(crate) created: String,
    pub(crate) generation: Option<i64>,
    pub(crate) deleting: bool,
    pub(crate) finalizers: Vec<String>,
    /// The version that was read; another version alone is no difference.
    pub(crate) version: Option<String>,
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        (
            &self.uid,
            &self.created,
            self.generation,
            self.deleting,
            &self.finalizers,
        ) == (
            &other.uid,
            &other.created,
            other.generation,
            other.deleting,
            &other.finalizers,
        )
    }
}

impl Identity {
    /// From an object's metadata.
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Identity {
            uid: meta.uid.clone().unwrap_or_default(),
            created: meta
                .creation_timestamp
                .as_ref()
                .map_or_else(String::new, |time| time.0.to_string()),
            generation: meta.generation,
            deleting: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            version: meta.resource_version.clone(),
        }
    }
}

/// Something that the caches hold.
pub(crate) trait View: PartialEq + Clone + Send + 'static {
    /// The object it is made of.
    type Object: Resource<DynamicType = ()>;
    /// What matters of it.
    fn of(object: Self::Object) -> Self;
    /// Who it is.
    fn id(&self) -> &Identity;
}

/// A Network.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Net {
    pub(crate) id: Identity,
    /// The owner that made it, if it has one: kind and UID.
    pub(crate) owner: Option<(String, String)>,
    /// What it asks for, or why that cannot be read.
    pub(crate) spec: Result<NetworkSpec, String>,
    pub(crate) status: NetworkStatus,
}

impl Net {
    /// How records refer to it.
    pub(crate) fn uuid(&self) -> &str {
        let given = self
            .spec
            .as_ref()
            .ok()
            .and_then(|spec| spec.uuid.as_deref());
        given
            .filter(|uuid| !uuid.is_empty())
            .unwrap_or(&self.id.uid)
    }
}

impl View for Net {
    type Object = DeserializeGuard<Network>;

    fn of(object: Self::Object) -> Self {
        let meta = object.meta();
        let (id, owner) = (Identity::of(meta), controller(meta));
        let (spec, status) = match object.0 {
            Ok(network) => (Ok(network.spec), network.status.unwrap_or_default()),
            Err(invalid) => (Err(invalid.error), NetworkStatus::default()),
        };
        Net {
            id,
            owner,
            spec,
            status,
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A NetworkAttachmentDefinition. Its CRD may be somebody else's, so anything may be in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Nad {
    pub(crate) id: Identity,
    pub(crate) annotations: BTreeMap<String, String>,
    /// `spec.config`; none if there is none.
    pub(crate) config: Result<Option<String>, String>,
}

/// A NAD as loosely as it can be read.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AnyNad {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: serde_json::Value,
}

impl Resource for AnyNad {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "NetworkAttachmentDefinition".into()
    }
    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "k8s.cni.cncf.io".into()
    }
    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "network-attachment-definitions".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl View for Nad {
    type Object = AnyNad;

    fn of(object: AnyNad) -> Self {
        use serde_json::Value;
        let config = match object.spec.get("config") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok((!text.trim().is_empty()).then(|| text.clone())),
            Some(_) => {
                Err("spec.config is not text: write the CNI configuration as one string".to_owned())
            }
        };
        let ours = |key: &String| key.starts_with("opencontrail.org/");
        let annotations = object.metadata.annotations.iter().flatten();
        Nad {
            id: Identity::of(&object.metadata),
            annotations: annotations
                .filter(|(key, _)| ours(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            config,
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A Block that could be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Owned {
    pub(crate) id: Identity,
    /// Its network's UID; empty if the Block cannot be read.
    pub(crate) network: String,
    /// Namespace and name of the network.
    pub(crate) of: Name,
    pub(crate) cidr: Option<IpNet>,
    pub(crate) node: String,
    pub(crate) node_uid: String,
    pub(crate) allocated: u64,
}

impl View for Owned {
    type Object = DeserializeGuard<Block>;

    fn of(object: Self::Object) -> Self {
        let id = Identity::of(object.meta());
        match object.0 {
            Ok(block) => Owned {
                id,
                network: block.spec.network.uuid,
                of: Name::new(block.spec.network.namespace, block.spec.network.name),
                cidr: Some(block.spec.cidr),
                node: block.spec.node,
                node_uid: block.spec.node_uid,
                allocated: block.status.map_or(0, |status| status.allocated),
            },
            Err(invalid) => {
                tracing::warn!(
                    block = invalid.metadata.name,
                    error = invalid.error,
                    "a Block that cannot be read is left alone"
                );
                Owned {
                    id,
                    network: String::new(),
                    of: Name::new("", ""),
                    cidr: None,
                    node: String::new(),
                    node_uid: String::new(),
                    allocated: 0,
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
pub(crate) struct Record {
    pub(crate) id: Identity,
    pub(crate) pod: String,
    pub(crate) pod_uid: String,
    /// Empty if the record cannot be read: then nobody but its agent acts on it.
    pub(crate) node: String,
    /// Identities of the networks that it is on.
    pub(crate) networks: BTreeSet<String>,
}

impl View for Record {
    type Object = DeserializeGuard<PodAttachments>;

    fn of(object: Self::Object) -> Self {
        let id = Identity::of(object.meta());
        match object.0 {
            Ok(record) => Record {
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
                Record {
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
pub(crate) struct Machine {
    pub(crate) id: Identity,
    pub(crate) pod_cidrs: Vec<IpNet>,
    pub(crate) addresses: Vec<IpAddr>,
}

impl View for Machine {
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
        Machine {
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
pub(crate) struct Services {
    pub(crate) id: Identity,
    pub(crate) cidrs: Vec<IpNet>,
}

impl View for Services {
    type Object = ServiceCIDR;

    fn of(services: ServiceCIDR) -> Self {
        let cidrs = services
            .spec
            .and_then(|spec| spec.cidrs)
            .unwrap_or_default();
        Services {
            id: Identity::of(&services.metadata),
            cidrs: cidrs.iter().filter_map(|cidr| cidr.parse().ok()).collect(),
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A NetworkPolicy: only that it is there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Policy {
    pub(crate) id: Identity,
}

impl View for Policy {
    type Object = kube::core::PartialObjectMeta<k8s_openapi::api::networking::v1::NetworkPolicy>;

    fn of(object: Self::Object) -> Self {
        Policy {
            id: Identity::of(object.meta()),
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// Namespace and name of an object.
pub(crate) fn name_of<K: Resource>(object: &K) -> Name {
    Name::new(object.namespace().unwrap_or_default(), object.name_any())
}

fn controller(meta: &ObjectMeta) -> Option<(String, String)> {
    let mut owners = meta.owner_references.iter().flatten();
    owners
        .find(|owner: &&OwnerReference| owner.controller == Some(true))
        .map(|owner| (owner.kind.clone(), owner.uid.clone()))
}
