//! One reference of a pod: which network it names, and why that cannot be had.

use super::{Answer, Reason, cluster};
use crate::ipam;
use crate::snapshot::{
    NodeView, Snapshot, condition, find, kept_spec, nad_object, name, namespace, network_status,
    text,
};
use plexus_api::cni::{
    Executable, Network, NetworkBackend, NetworkConfigKind, ProviderKind, uncommon_plugins,
};
use plexus_api::objects::Phase;
use plexus_core::refusal::Refusal as _;
use plexus_core::resolve::{Examined, Named, NetworkObject, ResolveError, by_fq_name, nad_network};
use plexus_types::{Family, chain};
use serde_json::Value;

/// `network team-a/blue (number 1, annotation …)`
pub(super) fn about(examined: &Examined) -> String {
    format!(
        "{} (number {}, annotation {})",
        examined.target, examined.index, examined.source
    )
}

/// Why a reference of a pod in that namespace cannot be had.
pub(super) fn missing(
    snapshot: &Snapshot,
    from: &str,
    examined: &Examined,
    error: &ResolveError,
) -> Answer {
    let about = about(examined);
    let (list, in_namespace) = match &examined.target {
        Named::Nad(in_namespace, _) => ("nads", Some(in_namespace)),
        Named::Network(in_namespace, _) => ("networks", Some(in_namespace)),
        Named::FqName(..) => ("networks", None),
    };
    let is_found = object_of(snapshot, examined).is_some();
    let hidden = snapshot.hidden(list, in_namespace.map(String::as_str));
    if let Some(unseen) = hidden.filter(|_| !is_found) {
        return super::not_seen(about, unseen);
    }
    if let ResolveError::MultiNic { .. } = error.innermost() {
        return match error.is_pending() {
            true => Answer::waits(Reason::NetworkPending, about, plain(error), error.remedy()),
            false => Answer::wrong(Reason::BadWish, about, plain(error), error.remedy()),
        };
    }
    match &examined.target {
        Named::Nad(in_namespace, named) => match find(&snapshot.nads, in_namespace, named) {
            Some(nad) => of_nad(snapshot, nad, from, about, error),
            None => no_nad(snapshot, named, about, error),
        },
        Named::Network(..) | Named::FqName(..) => match object_of(snapshot, examined) {
            Some(network) => of_network(snapshot, network, from, about, error),
            None => Answer::wrong(Reason::NetworkMissing, about, plain(error), error.remedy()),
        },
    }
}

/// What is wrong with a network that can be resolved, if it is.
pub(super) fn found(
    snapshot: &Snapshot,
    examined: &Examined,
    network: &Network,
    node: &str,
) -> Option<Answer> {
    let about = about(examined);
    let uncommon = network.backend.executed().map(|chain| {
        let what = match chain.executable {
            Executable::Type => "is made",
            Executable::IpamType => "gets its addresses",
        };
        (what, uncommon_plugins(chain).join(", "))
    });
    if let Some((what, plugins)) = uncommon.filter(|(_, plugins)| !plugins.is_empty()) {
        let node = if node.is_empty() { "its node" } else { node };
        return Some(Answer::waits(
            Reason::UnknownPlugin,
            about,
            format!(
                "{what} by executing {plugins}, which comes neither with Plexus nor with the reference plugins"
            ),
            format!(
                "{node} needs it in its plugin directory (/opt/cni/bin, or where --delegate-bin-dir says)"
            ),
        ));
    }
    if node.is_empty() || matches!(network.backend, NetworkBackend::Delegate(_)) {
        return None;
    }
    let object = object_of(snapshot, examined)?;
    addresses(snapshot, object, &about, node)
}

/// The Network behind a reference.
pub(super) fn object_of<'w>(snapshot: &'w Snapshot, examined: &Examined) -> Option<&'w Value> {
    match &examined.target {
        Named::Network(in_namespace, named) => find(&snapshot.networks, in_namespace, named),
        Named::FqName(fq_name) => {
            let settings = snapshot.settings(Vec::new());
            let node = NodeView::from(snapshot, "");
            let found = by_fq_name(fq_name, &examined.home, &settings, &node);
            as_written(snapshot, &*found.ok()?)
        }
        Named::Nad(in_namespace, named) => {
            let nad = find(&snapshot.nads, in_namespace, named)?;
            of_its_name(snapshot, nad).ok().flatten()
        }
    }
}

/// The Network that a NAD stands for, if it does; or why that is not there.
pub(super) fn of_its_name<'w>(
    snapshot: &'w Snapshot,
    nad: &Value,
) -> Result<Option<&'w Value>, ResolveError> {
    let (settings, seen) = (snapshot.settings(Vec::new()), NodeView::from(snapshot, ""));
    let found = nad_network(&nad_object(nad), &settings, &seen)?;
    Ok(found.and_then(|found| as_written(snapshot, &found)))
}

fn as_written<'w>(snapshot: &'w Snapshot, object: &NetworkObject) -> Option<&'w Value> {
    find(&snapshot.networks, &object.namespace, &object.name)
}

/// Whether the node can give an address of each family that the network has.
fn addresses(snapshot: &Snapshot, network: &Value, about: &str, node: &str) -> Option<Answer> {
    if snapshot.unknown.contains_key("blocks") {
        return None;
    }
    let fullness = ipam::fullness(network, snapshot).ok()?;
    let full = Family::ALL
        .into_iter()
        .find(|family| fullness.has_room(node, *family) == Some(false))?;
    let mut families = fullness.families().into_iter();
    let share = families.find_map(|(family, share)| (family == full).then_some(share))?;
    let elsewhere = fullness.elsewhere(node, full);
    if elsewhere.is_empty() {
        return Some(Answer::wrong(
            Reason::NoAddresses,
            about,
            format!(
                "no {full} address is free: {} are in use, on all nodes together",
                ipam::of(share)
            ),
            "delete pods that no longer need theirs, or give the network another subnet (spec.subnets)",
        ));
    }
    Some(Answer::waits(
        Reason::NoAddresses,
        about,
        format!(
            "no {full} address is free on node {node} and no block is left to claim; {} may give some of theirs",
            elsewhere.join(", ")
        ),
        "it asks them by itself; if that takes long, delete pods or give the network another subnet",
    ))
}

fn no_nad(snapshot: &Snapshot, named: &str, about: String, error: &ResolveError) -> Answer {
    let mut multi_nics = snapshot.multi_nics.iter();
    match multi_nics.any(|object| name(object) == named) {
        true => Answer::waits(
            Reason::NadMissing,
            about,
            "there is a MultiNicNetwork of that name, but no NetworkAttachmentDefinition of it in this namespace",
            "the controller makes one in each of its spec.namespaces: is this one of them?",
        ),
        false => Answer::wrong(Reason::NadMissing, about, plain(error), error.remedy()),
    }
}

fn of_nad(
    snapshot: &Snapshot,
    nad: &Value,
    from: &str,
    about: String,
    error: &ResolveError,
) -> Answer {
    let config = nad.pointer("/spec/config").and_then(Value::as_str);
    let correct = "correct the NetworkAttachmentDefinition; plexus validate shows the line";
    match config.map(NetworkConfigKind::of) {
        Some(NetworkConfigKind::Unreadable(why)) => {
            Answer::wrong(Reason::NadUnreadable, about, why, correct)
        }
        Some(NetworkConfigKind::Invalid(_, why)) => {
            Answer::wrong(Reason::NadInvalid, about, why, correct)
        }
        Some(NetworkConfigKind::Waits(_, text)) => Answer::waits(Reason::Later, about, text, ""),
        Some(NetworkConfigKind::Network(..) | NetworkConfigKind::MultiNic(_)) => {
            Answer::wrong(Reason::BadWish, about, plain(error), error.remedy())
        }
        None | Some(NetworkConfigKind::Named(_)) => {
            match (
                of_its_name(snapshot, nad),
                snapshot.hidden("networks", None),
            ) {
                (Ok(Some(network)), _) => of_network(snapshot, network, from, about, error),
                (_, Some(unseen)) => super::not_seen(about, unseen),
                (_, None) => Answer::wrong(
                    Reason::NadWithoutNetwork,
                    about,
                    plain(error),
                    format!("{}; {}", error.remedy(), cluster::controller(snapshot)),
                ),
            }
        }
    }
}

/// By the state that the Network is in.
fn of_network(
    snapshot: &Snapshot,
    network: &Value,
    from: &str,
    about: String,
    error: &ResolveError,
) -> Answer {
    let status = network_status(network);
    let going = network.pointer("/metadata/deletionTimestamp").is_some();
    let why = plain(error);
    let next = error.remedy();
    if going || status.phase == Some(Phase::Terminating) {
        return Answer::wrong(
            Reason::NetworkTerminating,
            about,
            why,
            "name another network, or wait until it is gone and create it again",
        );
    }
    if let Err(problem) = kept_spec(network) {
        let why = format!("its spec cannot be read: {problem}");
        return Answer::wrong(Reason::NetworkFailed, about, why, "correct the Network");
    }
    match status.phase {
        None | Some(Phase::Initializing) => Answer::waits(
            Reason::NetworkInitializing,
            about,
            "the controller has not looked at it yet",
            cluster::controller(snapshot),
        ),
        Some(Phase::Pending) if reason(network) == "WaitingForProvider" => {
            Answer::waits(Reason::ProviderMissing, about, why, provider_next(network))
        }
        Some(Phase::Pending) => Answer::waits(
            Reason::NetworkPending,
            about,
            why,
            format!(
                "plexus diagnose network -n {} {}",
                namespace(network),
                name(network)
            ),
        ),
        Some(Phase::Failed) => Answer::wrong(
            Reason::NetworkFailed,
            about,
            why,
            "correct the Network; the pod is tried again by itself",
        ),
        Some(Phase::Active | Phase::Terminating)
            if matches!(error.innermost(), ResolveError::NotAllowed { .. }) =>
        {
            // Which labels the pod's namespace has decides, and they may be hidden from us.
            let selects = text(network, "/spec/allowedNamespaces/from") == "Selector";
            match snapshot.hidden("namespaces", Some(from)) {
                Some(unseen) if selects => super::not_seen(about, unseen),
                _ => Answer::wrong(Reason::NotAllowed, about, why, next),
            }
        }
        Some(Phase::Active | Phase::Terminating) => {
            Answer::wrong(Reason::BadWish, about, why, next)
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
        "start the provider {}, or write one of {}, delegate as spec.provider of a new Network",
        text(network, "/spec/provider"),
        ProviderKind::names(|_| true).join(", ")
    )
}

/// The error without the reference, which the answer names already.
fn plain(error: &ResolveError) -> String {
    match error {
        ResolveError::Reference { source, .. } => chain(source),
        error => chain(error),
    }
}
