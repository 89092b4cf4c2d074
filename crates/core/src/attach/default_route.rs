//! Who has the default route, once it is known who brings a gateway.

use super::DefaultRouteError;
use crate::attachment::{Assigned, DefaultRoute, NativeSpec};
use crate::plan::{effective, gateway, is_main_default};
use plexus_api::cni::{DefaultGw, Outcome, RouteConf};
use plexus_types::{Family, IfName, NetworkName};

/// One attachment of the call, with what it got.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its network.
    pub network: &'a NetworkName,
    /// Its name in the pod.
    pub ifname: &'a IfName,
    /// What it got.
    pub provided: Provided<'a>,
}

/// What an attachment got.
#[derive(Debug, Clone, Copy)]
pub enum Provided<'a> {
    /// From our IPAM.
    Native(&'a NativeSpec, &'a Assigned),
    /// From executed plugins.
    Plugins(&'a Outcome),
    /// Plugins that have not been executed yet: nobody knows. Named, it has the default route;
    /// otherwise those before it decide.
    Unknown,
}

/// Decides for each candidate, in order, which default routes are on it.
///
/// Without a `choice` (plugin mode) everything stays as configured. With one (standalone mode) a
/// family's default route is on the candidate that is named for it, by interface or by network;
/// else, and if the one named has no address of that family though it has of the other, on the
/// first that brings a gateway.
///
/// Fails if a name fits nobody or somebody without a gateway, or if executed plugins have set a
/// default route that belongs elsewhere: it is not ours to remove.
pub fn choose_default(
    candidates: &[Candidate<'_>],
    choice: Option<&DefaultGw>,
) -> Result<Vec<DefaultRoute>, DefaultRouteError> {
    let Some(choice) = choice else {
        return Ok(vec![DefaultRoute::AsConfigured; candidates.len()]);
    };
    let v4 = choose(candidates, choice, Family::V4)?;
    let v6 = choose(candidates, choice, Family::V6)?;
    let each = (0..candidates.len()).map(|index| DefaultRoute::Only {
        v4: v4 == Some(index),
        v6: v6 == Some(index),
    });
    Ok(each.collect())
}

fn choose(
    candidates: &[Candidate<'_>],
    choice: &DefaultGw,
    family: Family,
) -> Result<Option<usize>, DefaultRouteError> {
    let first = candidates
        .iter()
        .position(|candidate| candidate.has_gateway(family));
    let chosen = match choice.of(family) {
        None => first,
        Some(name) => named(candidates, choice, name, family)?.or(first),
    };
    for (index, candidate) in candidates.iter().enumerate() {
        if let (Some(chosen), true) = (chosen, candidate.has_set_default(family))
            && chosen != index
            && let Some(winner) = candidates.get(chosen)
        {
            let (network, ifname) = candidate.names();
            return Err(DefaultRouteError::AlreadySet {
                family,
                network,
                ifname,
                winner: winner.names(),
            });
        }
    }
    Ok(chosen)
}

/// The candidate of that name; none if it has no address of the family but of the other, and the
/// same name is given for both.
fn named(
    candidates: &[Candidate<'_>],
    choice: &DefaultGw,
    name: &str,
    family: Family,
) -> Result<Option<usize>, DefaultRouteError> {
    let by_ifname = candidates
        .iter()
        .position(|candidate| candidate.ifname.as_str() == name);
    let of_network = |candidate: &Candidate<'_>| candidate.network.as_str() == name;
    let index = by_ifname
        .or_else(|| {
            candidates
                .iter()
                .position(|c| of_network(c) && c.has_gateway(family))
        })
        .or_else(|| candidates.iter().position(of_network))
        .ok_or_else(|| DefaultRouteError::Unknown {
            name: name.to_owned(),
            known: candidates.iter().map(Candidate::names).collect(),
        })?;
    let Some(candidate) = candidates.get(index) else {
        return Ok(None);
    };
    if candidate.has_gateway(family) || matches!(candidate.provided, Provided::Unknown) {
        return Ok(Some(index));
    }
    let for_both = Family::ALL
        .iter()
        .all(|family| choice.of(*family) == Some(name));
    let has = |family| candidate.has_address(family);
    if for_both && !has(family) && Family::ALL.into_iter().any(has) {
        return Ok(None);
    }
    let (network, ifname) = candidate.names();
    Err(DefaultRouteError::NoGateway {
        name: name.to_owned(),
        family,
        network,
        ifname,
    })
}

impl Candidate<'_> {
    fn names(&self) -> (NetworkName, IfName) {
        (self.network.clone(), self.ifname.clone())
    }

    /// Whether a default route of that family could be, or is, on it.
    fn has_gateway(&self, family: Family) -> bool {
        match self.provided {
            Provided::Native(spec, assigned) => {
                let now = effective(&spec.native, assigned, DefaultRoute::AsConfigured);
                gateway(&now, family).is_some() || any_default(&now.routes, family)
            }
            // Nobody adds a route to an interface that plugins made: theirs is there or is not.
            Provided::Plugins(outcome) => any_default(&outcome.routes, family),
            Provided::Unknown => false,
        }
    }

    /// Whether plugins that we executed have set one.
    fn has_set_default(&self, family: Family) -> bool {
        match self.provided {
            Provided::Native(..) | Provided::Unknown => false,
            Provided::Plugins(outcome) => any_default(&outcome.routes, family),
        }
    }

    fn has_address(&self, family: Family) -> bool {
        match self.provided {
            Provided::Native(_, assigned) => assigned.has(family),
            Provided::Plugins(outcome) => {
                let mut ips = outcome.ips.iter();
                ips.any(|ip| Family::of(ip.address.addr()) == family)
            }
            Provided::Unknown => false,
        }
    }
}

fn any_default(routes: &[RouteConf], family: Family) -> bool {
    routes.iter().any(|route| is_main_default(route, family))
}
