//! From a reference to the network that it means.

use super::error::missing;
use super::request::{NetworkRequest, Target};
use super::{NetworkObject, Objects, PodFacts, Settings};
use crate::stable::hash64;
use plexus_api::cni::{Code, Error, FqName, Network};
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

/// The network that a request means.
#[derive(Debug)]
pub(super) struct ResolvedNetwork {
    pub(super) network: Network,
    /// Namespace and name of what was referred to.
    pub(super) namespace: String,
    pub(super) name: String,
    /// The network's identity.
    pub(super) uuid: String,
    pub(super) warnings: Vec<String>,
}

impl Lookup<'_> {
    /// The network of a reference.
    pub(super) fn find(&self, request: &NetworkRequest) -> Result<ResolvedNetwork, Error> {
        let selection = &request.selection;
        let (namespace, name) = (&*selection.namespace, &*selection.name);
        match &request.target {
            Target::Nad => match self.objects.nad(namespace, name) {
                Some(nad) => self.of_nad(&nad, selection),
                None => Err(self.no_nad(namespace, name)),
            },
            Target::Object => match self.objects.network(namespace, name) {
                Some(object) => self.of_object(&object, selection),
                None => Err(self.no_object(namespace, name)),
            },
            Target::FqName(fq) => self.of_object(&*self.by_fq_name(fq)?, selection),
        }
    }

    /// The `Network` of a fully qualified name.
    pub(super) fn by_fq_name(&self, fq: &FqName) -> Result<Arc<NetworkObject>, Error> {
        by_fq_name(fq, self.settings, self.objects)
    }

    fn no_nad(&self, namespace: &str, name: &str) -> Error {
        let next = if self.objects.network(namespace, name).is_some() {
            format!("there is a Network of that name: name it in {PLEXUS_NETWORKS}")
        } else if namespace != self.pod.namespace
            && self.objects.nad(&self.pod.namespace, name).is_some()
        {
            let own = &self.pod.namespace;
            format!("there is one in the pod's own namespace: did you mean {own}/{name}?")
        } else {
            "create it, or correct the pod's annotation".to_owned()
        };
        let what = format!("there is no NetworkAttachmentDefinition {namespace}/{name}");
        missing(what, next)
    }

    fn no_object(&self, namespace: &str, name: &str) -> Error {
        let next = if self.objects.nad(namespace, name).is_some() {
            format!("there is a NetworkAttachmentDefinition of that name: name it in {NETWORKS}")
        } else if namespace != self.pod.namespace
            && self.objects.network(&self.pod.namespace, name).is_some()
        {
            let own = &self.pod.namespace;
            format!("there is one in the pod's own namespace: did you mean {own}/{name}?")
        } else {
            "create it, or correct the pod's annotation".to_owned()
        };
        missing(format!("there is no Network {namespace}/{name}"), next)
    }
}

/// The `Network` of a fully qualified name: the project is a namespace; if there is none of that name, it is
/// `<cluster>-<namespace>`.
pub fn by_fq_name(
    fq: &FqName,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<Arc<NetworkObject>, Error> {
    let FqName { project, name } = fq;
    if let Some(object) = objects.network(project, name) {
        return Ok(object);
    }
    let stripped = project
        .strip_prefix(&*settings.cluster_name)
        .and_then(|rest| rest.strip_prefix('-'))
        .filter(|_| objects.namespace(project).is_none());
    if let Some(object) = stripped.and_then(|namespace| objects.network(namespace, name)) {
        return Ok(object);
    }
    let place = match stripped {
        Some(namespace) => format!("neither in namespace {project} nor in {namespace}"),
        None => format!("in namespace {project}"),
    };
    Err(missing(
        format!("there is no Network {name} {place}, as the project {project} says"),
        format!(
            "create it; a project is a namespace, or {}-<namespace>",
            settings.cluster_name
        ),
    ))
}

/// The longest name that is kept as it is.
const LONGEST: usize = 200;

/// The name of a network that an object describes; what is too long ends in a hash.
pub(super) fn network_name(parts: &[&str]) -> Result<NetworkName, Error> {
    let mut name = parts.join(".");
    if name.len() > LONGEST {
        let hash = format!("-{:016x}", hash64(parts));
        let kept: String = name.chars().take(LONGEST - hash.len()).collect();
        name = kept + &hash;
    }
    NetworkName::new(&name).map_err(|invalid| {
        Error::new(
            Code::InvalidConfig,
            invalid.to_string(),
            "give the object a name as Kubernetes has them",
        )
    })
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
