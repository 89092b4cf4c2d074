//! What multi-NIC networks are decided from: MultiNicNetworks, HostInterfaces, Namespaces.

use super::{Identity, View};
use k8s_openapi::api::core::v1::Namespace;
use kube::Resource;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use plexus_api::objects::{
    HostInterface, MultiNicNetwork, MultiNicNetworkSpec, MultiNicNetworkStatus,
};
use plexus_core::multinic::Nic;

/// A MultiNicNetwork.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MultiNicView {
    pub(crate) id: Identity,
    /// What it asks for, or why that cannot be read.
    pub(crate) spec: Result<MultiNicNetworkSpec, String>,
    pub(crate) status: MultiNicNetworkStatus,
}

impl View for MultiNicView {
    type Object = DeserializeGuard<MultiNicNetwork>;

    fn of(object: Self::Object) -> Self {
        let id = Identity::of(object.meta());
        let (spec, status) = match object.0 {
            Ok(network) => (Ok(network.spec), network.status.unwrap_or_default()),
            Err(invalid) => (Err(invalid.error), MultiNicNetworkStatus::default()),
        };
        MultiNicView { id, spec, status }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// The NICs of a host. It has the name of the Node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HostNicsView {
    pub(crate) id: Identity,
    pub(crate) nics: Vec<Nic>,
}

impl View for HostNicsView {
    type Object = DeserializeGuard<HostInterface>;

    fn of(object: Self::Object) -> Self {
        let id = Identity::of(object.meta());
        let nics = match object.0 {
            Ok(host) => host.spec.interfaces.iter().map(Nic::from).collect(),
            Err(invalid) => {
                tracing::warn!(
                    host = invalid.metadata.name,
                    error = invalid.error,
                    "a HostInterface that cannot be read counts as one without NICs"
                );
                Vec::new()
            }
        };
        HostNicsView { id, nics }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}

/// A Namespace: only that it is there, and whether it goes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamespaceView {
    pub(crate) id: Identity,
}

impl View for NamespaceView {
    type Object = PartialObjectMeta<Namespace>;

    fn of(object: Self::Object) -> Self {
        NamespaceView {
            id: Identity::of(object.meta()),
        }
    }

    fn id(&self) -> &Identity {
        &self.id
    }
}
