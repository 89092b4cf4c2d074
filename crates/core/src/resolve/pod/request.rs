//! What a pod's annotations refer to, in the order in which its interfaces are numbered.

use super::PodFacts;
use super::error::{ResolveError, invalid};
use plexus_api::cni::FqName;
use plexus_api::pod::{
    self, CONTRAIL_NETWORK, DEFAULT_NETWORK, NETWORKS, NetworkSelection, PLEXUS_NETWORKS,
};
use plexus_types::IfName;
use std::fmt;

/// Where Multus looks for the NAD of `default-network` unless told otherwise.
const MULTUS_NAMESPACE: &str = "kube-system";

/// One network that a pod requests.
#[derive(Debug, Clone)]
pub(super) struct NetworkRequest {
    /// The annotation.
    pub(super) source: &'static str,
    /// What it names.
    pub(super) target: Named,
    /// What is asked of it.
    pub(super) selection: NetworkSelection,
}

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A NetworkAttachmentDefinition: its namespace and name.
    Nad(String, String),
    /// A Network: its namespace and name.
    Network(String, String),
    /// A Network by its fully qualified name.
    FqName(FqName),
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Named::Nad(namespace, name) => {
                write!(f, "NetworkAttachmentDefinition {namespace}/{name}")
            }
            Named::Network(namespace, name) => write!(f, "Network {namespace}/{name}"),
            Named::FqName(fq) => write!(f, "Network {} of project {}", fq.name, fq.project),
        }
    }
}

impl NetworkRequest {
    /// The interface's name: as asked for, else `eth<index>` after Contrail's annotation and
    /// `net<index>` after the others.
    pub(super) fn ifname(&self, index: usize) -> Result<IfName, ResolveError> {
        if let Some(interface) = &self.selection.interface {
            return Ok(interface.clone());
        }
        let stem = match self.source {
            CONTRAIL_NETWORK => "eth",
            _ => "net",
        };
        IfName::new(&format!("{stem}{index}")).map_err(|source| ResolveError::Interface {
            name: self.display_name(),
            number: index,
            source,
        })
    }

    /// Its name, as users know it.
    pub(super) fn display_name(&self) -> String {
        match &self.target {
            Named::FqName(fq) => format!("{}:{}", fq.project, fq.name),
            Named::Nad(namespace, name) | Named::Network(namespace, name) => {
                format!("{namespace}/{name}")
            }
        }
    }
}

/// All references of a pod; the first has index 1.
pub(super) fn of(pod: &PodFacts) -> Result<Vec<NetworkRequest>, ResolveError> {
    let mut all = Vec::new();
    if let Some(text) = pod.annotations.get(NETWORKS) {
        let found = pod::networks(text, &pod.namespace).map_err(|all| invalid("", all))?;
        all.extend(
            found
                .into_iter()
                .map(|one| requested(NETWORKS, Named::Nad, one)),
        );
    }
    if let Some(text) = pod.annotations.get(CONTRAIL_NETWORK) {
        let found = pod::contrail_networks(text).map_err(|all| invalid("", all))?;
        all.extend(found.into_iter().map(|fq| NetworkRequest {
            source: CONTRAIL_NETWORK,
            selection: NetworkSelection::named(&fq.project, &fq.name),
            target: Named::FqName(fq),
        }));
    }
    if let Some(text) = pod.annotations.get(PLEXUS_NETWORKS) {
        let found = pod::plexus_networks(text, &pod.namespace).map_err(|all| invalid("", all))?;
        all.extend(
            found
                .into_iter()
                .map(|one| requested(PLEXUS_NETWORKS, Named::Network, one)),
        );
    }
    Ok(all)
}

/// What replaces the cluster-wide default network, if anything does.
pub(super) fn default_network(pod: &PodFacts) -> Result<Option<NetworkRequest>, ResolveError> {
    let Some(text) = pod.annotations.get(DEFAULT_NETWORK) else {
        return Ok(None);
    };
    let selection = pod::default_network(text, MULTUS_NAMESPACE).map_err(|all| invalid("", all))?;
    Ok(Some(requested(DEFAULT_NETWORK, Named::Nad, selection)))
}

/// The request for what a selection names.
pub(super) fn requested(
    source: &'static str,
    named: fn(String, String) -> Named,
    selection: NetworkSelection,
) -> NetworkRequest {
    NetworkRequest {
        source,
        target: named(selection.namespace.clone(), selection.name.clone()),
        selection,
    }
}
