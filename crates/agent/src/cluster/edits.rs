//! Changes that do nothing to pods that run, and must say so.

use super::cached::CachedPod;
use super::report::{PodName, Subject};
use super::shared::Shared;
use plexus_core::resolve::NadObject;

const MOST_PODS: usize = 20;

/// A pod's annotations were edited while it has its interfaces.
pub(super) fn pod(shared: &Shared, before: &CachedPod, after: &CachedPod) {
    let same_pod = before.meta.api_uid == after.meta.api_uid;
    let (old, new) = (
        &before.meta.facts.annotations,
        &after.meta.facts.annotations,
    );
    if !same_pod || old == new || after.meta.host_network {
        return;
    }
    let cni_uid = after.config_hash.as_ref().unwrap_or(&after.meta.api_uid);
    if !shared.records.is_attached(cni_uid) {
        return;
    }
    let mut keys: Vec<&str> = old.keys().chain(new.keys()).map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.retain(|key| old.get(*key) != new.get(*key));
    let pod = PodName {
        namespace: after.meta.facts.namespace.clone(),
        name: after.meta.facts.name.clone(),
        uid: cni_uid.clone(),
        container: false,
    };
    let text = format!(
        "{} of this running pod was edited: its interfaces stay as they are; delete the pod, so that it is made anew with the new networks",
        keys.join(", ")
    );
    tracing::info!(pod = format!("{}/{}", pod.namespace, pod.name), "{text}");
    shared
        .events
        .push(Subject::pod(&pod), "NetworkChangedIgnored", &text);
}

/// A NAD was edited (`after`) or deleted while pods of this node use it.
pub(super) fn nad(shared: &Shared, before: &NadObject, after: Option<&NadObject>) {
    let same = after.is_some_and(|after| {
        after.uid == before.uid
            && after.config == before.config
            && after.annotations == before.annotations
    });
    let users = shared.records.users(&before.namespace, &before.name);
    if same || users.is_empty() {
        return;
    }
    let what = match after {
        Some(_) => "edited",
        None => "deleted",
    };
    let network = format!("{}/{}", before.namespace, before.name);
    let text = format!(
        "network {network} was {what} while {} of node {} use it: they keep their interfaces as they are until they are made anew",
        match users.len() {
            1 => "1 pod".to_owned(),
            count => format!("{count} pods"),
        },
        shared.options.node
    );
    tracing::info!(network, "{text}");
    let subject = Subject::nad(after.unwrap_or(before));
    shared.events.push(subject, "NetworkChangedInUse", &text);
    let text = format!(
        "network {network} was {what}: this pod keeps its interface as it is until it is made anew"
    );
    let pods = users.iter().filter(|user| !user.container);
    for pod in pods.take(MOST_PODS) {
        shared
            .events
            .push(Subject::pod(pod), "NetworkChangedInUse", &text);
    }
}
