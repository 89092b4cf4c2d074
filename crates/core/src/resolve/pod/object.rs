//! The network of a `Network` object.

use super::error::{ResolveError, invalid};
use super::lookup::{Lookup, Networks, ResolvedNetwork, network_name, without_default_route};
use super::{NetworkObject, Reference, is_of_fabric};
use crate::plan::plain_route;
use plexus_api::Problems;
use plexus_api::cni::{BlockIpam, Network, ObjectFacts, ParsedNetwork, ProviderKind};
use plexus_api::pod::NetworkSelection;

/// The phases that end by themselves.
const PASSING: [&str; 2] = ["Pending", "Initializing"];

impl Lookup<'_> {
    /// The network that an object describes, if the pod may use it.
    pub(super) fn of_object(
        &self,
        object: &NetworkObject,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, ResolveError> {
        self.check_isolated(&object.namespace, &object.name)?;
        check_usable(object)?;
        self.check_allowed(object)?;
        self.described(object, selection)
    }

    /// The network that an object describes, whoever may use it.
    pub(super) fn described(
        &self,
        object: &NetworkObject,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, ResolveError> {
        check_addresses(object)?;
        let facts = ObjectFacts {
            uid: object.uid.clone(),
            vni: object.vni,
            not_masq: self.settings.cluster_cidrs.clone(),
        };
        let request = without_default_route(selection);
        let parsed = object.parsed.get(|| parse(object)).as_ref();
        let network = match parsed.and_then(|parsed| parsed.with_request(&request)) {
            Some(mut network) => {
                network.set_object_facts(&object.spec, &facts);
                network
            }
            None => Network::from_spec(&name_of(object)?, &object.spec, &facts, &request)
                .map_err(ResolveError::Config)?,
        };
        let uuid = object.spec.uuid.as_ref().unwrap_or(&object.uid);
        let reference = Reference::of(&object.namespace, &object.name, uuid, &network);
        self.check_subnets(object, &network, &reference)?;
        Ok(ResolvedNetwork {
            reference,
            networks: Networks::One(network),
            warnings: Vec::new(),
        })
    }

    /// What the controller should have said of subnets in the nodes' own tables, wherever the object has them.
    fn check_subnets(
        &self,
        object: &NetworkObject,
        network: &Network,
        reference: &Reference,
    ) -> Result<(), ResolveError> {
        if !is_of_fabric(network) {
            return Ok(());
        }
        let mut subnets = reference.subnets.iter().map(|(subnet, _)| *subnet);
        let allowed = &self.settings.allowed_subnets;
        let (namespace, name) = (&object.namespace, &object.name);
        let refusal = allowed.refusal(namespace, name, subnets.clone());
        let taken = || {
            let taken = |net| Some((net, self.objects.taken_within(&net)?));
            let (net, what) = subnets.find_map(taken)?;
            Some(format!(
                "{} contains {what}: give it other addresses",
                net.trunc()
            ))
        };
        match refusal.or_else(taken) {
            None => Ok(()),
            Some(reason) => Err(ResolveError::Unusable {
                object: path(object),
                reason,
                passing: false,
            }),
        }
    }
}

/// What the object means, whoever asks. If no pod can use it so, whoever reads it with a request says why.
fn parse(object: &NetworkObject) -> Option<ParsedNetwork> {
    let facts = ObjectFacts {
        uid: object.uid.clone(),
        vni: object.vni,
        ..ObjectFacts::default()
    };
    ParsedNetwork::of_spec(&name_of(object).ok()?, &object.spec, &facts).ok()
}

/// What a `Network` is called where CNI has one name: in pools, marks and files.
pub fn name_of(object: &NetworkObject) -> Result<plexus_types::NetworkName, ResolveError> {
    match &*object.namespace {
        "" => network_name(&[&object.name]),
        namespace => network_name(&[namespace, &object.name]),
    }
}

/// The subnets of a network.
pub(super) fn block_ipam(object: &NetworkObject) -> Result<BlockIpam, ResolveError> {
    check_usable(object)?;
    let spec = &object.spec;
    let is_sound = object.parsed.get(|| parse(object)).is_some();
    let problems = match is_sound {
        true => Problems::default(),
        false => spec.problems(),
    };
    if !problems.0.is_empty() {
        return Err(invalid(&format!("Network {}", path(object)), problems));
    }
    let routes = spec.routes.iter();
    let routes = routes.map(|route| plain_route(route.dst, route.gw));
    Ok(BlockIpam {
        uid: object.uid.clone(),
        subnets: spec.block_subnets(),
        routes: routes.collect(),
        assigned: false,
    })
}

pub(super) fn path(object: &NetworkObject) -> String {
    format!("{}/{}", object.namespace, object.name)
}

fn check_usable(object: &NetworkObject) -> Result<(), ResolveError> {
    let Some(reason) = &object.unusable else {
        return Ok(());
    };
    let passing = PASSING.iter().any(|phase| reason.starts_with(phase));
    Err(ResolveError::Unusable {
        object: path(object),
        reason: reason.clone(),
        passing,
    })
}

/// A link without addresses leads nowhere if it must be routed.
fn check_addresses(object: &NetworkObject) -> Result<(), ResolveError> {
    let kind = object.spec.provider_kind();
    let needed = kind.is_some_and(ProviderKind::needs_addresses);
    if !object.spec.subnets.is_empty() || !needed {
        return Ok(());
    }
    Err(ResolveError::NoSubnets {
        object: path(object),
        provider: object.spec.provider_name().to_owned(),
    })
}
