//! Each of a pod's references by itself, for people: what it names, and what it would become. Where
//! [`pod_networks`](super::pod_networks) stops at the first that cannot be had, this goes on.

use super::error::ResolveError;
use super::lookup::{Lookup, Networks};
use super::request::{self, Named};
use super::{Objects, PodFacts, Settings};

/// A reference, and what is known of it.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The namespace of the pod that refers.
    pub home: String,
    /// Which of the pod's references; 0 replaces the cluster-wide default network.
    pub index: usize,
    /// The annotation that names it.
    pub source: &'static str,
    /// What it names.
    pub target: Named,
    /// The interface that it asks for, or would get.
    pub ifname: Option<String>,
    /// Namespace and name of what it leads to, as records have them; none if there is none.
    pub place: Option<(String, String)>,
    /// The networks that it means, or why there are none.
    pub networks: Result<Networks, ResolveError>,
    /// What users must be told though it works.
    pub warnings: Vec<String>,
}

/// All references of a pod, in order. Fails if its annotations cannot be read.
pub fn examine(
    pod: &PodFacts,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<Vec<Examined>, ResolveError> {
    let lookup = Lookup {
        pod,
        settings,
        objects,
    };
    let default = request::default_network(pod)?
        .into_iter()
        .map(|one| (0, one));
    let listed = (1..).zip(request::of(pod)?);
    let each = default.chain(listed).map(|(index, request)| {
        let found = lookup
            .find(&request)
            .map_err(|error| error.within(&request, index));
        let ifname = match index {
            0 => None,
            _ => request.ifname(index).ok().map(|name| name.to_string()),
        };
        let (place, networks, warnings) = match found {
            Ok(found) => {
                let place = Some((found.reference.namespace, found.reference.name));
                (place, Ok(found.networks), found.warnings)
            }
            Err(error) => (None, Err(error), Vec::new()),
        };
        Examined {
            home: pod.namespace.clone(),
            index,
            source: request.source,
            target: request.target,
            ifname,
            place,
            networks,
            warnings,
        }
    });
    Ok(each.collect())
}
