//! Plugin mode under a delegating plugin (Multus, CNI-Genie): which network a call means.

use super::error::{ResolveError, invalid};
use super::lookup::{Lookup, ResolvedNetwork, without_default_route};
use super::nad::Means;
use super::request::{self, Named, NetworkRequest, requested};
use super::{
    NadObject, Objects, PodFacts, PodNetworks, Reference, ResolvedReference, Settings,
    is_of_fabric, is_routed,
};
use plexus_api::cni::{FqName, Runtime};
use plexus_api::pod::{self, NETWORKS, NetworkSelection};
use plexus_types::IfName;

/// Plugin mode under a delegating plugin: the one network that a call means. Multus passes the bare
/// NAD name, so the namespace comes from the pod's annotation: the element whose `interface` is
/// CNI_IFNAME, else the i-th for `net<i>`, else the only one of that name, else the pod's own.
pub fn named_network(
    pod: &PodFacts,
    name: &str,
    fq_name: Option<&FqName>,
    cni_ifname: &IfName,
    runtime: &Runtime,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<PodNetworks, ResolveError> {
    let lookup = Lookup {
        pod,
        settings,
        objects,
    };
    let elements = match pod.annotations.get(NETWORKS) {
        Some(text) => pod::networks(text, &pod.namespace).map_err(|all| invalid("", all))?,
        None => Vec::new(),
    };
    let at = element(&lookup, &elements, name, cni_ifname)?;
    let mut request = match at.and_then(|at| elements.get(at)) {
        Some(element) => requested(NETWORKS, Named::Nad, element.clone()),
        None => elsewhere(pod, name)?,
    };
    // Multus sets the default route itself, and what it passes on has been through its checks.
    request.selection = without_default_route(&request.selection);
    request.selection.interface = None;
    if runtime.mac.is_some() {
        request.selection.mac = runtime.mac;
    }
    if !runtime.ips.is_empty() {
        request.selection.ips.clone_from(&runtime.ips);
    }
    let index = at.map_or(0, |at| at + 1);
    let found = find(&lookup, &request, fq_name).map_err(|error| error.within(&request, index))?;
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let reference = Reference {
        index: count(index),
        total: at.map_or(1, |_| count(elements.len() + 1)),
        source: request.source.to_owned(),
        ..found.reference
    };
    let mut networks = found.networks;
    let same = elements.iter().filter(|element| {
        (&element.namespace, &element.name)
            == (&request.selection.namespace, &request.selection.name)
    });
    // Without a list nobody knows whether the same network comes once more.
    let maybe_twice = at.is_none() || same.count() > 1;
    for network in networks.all_mut() {
        network.source_routing |= (is_routed(network) && maybe_twice) || is_of_fabric(network);
    }
    Ok(PodNetworks {
        references: vec![ResolvedReference {
            reference,
            networks,
        }],
        default_gw: None,
        warnings: found.warnings,
    })
}

/// Which element of the annotation the call is for.
fn element(
    lookup: &Lookup<'_>,
    elements: &[NetworkSelection],
    name: &str,
    cni_ifname: &IfName,
) -> Result<Option<usize>, ResolveError> {
    let fits = |at: &usize| {
        elements
            .get(*at)
            .is_some_and(|element| is_called(lookup, element, name))
    };
    let by_interface = elements
        .iter()
        .position(|element| element.interface.as_ref() == Some(cni_ifname));
    let number = cni_ifname.as_str().strip_prefix("net");
    let by_number = number
        .and_then(|number| number.parse::<usize>().ok()?.checked_sub(1))
        .filter(|at| {
            elements
                .get(*at)
                .is_some_and(|element| element.interface.is_none())
        });
    if let Some(at) = by_interface.or(by_number).filter(fits) {
        return Ok(Some(at));
    }
    let mut of_name = (0..elements.len()).filter(fits);
    let (first, second) = (of_name.next(), of_name.next());
    let place = |at: Option<usize>| at.and_then(|at| elements.get(at));
    match (place(first), place(second)) {
        (Some(one), Some(other)) if one.namespace != other.namespace => {
            Err(ResolveError::Ambiguous {
                name: name.to_owned(),
                ifname: cni_ifname.clone(),
                one: format!("{}/{}", one.namespace, one.name),
                other: format!("{}/{}", other.namespace, other.name),
            })
        }
        _ => Ok(first),
    }
}

/// Whether a delegating plugin would call an element's network by that name: the NAD's, or the one
/// in its configuration.
fn is_called(lookup: &Lookup<'_>, element: &NetworkSelection, name: &str) -> bool {
    let in_config = || {
        let nad = lookup.objects.nad(&element.namespace, &element.name);
        nad.is_some_and(|nad| nad.parsed().name.as_deref() == Some(name))
    };
    element.name == name || in_config()
}

/// Not in the list of networks: Multus' `default-network`, or the namesake in the pod's namespace.
fn elsewhere(pod: &PodFacts, name: &str) -> Result<NetworkRequest, ResolveError> {
    let default = request::default_network(pod)?.filter(|request| request.selection.name == name);
    let namesake = || NetworkSelection::named(&pod.namespace, name);
    Ok(default.unwrap_or_else(|| requested("", Named::Nad, namesake())))
}

/// The network of the NAD, if there is one; of the configuration alone, if there is none.
fn find(
    lookup: &Lookup<'_>,
    request: &NetworkRequest,
    fq_name: Option<&FqName>,
) -> Result<ResolvedNetwork, ResolveError> {
    let selection = &request.selection;
    let NetworkSelection {
        namespace, name, ..
    } = selection;
    if let Some(nad) = lookup.objects.nad(namespace, name) {
        if let Means::MultiNic(name) = nad.means()? {
            return lookup.of_multi_nic(&nad, name, selection);
        }
        let fq_name = fq_of(&nad, fq_name)?;
        return lookup.of_nad_object(&nad, fq_name.as_ref(), selection);
    }
    let object = match fq_name {
        Some(fq_name) => lookup.by_fq_name(fq_name)?,
        None => {
            let object = lookup.objects.network(namespace, name);
            object.ok_or_else(|| ResolveError::Neither(format!("{namespace}/{name}")))?
        }
    };
    lookup.of_object(&object, selection)
}

/// The fully qualified name that counts: the annotation's on the NAD, else the configuration's.
fn fq_of(nad: &NadObject, in_call: Option<&FqName>) -> Result<Option<FqName>, ResolveError> {
    match nad.means()? {
        Means::Object(Some(fq_name)) => Ok(Some(fq_name.clone())),
        Means::Object(None) | Means::Config(_) | Means::MultiNic(_) | Means::Nothing => {
            Ok(in_call.cloned())
        }
    }
}
