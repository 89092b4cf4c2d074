//! What there is to say of a MultiNicNetwork: what its controller said, and what warnings say.

use super::{Answer, Diagnosis, Reason, cluster};
use crate::snapshot::{Snapshot, condition, name, text};
use serde_json::Value;

/// Why a MultiNicNetwork is as it is.
pub fn diagnose_multi_nic(snapshot: &Snapshot, network: &Value) -> Diagnosis {
    let mut all = vec![state(snapshot, network)];
    for event in cluster::warnings(snapshot, network).into_iter().take(3) {
        let ago = cluster::ago(event, snapshot.now);
        let why = format!("{}{ago}", text(event, "/message"));
        let about = format!("event {}", text(event, "/reason"));
        all.push(Answer::waits(Reason::Event, about, why, ""));
    }
    Diagnosis::new(format!("MultiNicNetwork {}", name(network)), all)
}

fn state(snapshot: &Snapshot, network: &Value) -> Answer {
    let Some(ready) = condition(network, "Ready") else {
        let why = "the controller has not looked at it yet";
        let next = cluster::controller(snapshot);
        return Answer::waits(Reason::NetworkInitializing, "", why, next);
    };
    let why = text(ready, "/message").to_owned();
    let next = "correct it, or the NICs: kubectl get hostinterfaces shows those that are known";
    match (
        text(ready, "/status"),
        text(network, "/status/configStatus"),
    ) {
        ("True", _) => Answer::good(
            Reason::NetworkActive,
            "",
            "each node has its blocks: pods can use it where its NetworkAttachmentDefinitions are",
        ),
        (_, "Failed") => Answer::wrong(Reason::NetworkFailed, "", why, next),
        _ => Answer::waits(Reason::NetworkPending, "", why, next),
    }
}
