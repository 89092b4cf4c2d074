//! The network of a `Network` object.

use super::error::invalid;
use super::lookup::{Lookup, ResolvedNetwork, network_name, without_default_route};
use super::{NetworkObject, Objects};
use plexus_api::cni::{BlockIpam, Code, Error, Network, ObjectFacts, ProviderKind, RouteConf};
use plexus_api::objects::From;
use plexus_api::pod::NetworkSelection;

/// The phases that end by themselves.
const PASSING: [&str; 2] = ["Pending", "Initializing"];

impl Lookup<'_> {
    /// The network that an object describes, if the pod may use it.
    pub(super) fn of_object(
        &self,
        object: &NetworkObject,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, Error> {
        check_usable(object)?;
        self.check_allowed(object)?;
        check_addresses(object)?;
        let facts = ObjectFacts {
            uid: object.uid.clone(),
            vni: object.vni,
            blocks: self.objects.blocks(&object.uid),
            donated: self.objects.donated_parts(&object.uid),
            not_masq: self.settings.cluster_cidrs.clone(),
        };
        let name = name_of(object)?;
        let request = without_default_route(selection);
        let network = Network::from_spec(&name, &object.spec, &facts, &request)?;
        let uuid = object.spec.uuid.as_ref().unwrap_or(&object.uid);
        Ok(ResolvedNetwork {
            network,
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uuid: uuid.clone(),
            warnings: Vec::new(),
        })
    }

    fn check_allowed(&self, object: &NetworkObject) -> Result<(), Error> {
        let pod = &self.pod.namespace;
        let Some(allowed) = &object.spec.allowed_namespaces else {
            return Ok(());
        };
        let (fits, rule) = match allowed.from {
            From::All => (true, String::new()),
            From::Same => (*pod == object.namespace, "its own namespace".to_owned()),
            From::Selector => {
                let labels = self.objects.namespace(pod).unwrap_or_default();
                let wanted = allowed
                    .selector
                    .as_ref()
                    .map(|selector| &selector.match_labels);
                let fits = wanted.is_some_and(|wanted| {
                    wanted
                        .iter()
                        .all(|(key, value)| labels.get(key) == Some(value))
                });
                let each = wanted.into_iter().flatten();
                let each: Vec<String> = each.map(|(key, value)| format!("{key}={value}")).collect();
                (fits, format!("namespaces labelled {}", each.join(", ")))
            }
        };
        if fits {
            return Ok(());
        }
        Err(Error::new(
            Code::InvalidConfig,
            format!(
                "Network {}/{} is only for pods of {rule}, and this pod is in {pod}",
                object.namespace, object.name
            ),
            "use another network, or change spec.allowedNamespaces of this one",
        ))
    }
}

/// What a `Network` is called where CNI has one name: in pools, marks and files.
pub fn name_of(object: &NetworkObject) -> Result<plexus_types::NetworkName, Error> {
    network_name(&[&object.namespace, &object.name])
}

/// The subnets of a network, and what of them is this node's.
pub fn block_ipam(object: &NetworkObject, objects: &dyn Objects) -> Result<BlockIpam, Error> {
    check_usable(object)?;
    let spec = &object.spec;
    let problems = spec.problems();
    if !problems.0.is_empty() {
        let what = format!("Network {}/{}", object.namespace, object.name);
        return Err(invalid(&what, &problems));
    }
    let routes = spec.routes.iter().map(|route| RouteConf {
        dst: route.dst,
        gw: route.gw,
        mtu: None,
        advmss: None,
        priority: None,
        table: None,
        scope: None,
    });
    Ok(BlockIpam {
        uid: object.uid.clone(),
        subnets: spec.block_subnets(),
        blocks: objects.blocks(&object.uid),
        donated: objects.donated_parts(&object.uid),
        routes: routes.collect(),
    })
}

fn check_usable(object: &NetworkObject) -> Result<(), Error> {
    let Some(reason) = &object.unusable else {
        return Ok(());
    };
    let passing = PASSING.iter().any(|phase| reason.starts_with(phase));
    let (code, next) = match passing {
        true => (
            Code::TryAgainLater,
            "the kubelet tries again; the conditions in its status say what it waits for",
        ),
        false => (
            Code::Failed,
            "the conditions in its status say more; correct it, or use another network",
        ),
    };
    Err(Error::new(
        code,
        format!(
            "Network {}/{} cannot be used: {reason}",
            object.namespace, object.name
        ),
        next,
    ))
}

/// A link without addresses leads nowhere if it must be routed.
fn check_addresses(object: &NetworkObject) -> Result<(), Error> {
    let kind = object.spec.provider_kind();
    let needed = kind.is_some_and(ProviderKind::needs_addresses);
    if !object.spec.subnets.is_empty() || !needed {
        return Ok(());
    }
    let provider = object.spec.provider_name();
    let without = ProviderKind::names(|kind| !kind.needs_addresses()).join(", ");
    Err(Error::new(
        Code::InvalidConfig,
        format!(
            "Network {}/{} has no subnets: a pod on provider {provider} could not be reached",
            object.namespace, object.name
        ),
        format!("give it spec.subnets, or a provider that does without addresses ({without})"),
    ))
}
