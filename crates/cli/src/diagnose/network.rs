//! Why a Network is as it is.

use super::{Answer, Diagnosis, Reason, cluster, reference};
use crate::ipam;
use crate::snapshot::{Snapshot, condition, kept_spec, name, namespace, network_status, text, uid};
use crate::text::count;
use plexus_api::cni::ProviderKind;
use plexus_api::objects::Phase;
use serde_json::Value;

/// Pods that are named; the others are counted.
const MAX_NAMED: usize = 10;

/// Diagnoses a Network by what the snapshot has.
pub fn diagnose_network(snapshot: &Snapshot, network: &Value) -> Diagnosis {
    let subject = format!("Network {}/{}", namespace(network), name(network));
    let mut all = Vec::new();
    all.push(phase(snapshot, network));
    all.extend(spec(network));
    all.extend(nad(network));
    all.extend(conflict(network));
    if !snapshot.unknown.contains_key("blocks") {
        all.extend(addresses(snapshot, network));
    }
    for event in cluster::warnings(snapshot, network).into_iter().take(3) {
        let why = format!(
            "{}{}",
            text(event, "/message"),
            cluster::ago(event, snapshot.now)
        );
        let about = format!("event {}", text(event, "/reason"));
        all.push(Answer::waits(Reason::Event, about, why, ""));
    }
    Diagnosis::new(subject, all)
}

fn phase(snapshot: &Snapshot, network: &Value) -> Answer {
    let status = network_status(network);
    let ready = condition(network, "Ready");
    let message = ready.map_or("", |ready| text(ready, "/message"));
    if network.pointer("/metadata/deletionTimestamp").is_some() {
        let in_use = condition(network, "InUse").filter(|c| text(c, "/status") == "True");
        let (why, next) = match in_use {
            Some(in_use) => (
                format!("deleted, but still in use: {}", text(in_use, "/message")),
                "delete those pods; then it goes by itself",
            ),
            None => (
                "deleted; it goes when the controller has seen that nobody uses it".to_owned(),
                "",
            ),
        };
        let next = match next {
            "" => cluster::controller(snapshot),
            next => next.to_owned(),
        };
        return Answer::waits(Reason::NetworkTerminating, "phase Terminating", why, next);
    }
    match status.phase {
        None | Some(Phase::Initializing) => Answer::waits(
            Reason::NetworkInitializing,
            "phase Initializing",
            "the controller has not looked at it yet",
            cluster::controller(snapshot),
        ),
        Some(Phase::Active) => Answer::good(
            Reason::NetworkActive,
            "phase Active",
            used_by(snapshot, network),
        ),
        Some(Phase::Failed) => Answer::wrong(
            Reason::NetworkFailed,
            format!("phase Failed, {}", reference::reason(network)),
            message,
            failed_next(network),
        ),
        Some(Phase::Pending) if reference::reason(network) == "WaitingForProvider" => {
            Answer::waits(
                Reason::ProviderMissing,
                "phase Pending",
                message,
                reference::provider_next(network),
            )
        }
        Some(Phase::Pending) => Answer::waits(
            Reason::NetworkPending,
            format!("phase Pending, {}", reference::reason(network)),
            message,
            match reference::reason(network) {
                "SubnetConflict" => {
                    "take the subnet out and write another one under another name, or remove what it overlaps with"
                }
                "NoVni" => "delete overlay networks that nobody uses",
                _ => "the conditions in its status say more: plexus describe network",
            },
        ),
        Some(Phase::Terminating) => Answer::waits(
            Reason::NetworkTerminating,
            "phase Terminating",
            message,
            cluster::controller(snapshot),
        ),
    }
}

fn failed_next(network: &Value) -> &'static str {
    match reference::reason(network) {
        "UuidConflict" => "give it another spec.uuid, or none, in a new object: it is immutable",
        "VniConflict" => "delete it and create it again: it gets another number",
        _ => "correct the spec; plexus validate shows every problem with its line",
    }
}

fn used_by(snapshot: &Snapshot, network: &Value) -> String {
    let identities = [uid(network), text(network, "/spec/uuid").to_owned()];
    let uses = |record: &&Value| {
        let attachments = crate::snapshot::list(record, "/status/attachments").iter();
        let mut uuids = attachments.map(|one| text(one, "/network/uuid"));
        uuids.any(|uuid| !uuid.is_empty() && identities.iter().any(|own| own == uuid))
    };
    let users = snapshot.records.iter().filter(uses);
    let mut users: Vec<String> = users
        .map(|record| format!("{}/{}", namespace(record), text(record, "/spec/pod/name")))
        .collect();
    users.sort();
    let named = users
        .iter()
        .take(MAX_NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(why) = snapshot.hidden("attachments", None) {
        return match users.len() {
            0 => format!("pods can use it; which do is not known: {why}"),
            count => format!("pods can use it; {count} do that are known: {named}; {why}"),
        };
    }
    match users.len() {
        0 => "pods can use it; none does".to_owned(),
        1 => format!("pods can use it; {named} does"),
        count if count > MAX_NAMED => {
            format!(
                "{count} pods use it: {named} and {} more",
                count - MAX_NAMED
            )
        }
        count => format!("{count} pods use it: {named}"),
    }
}

/// What the spec itself says, where that is a reason.
fn spec(network: &Value) -> Option<Answer> {
    let spec = match kept_spec(network) {
        Ok(spec) => spec,
        Err(error) => {
            return Some(Answer::wrong(
                Reason::NetworkFailed,
                "spec",
                format!("cannot be read: {error}"),
                "correct it; is this program older than the cluster's definitions?",
            ));
        }
    };
    if spec.subnets.is_empty()
        && spec
            .provider_kind()
            .is_some_and(ProviderKind::needs_addresses)
    {
        let provider = spec.provider_name();
        let without = ProviderKind::names(|kind| !kind.needs_addresses()).join(", ");
        return Some(Answer::wrong(
            Reason::NoSubnets,
            "spec.subnets",
            format!(
                "is empty: a pod on provider {provider} could not be reached, and does not start"
            ),
            format!("give it subnets, or a provider that does without addresses ({without})"),
        ));
    }
    None
}

fn nad(network: &Value) -> Option<Answer> {
    let follows = condition(network, "FollowsNad")?;
    (text(follows, "/status") == "False" && text(follows, "/reason") != "NoNad").then(|| {
        Answer::wrong(
            Reason::NadDiffers,
            "its NetworkAttachmentDefinition",
            text(follows, "/message"),
            "what is in use stays as it is until no pod uses it",
        )
    })
}

/// A conflict that does not keep it from being active.
fn conflict(network: &Value) -> Option<Answer> {
    let conflict = condition(network, "SubnetConflict")?;
    let active = network_status(network).phase == Some(Phase::Active);
    (text(conflict, "/status") == "True" && active).then(|| {
        Answer::waits(
            Reason::SubnetConflict,
            "subnets",
            text(conflict, "/message"),
            "no two routed networks can have the same addresses: remove one of them",
        )
    })
}

fn addresses(snapshot: &Snapshot, network: &Value) -> Vec<Answer> {
    let Ok(fullness) = ipam::fullness(network, snapshot) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let next = "delete pods, or add a subnet to spec.subnets";
    for (family, share) in fullness.families() {
        let about = format!("{family} addresses");
        if share.capacity > 0 && share.used >= share.capacity {
            let all_of_them = count(share.capacity);
            let why = format!("all {all_of_them} are in use: no further pod can start on it");
            all.push(Answer::wrong(Reason::NoAddresses, about, why, next));
        } else if share.capacity > 0 && fullness.all_blocks_are_owned(family) {
            let why = format!(
                "{} are in use, but every block has an owner: a node without room asks the others for \
                 theirs",
                ipam::of(share)
            );
            all.push(Answer::waits(Reason::NoAddresses, about, why, next));
        }
    }
    let wanted = uid(network);
    let asking = snapshot
        .requests
        .iter()
        .filter(|request| text(request, "/spec/network/uid") == wanted);
    let asking: Vec<&str> = asking.map(|request| text(request, "/spec/node")).collect();
    if !asking.is_empty() {
        let why = format!("{} asks other nodes for some", asking.join(", "));
        let next = "an owner that has room gives a part of its block; if none does, add a subnet";
        all.push(Answer::waits(Reason::Asking, "addresses", why, next));
    }
    all
}
