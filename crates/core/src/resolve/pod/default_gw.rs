//! Who has the default route of a pod, by its annotations: `opencontrail.org/default-gw`, and the
//! Working Group's `default-route`.

use super::error::{ResolveError, invalid};
use super::request::NetworkRequest;
use super::{All, Networks, PodFacts, Settings};
use crate::ipam;
use crate::plan::{is_main_default, plain_route};
use ipnet::IpNet;
use plexus_api::cni::{DefaultGw, Ipam, Network, NetworkBackend, Requests};
use plexus_api::pod::{self, DEFAULT_GW};
use plexus_types::{Family, IfName};
use std::net::IpAddr;

/// What runtimes call the first interface.
const FIRST: &str = "eth0";

/// Decides, and puts into the networks what follows: gateways that were asked for; the cluster's
/// own prefixes, which stay on the first interface.
pub(super) fn choose(
    pod: &PodFacts,
    all: &mut All,
    request: &[NetworkRequest],
    settings: &Settings,
) -> Result<DefaultGw, ResolveError> {
    let mut chosen: [Option<usize>; 2] = [None, None];
    if let Some(text) = pod.annotations.get(DEFAULT_GW) {
        let written = pod::default_gw(text).map_err(|problems| invalid("", problems))?;
        for (slot, family) in chosen.iter_mut().zip(Family::ALL) {
            let name = written.of(family);
            *slot = name.map(|name| position(all, name)).transpose()?;
        }
    }
    for (index, request) in (1..).zip(request) {
        let Some(gateways) = &request.selection.default_route else {
            continue;
        };
        for (slot, family) in chosen.iter_mut().zip(Family::ALL) {
            let mut of_family = gateways.iter().filter(|ip| Family::of(**ip) == family);
            if gateways.is_empty() || of_family.next().is_some() {
                if let Some(other) = slot.filter(|other| *other != index) {
                    let interface = name(all, other);
                    let taken = ResolveError::DefaultRouteTaken { family, interface };
                    return Err(taken.within(request, index));
                }
                *slot = Some(index);
            }
        }
        if let Some(network) = all.network_mut(index) {
            set_gateways(network, gateways).map_err(|error| error.within(request, index))?;
        }
    }
    for (slot, family) in chosen.iter().zip(Family::ALL) {
        if slot.is_some_and(|index| index > 0)
            && let Some(first) = all.network_mut(0)
        {
            stay(first, family, &settings.cluster_cidrs);
        }
    }
    let [v4, v6] = chosen.map(|index| index.map(|index| name(all, index)));
    Ok(DefaultGw { v4, v6 })
}

impl All {
    /// The first network of each reference.
    fn networks(&self) -> impl Iterator<Item = &Network> {
        self.references
            .iter()
            .filter_map(|one| one.networks.all().first())
    }

    fn network_mut(&mut self, reference: usize) -> Option<&mut Network> {
        self.references
            .get_mut(reference)?
            .networks
            .all_mut()
            .first_mut()
    }
}

/// Which network is meant: an interface, a reference, a network, in this order.
fn position(all: &All, text: &str) -> Result<usize, ResolveError> {
    let interface_fits = |(index, network): (usize, &Network)| match &network.interface {
        Some(interface) => interface.as_str() == text,
        None => index == 0 && text == FIRST,
    };
    let by_interface = all.networks().enumerate().position(interface_fits);
    let mut references = all.references.iter().map(|one| &one.reference);
    let by_reference = || {
        references.position(|reference| {
            reference.name == text
                || text.split_once('/') == Some((&reference.namespace, &reference.name))
        })
    };
    let by_name = || {
        all.networks()
            .position(|network| network.name.as_str() == text)
    };
    let found = by_interface.or_else(by_reference).or_else(by_name);
    found.ok_or_else(|| unknown(all, text))
}

/// A name that means just this one when the interfaces are made.
fn name(all: &All, index: usize) -> String {
    let interface = all.networks().nth(index);
    let interface = interface.and_then(|network| network.interface.as_ref());
    let interface = interface.map_or(FIRST, IfName::as_str);
    match all.references.get(index).map(|one| &one.networks) {
        Some(Networks::PerNic(_)) => format!("{interface}-0"),
        _ => interface.to_owned(),
    }
}

/// `default-route` with gateways: they replace the network's own.
fn set_gateways(network: &mut Network, gateways: &[IpAddr]) -> Result<(), ResolveError> {
    if gateways.is_empty() {
        return Ok(());
    }
    let routes = match &mut network.backend {
        NetworkBackend::Native(native) => native.ipam.as_mut().map(Ipam::routes_mut),
        NetworkBackend::Delegate(_) => return Err(ResolveError::GatewayOfPlugins),
    };
    let Some(routes) = routes else {
        return Err(ResolveError::DefaultRouteAlone);
    };
    for family in Family::ALL {
        let mut of_family = gateways.iter().filter(|ip| Family::of(**ip) == family);
        let Some(gateway) = of_family.next() else {
            continue;
        };
        if let Some(second) = of_family.next() {
            let gateways = [*gateway, *second];
            return Err(ResolveError::TwoGateways { family, gateways });
        }
        routes.retain(|route| !is_main_default(route, family));
        routes.push(plain_route(family.everything(), Some(*gateway)));
    }
    Ok(())
}

/// The first interface keeps the cluster's own prefixes, and answers whoever reached it.
fn stay(first: &mut Network, family: Family, cidrs: &[IpNet]) {
    let NetworkBackend::Native(native) = &mut first.backend else {
        return;
    };
    let Some(ipam) = native.ipam.as_mut().filter(|ipam| has(ipam, family)) else {
        return;
    };
    let routes = ipam.routes_mut();
    for cidr in cidrs
        .iter()
        .filter(|cidr| Family::of(cidr.network()) == family)
    {
        let route = plain_route(cidr.trunc(), None);
        if !routes.contains(&route) {
            routes.push(route);
        }
    }
    first.source_routing = true;
}

/// Whether it gives addresses of that family, as far as anybody knows before it is asked.
fn has(ipam: &Ipam, family: Family) -> bool {
    let of_family = |(subnet, _): &(IpNet, _)| Family::of(subnet.network()) == family;
    ipam.requests() == Requests::Passed || ipam::of(ipam).subnets().iter().any(of_family)
}

fn unknown(all: &All, text: &str) -> ResolveError {
    let each = (0..).zip(&all.references).map(|(index, one)| {
        let (interface, reference) = (name(all, index), &one.reference);
        match &*reference.namespace {
            "" => format!("{} ({interface})", reference.name),
            namespace => format!("{namespace}/{} ({interface})", reference.name),
        }
    });
    ResolveError::DefaultGw {
        text: text.to_owned(),
        known: each.collect(),
    }
}
