//! From a reference to the network that it means.

use super::error::{Instead, ResolveError};
use super::request::{Named, NetworkRequest};
use super::{NetworkObject, Objects, PodFacts, Reference, Settings};
use crate::stable::hash64;
use plexus_api::cni::{FqName, Network};
use plexus_api::pod::{NETWORKS, NetworkSelection, PLEXUS_NETWORKS};
use plexus_types::NetworkName;
use std::sync::Arc;

/// What references are looked up in.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a> {
    pub(super) pod: &'a PodFacts,
    pub(super) settings: &'a Settings,
    pub(super) objects: &'a dyn Objects,
}

/// What a request means.
#[derive(Debug)]
pub(super) struct ResolvedNetwork {
    pub(super) networks: Networks,
    /// Where it came from, as if it were the only one.
    pub(super) reference: Reference,
    pub(super) warnings: Vec<String>,
}

/// The networks of one reference.
#[expect(
    clippy::large_enum_variant,
    reason = "a handful per call; none is kept"
)]
#[derive(Debug, Clone, PartialEq)]
pub enum Networks {
    /// One: one interface.
    One(Network),
    /// One for each NIC of the node that the pod gets: their interfaces are numbered, even if it is one.
    PerNic(Vec<Network>),
}

impl Networks {
    /// All of them, in order of their interfaces.
    pub fn all(&self) -> &[Network] {
        match self {
            Networks::One(network) => std::slice::from_ref(network),
            Networks::PerNic(networks) => networks,
        }
    }

    /// All of them, in order of their interfaces.
    pub fn all_mut(&mut self) -> &mut [Network] {
        match self {
            Networks::One(network) => std::slice::from_mut(network),
            Networks::PerNic(networks) => networks,
        }
    }
}

const NAD: &str = "NetworkAttachmentDefinition";
const NETWORK: &str = "Network";

impl Lookup<'_> {
    /// The network of a reference.
    pub(super) fn find(&self, request: &NetworkRequest) -> Result<ResolvedNetwork, ResolveError> {
        let selection = &request.selection;
        if let Named::Nad(namespace, name) | Named::Network(namespace, name) = &request.target {
            self.check_isolated(namespace, name)?;
        }
        let mut found = match &request.target {
            Named::Nad(namespace, name) => match self.objects.nad(namespace, name) {
                Some(nad) => self.of_nad(&nad, selection),
                None => Err(self.missing(NAD, namespace, name)),
            },
            Named::Network(namespace, name) => match self.objects.network(namespace, name) {
                Some(object) => self.of_object(&object, selection),
                None => Err(self.missing(NETWORK, namespace, name)),
            },
            Named::FqName(fq_name) => self.of_object(&*self.by_fq_name(fq_name)?, selection),
        }?;
        request.source.clone_into(&mut found.reference.source);
        Ok(found)
    }

    /// The `Network` of a fully qualified name that the pod's namespace has written.
    pub(super) fn by_fq_name(&self, fq: &FqName) -> Result<Arc<NetworkObject>, ResolveError> {
        by_fq_name(fq, &self.pod.namespace, self.settings, self.objects)
    }

    /// Why there is no object of that kind, and what may be meant instead.
    fn missing(&self, kind: &'static str, namespace: &str, name: &str) -> ResolveError {
        let is_there = |kind, namespace: &str| match kind {
            NAD => self.objects.nad(namespace, name).is_some(),
            _ => self.objects.network(namespace, name).is_some(),
        };
        let (other, annotation) = match kind {
            NAD => (NETWORK, PLEXUS_NETWORKS),
            _ => (NAD, NETWORKS),
        };
        let own = &self.pod.namespace;
        let instead = match () {
            () if is_there(other, namespace) => Instead::OtherKind(other, annotation),
            () if namespace != own && is_there(kind, own) => Instead::Own(format!("{own}/{name}")),
            () => Instead::Nothing,
        };
        ResolveError::Missing {
            kind,
            object: format!("{namespace}/{name}"),
            instead,
        }
    }
}

/// The `Network` of a fully qualified name, for whoever wrote it in the namespace `home`. The project is a namespace, or
/// `<cluster>-<namespace>`, as Contrail calls it. Where there are both namespaces, neither captures what is meant for
/// the other: whoever writes in one of them means his own, and others must say it otherwise.
pub fn by_fq_name(
    fq: &FqName,
    home: &str,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<Arc<NetworkObject>, ResolveError> {
    let FqName { project, name } = fq;
    let stripped = project
        .strip_prefix(&*settings.cluster_name)
        .and_then(|rest| rest.strip_prefix('-'));
    let is_there = |namespace: &str| {
        objects.namespace(namespace).is_some() || objects.network(namespace, name).is_some()
    };
    let namespace = match stripped {
        None => project,
        Some(namespace) if namespace == home => namespace,
        Some(_) if project == home && is_there(project) => project,
        Some(namespace) => match (is_there(project), is_there(namespace)) {
            (true, true) => {
                return Err(ResolveError::AmbiguousProject {
                    name: name.clone(),
                    project: project.clone(),
                    namespace: namespace.to_owned(),
                });
            }
            (true, false) => project,
            (false, _) => namespace,
        },
    };
    let network = objects.network(namespace, name);
    network.ok_or_else(|| ResolveError::NoNetworkOfProject {
        name: name.clone(),
        project: project.clone(),
        namespace: (namespace != project).then(|| namespace.to_owned()),
        cluster: settings.cluster_name.clone(),
    })
}

/// The longest name that is kept as it is.
const LONGEST: usize = 200;

/// The name of a network that an object describes; what is too long ends in a hash.
pub(super) fn network_name(parts: &[&str]) -> Result<NetworkName, ResolveError> {
    let mut name = parts.join(".");
    if name.len() > LONGEST {
        let hash = format!("-{:016x}", hash64(parts));
        let prefix: String = name.chars().take(LONGEST - hash.len()).collect();
        name = prefix + &hash;
    }
    NetworkName::new(&name).map_err(ResolveError::Name)
}

/// What is asked for, without what somebody else does.
pub(super) fn without_default_route(selection: &NetworkSelection) -> NetworkSelection {
    NetworkSelection {
        default_route: None,
        ..selection.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_told_apart() {
        let long = "n".repeat(253);
        let one = network_name(&["team-a", &long]).unwrap();
        let two = network_name(&["team-a", &(long.clone() + "x")]).unwrap();
        assert!(one.as_str().len() == LONGEST && one != two, "{one} {two}");
        assert_eq!(network_name(&["a", "b"]).unwrap().as_str(), "a.b");
        assert!(network_name(&["../a", "b"]).is_err());
    }
}
