//! What of an API object matters to us: plain values, small enough to keep one of everything. Two
//! that are equal need no work, whatever else changed in the object.

mod multi_nic;
mod network;
mod node;

pub(crate) use multi_nic::{HostNicsView, MultiNicView, NamespaceView};
pub(crate) use network::{AnyNad, NadView, NetworkView};
pub(crate) use node::{
    ApiServerView, BlockView, NodeView, PolicyView, RecordView, RequestView, ServiceCidrView,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use std::fmt;

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

/// The metadata that identifies an object.
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

/// The part of an API object that the cache keeps.
pub(crate) trait View: PartialEq + Clone + Send + 'static {
    /// The API object.
    type Object: Resource<DynamicType = ()>;
    /// Takes what the controller needs from the object.
    fn of(object: Self::Object) -> Self;
    /// Its UID, version and other metadata.
    fn id(&self) -> &Identity;
}

/// Namespace and name of an object.
pub(crate) fn name_of<K: Resource>(object: &K) -> Name {
    Name::new(object.namespace().unwrap_or_default(), object.name_any())
}
