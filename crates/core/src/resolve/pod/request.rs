//! What a pod's annotations refer to, in the order in which its interfaces are numbered.

use super::PodFacts;
use super::error::{ResolveError, invalid};
use plexus_api::cni::FqName;
use plexus_api::pod::{
    self, CONTRAIL_NETWORK, DEFAULT_NETWORK, NETWORKS, NetworkSelection, PLEXUS_NETWORKS,
};
use plexus_types::IfName;

/// Where Multus looks for the NAD of `default-network` unless told otherwise.
const MULTUS_NAMESPACE: &str = "kube-system";

/// One network that a pod requests.
#[derive(Debug, Clone)]
pub(super) struct NetworkRequest {
    /// The annotation.
    pub(super) source: &'static str,
    /// What it names.
    pub(super) target: Target,
    /// What is asked of it.
    pub(super) selection: NetworkSelection,
}

/// What a reference names.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// The NAD of the selection's namespace and name.
    Nad,
    /// The `Network` of the selection's namespace and name.
    Object,
    /// A `Network` by its fully qualified name.
    FqName(FqName),
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
            Target::FqName(fq) => format!("{}:{}", fq.project, fq.name),
            Target::Nad | Target::Object => {
                format!("{}/{}", self.selection.namespace, self.selection.name)
            }
        }
    }
}

/// All references of a pod; the first has index 1.
pub(super) fn of(pod: &PodFacts) -> Result<Vec<NetworkRequest>, ResolveError> {
    let mut all = Vec::new();
    if let Some(text) = pod.annotations.get(NETWORKS) {
        let found = pod::networks(text, &pod.namespace).map_err(|all| invalid("", all))?;
        all.extend(selected(NETWORKS, &Target::Nad, found));
    }
    if let Some(text) = pod.annotations.get(CONTRAIL_NETWORK) {
        let found = pod::contrail_networks(text).map_err(|all| invalid("", all))?;
        all.extend(found.into_iter().map(|fq| NetworkRequest {
            source: CONTRAIL_NETWORK,
            selection: NetworkSelection::named(&fq.project, &fq.name),
            target: Target::FqName(fq),
        }));
    }
    if let Some(text) = pod.annotations.get(PLEXUS_NETWORKS) {
        let found = pod::plexus_networks(text, &pod.namespace).map_err(|all| invalid("", all))?;
        all.extend(selected(PLEXUS_NETWORKS, &Target::Object, found));
    }
    Ok(all)
}

/// What replaces the cluster-wide default network, if anything does.
pub(super) fn default_network(pod: &PodFacts) -> Result<Option<NetworkRequest>, ResolveError> {
    let Some(text) = pod.annotations.get(DEFAULT_NETWORK) else {
        return Ok(None);
    };
    let selection = pod::default_network(text, MULTUS_NAMESPACE).map_err(|all| invalid("", all))?;
    Ok(Some(NetworkRequest {
        source: DEFAULT_NETWORK,
        target: Target::Nad,
        selection,
    }))
}

fn selected(
    source: &'static str,
    target: &Target,
    found: Vec<NetworkSelection>,
) -> impl Iterator<Item = NetworkRequest> {
    let target = target.clone();
    found.into_iter().map(move |selection| NetworkRequest {
        source,
        target: target.clone(),
        selection,
    })
}
