//! One reference of a pod: which network it names, and why that cannot be had.

use super::{Answer, Because, cluster};
use crate::ipam;
use crate::world::{World, condition, find, name, namespace, network_spec, network_status, text};
use plexus_api::cni::{Error, How, Network, NetworkConfigKind, uncommon_plugins};
use plexus_api::later;
use plexus_api::nad::Contrail;
use plexus_api::objects::Phase;
use plexus_core::resolve::{Examined, Named};
use plexus_types::Family;
use serde_json::Value;

/// `network team-a/blue (number 1, annotation …)`
pub(super) fn about(examined: &Examined) -> String {
    format!(
        "{} (number {}, annotation {})",
        examined.target, examined.index, examined.source
    )
}

/// Why a reference cannot be had.
pub(super) fn missing(world: &World, examined: &Examined, error: &Error) -> Answer {
    let about = about(examined);
    let kind = match &examined.target {
        Named::Nad(..) => "nads",
        Named::Network(..) | Named::FqName(..) => "networks",
    };
    if let Some(unseen) = world.unknown.get(kind) {
        return super::not_seen(about, unseen);
    }
    match &examined.target {
        Named::Nad(in_namespace, named) => match find(&world.nads, in_namespace, named) {
            Some(nad) => of_nad(world, nad, about, error),
            None => no_nad(world, named, about, error),
        },
        Named::Network(in_namespace, named) | Named::FqName(in_namespace, named) => {
            match find(&world.networks, in_namespace, named) {
                Some(network) => of_network(world, network, about, error),
                None => Answer::wrong(Because::NetworkMissing, about, plain(error), &error.details),
            }
        }
    }
}

/// What is wrong with a network that can be resolved, if it is.
pub(super) fn found(
    world: &World,
    examined: &Examined,
    network: &Network,
    node: &str,
) -> Option<Answer> {
    let about = about(examined);
    if let How::Delegate(chain) = &network.how {
        let plugins = uncommon_plugins(chain);
        if plugins.is_empty() {
            return None;
        }
        let plugins = plugins.join(", ");
        let node = if node.is_empty() { "its node" } else { node };
        return Some(Answer::waits(
            Because::UnknownPlugin,
            about,
            format!(
                "is made by executing {plugins}, which comes neither with Plexus nor with the reference plugins"
            ),
            format!(
                "{node} needs it in its plugin directory (/opt/cni/bin, or where --delegate-bin-dir says)"
            ),
        ));
    }
    if node.is_empty() {
        return None;
    }
    let object = object_of(world, examined)?;
    addresses(world, object, &about, node)
}

/// The Network behind a reference.
pub(super) fn object_of<'w>(world: &'w World, examined: &Examined) -> Option<&'w Value> {
    match &examined.target {
        Named::Network(in_namespace, named) => find(&world.networks, in_namespace, named),
        Named::FqName(project, named) => {
            let plain = find(&world.networks, project, named);
            let stripped = project.strip_prefix("k8s-");
            plain.or_else(|| find(&world.networks, stripped?, named))
        }
        Named::Nad(in_namespace, named) => {
            let nad = find(&world.nads, in_namespace, named)?;
            of_its_name(world, nad)
        }
    }
}

/// The Network that a NAD stands for, if it does and that is there.
pub(super) fn of_its_name<'w>(world: &'w World, nad: &Value) -> Option<&'w Value> {
    let config = nad.pointer("/spec/config").and_then(Value::as_str);
    let named = config
        .is_none_or(|config| matches!(NetworkConfigKind::of(config), NetworkConfigKind::Named(_)));
    if !named {
        return None;
    }
    let annotations = crate::world::texts(nad, "/metadata/annotations");
    let fq_name = Contrail::read(&annotations).ok()?.network;
    match fq_name {
        Some(fq) => find(&world.networks, &fq.project, &fq.name),
        None => find(&world.networks, namespace(nad), name(nad)),
    }
}

/// Whether the node can give an address of each family that the network has.
fn addresses(world: &World, network: &Value, about: &str, node: &str) -> Option<Answer> {
    if world.unknown.contains_key("blocks") {
        return None;
    }
    let fullness = ipam::fullness(network, world).ok()?;
    let full = Family::ALL
        .into_iter()
        .find(|family| fullness.has_room(node, *family) == Some(false))?;
    let (used, capacity) = fullness.total();
    let elsewhere = fullness.elsewhere(node, full);
    if elsewhere.is_empty() {
        return Some(Answer::wrong(
            Because::NoAddresses,
            about,
            format!(
                "no {full} address is free: {used} of {capacity} are in use, on all nodes together"
            ),
            "delete pods that no longer need theirs, or give the network another subnet (spec.subnets)",
        ));
    }
    Some(Answer::waits(
        Because::NoAddresses,
        about,
        format!(
            "no {full} address is free on node {node} and no block is left to claim; {} may give some of theirs",
            elsewhere.join(", ")
        ),
        "it asks them by itself; if that takes long, delete pods or give the network another subnet",
    ))
}

fn no_nad(world: &World, named: &str, about: String, error: &Error) -> Answer {
    let multi_nic = world
        .waiting
        .iter()
        .find(|object| text(object, "/kind") == "MultiNicNetwork" && name(object) == named);
    match multi_nic.and_then(later::waits) {
        Some(text) => Answer::waits(
            Because::Later,
            about,
            format!("there is a MultiNicNetwork of that name; {text}"),
            "",
        ),
        None => Answer::wrong(Because::NadMissing, about, plain(error), &error.details),
    }
}

fn of_nad(world: &World, nad: &Value, about: String, error: &Error) -> Answer {
    let config = nad.pointer("/spec/config").and_then(Value::as_str);
    let correct = "correct the NetworkAttachmentDefinition; plexus validate shows the line";
    match config.map(NetworkConfigKind::of) {
        Some(NetworkConfigKind::Unreadable(why)) => {
            Answer::wrong(Because::NadUnreadable, about, why, correct)
        }
        Some(NetworkConfigKind::Invalid(_, why)) => {
            Answer::wrong(Because::NadInvalid, about, why, correct)
        }
        Some(NetworkConfigKind::Waits(_, text)) => Answer::waits(Because::Later, about, text, ""),
        Some(NetworkConfigKind::Network(..)) => {
            Answer::wrong(Because::BadWish, about, plain(error), &error.details)
        }
        None | Some(NetworkConfigKind::Named(_)) => match of_its_name(world, nad) {
            Some(network) => of_network(world, network, about, error),
            None => Answer::wrong(
                Because::NadWithoutNetwork,
                about,
                plain(error),
                format!("{}; {}", error.details, cluster::controller(world)),
            ),
        },
    }
}

/// By the state that the Network is in.
fn of_network(world: &World, network: &Value, about: String, error: &Error) -> Answer {
    let status = network_status(network);
    let going = network.pointer("/metadata/deletionTimestamp").is_some();
    let why = plain(error);
    let next = error.details.as_str();
    if going || status.phase == Some(Phase::Terminating) {
        return Answer::wrong(
            Because::NetworkTerminating,
            about,
            why,
            "name another network, or wait until it is gone and create it again",
        );
    }
    if let Err(problem) = network_spec(network) {
        let why = format!("its spec cannot be read: {problem}");
        return Answer::wrong(Because::NetworkFailed, about, why, "correct the Network");
    }
    match status.phase {
        None | Some(Phase::Initializing) => Answer::waits(
            Because::NetworkInitializing,
            about,
            "the controller has not looked at it yet",
            cluster::controller(world),
        ),
        Some(Phase::Pending) if reason(network) == "WaitingForProvider" => {
            Answer::waits(Because::ProviderMissing, about, why, provider_next(network))
        }
        Some(Phase::Pending) => Answer::waits(
            Because::NetworkPending,
            about,
            why,
            format!(
                "plexus explain network -n {} {}",
                namespace(network),
                name(network)
            ),
        ),
        Some(Phase::Failed) => Answer::wrong(
            Because::NetworkFailed,
            about,
            why,
            "correct the Network; the pod is tried again by itself",
        ),
        Some(Phase::Active | Phase::Terminating) if why.contains("is only for pods of") => {
            Answer::wrong(Because::NotAllowed, about, why, next)
        }
        Some(Phase::Active | Phase::Terminating) => {
            Answer::wrong(Because::BadWish, about, why, next)
        }
    }
}

/// The reason of the condition Ready.
pub(super) fn reason(network: &Value) -> &str {
    condition(network, "Ready").map_or("", |ready| text(ready, "/reason"))
}

/// What to do about a provider that is not there.
pub(super) fn provider_next(network: &Value) -> String {
    format!(
        "start the provider {}, or write one of overlay, routed, bridge, macvlan, delegate as \
         spec.provider of a new Network",
        text(network, "/spec/provider")
    )
}

/// The error without the reference, which is said beside it.
fn plain(error: &Error) -> String {
    match error.msg.split_once("): ") {
        Some((before, rest)) if before.starts_with("network ") => rest.to_owned(),
        _ => error.msg.clone(),
    }
}
