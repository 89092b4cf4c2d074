//! Compares this node's records with its journal: at the start, whenever the API was away, when a record outlives its
//! pod, and now and then. Records that are missing or old are written again; records of pods that are neither in
//! the journal nor alive are released.

use super::cached::{self, CachedRecord};
use super::record_name;
use super::report::{Attached, Journaled};
use super::shared::Shared;
use super::state::{State, key};
use super::write::is_as_it_should;
use crate::background::async_task::{Woken, Work};
use crate::background::progress::{Next, Reason};
use plexus_api::objects::PodAttachmentsStatus;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Several reasons that come together are one.
const SETTLE: Duration = Duration::from_millis(200);
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(600);
/// How long a record may be there without its pod: whoever removes the pod's attachments releases it meanwhile.
const ORPHAN_DELAY: Duration = Duration::from_secs(3);

pub(super) struct Resync(pub(super) Arc<Shared>);

impl Work for Resync {
    async fn woken(&self) -> Woken {
        let Self(shared) = self;
        tokio::select! {
            woken = Woken::by(&shared.resync) => woken.delayed(SETTLE),
            () = shared.orphans.notified() => Woken {
                reason: Reason::Event,
                delay: ORPHAN_DELAY,
            },
        }
    }

    async fn pass(&mut self, reason: Reason) -> Result<Next, String> {
        let Self(shared) = self;
        // Containers that are no pods are known to the journal alone.
        let has_orphans = || !shared.options.containers && has_orphans(&shared.state());
        if reason != Reason::Event || has_orphans() {
            compare(shared)?;
        }
        Ok(Next::After(CHECK_INTERVAL))
    }
}

/// Whether there is a record whose pod is gone. An agent that died after it had removed the pod's attachments cannot
/// have released it, and the next one sees the pod alive when it starts.
fn has_orphans(state: &State) -> bool {
    let pods = state.pods.objects.values().filter(|pod| !pod.ended);
    let alive: BTreeSet<&str> = pods.map(|pod| pod.meta.api_uid.as_str()).collect();
    let mut records = state.records.objects.values();
    records.any(|record| !alive.contains(record.uid.as_str()))
}

fn compare(shared: &Shared) -> Result<(), String> {
    let live = {
        let state = shared.state();
        state.records.live && state.pods.live
    };
    if !live {
        return Ok(());
    }
    shared.records.before_journal();
    let Some(journaled) = shared.hooks.pods() else {
        shared.records.journal(Vec::new(), |_| false);
        return Err("records cannot be compared with the journal: it cannot be read".to_owned());
    };
    // Records are judged after the journal was read: whatever it has was attached before.
    let release = match journaled.is_partial {
        true => Vec::new(),
        false => strays(&shared.state(), &journaled),
    };
    let differ = |report: &Attached| differs(&shared.state(), report, &shared.options.node);
    shared.records.journal(journaled.done, differ);
    for (namespace, uid) in release {
        tracing::info!(namespace, uid, "a record without a pod is released");
        let container = shared.options.containers;
        shared.records.release(&namespace, &uid, container);
    }
    shared.blocks.touched();
    Ok(())
}

/// Whether a pod's record or annotation is not what the journal says.
fn differs(state: &State, report: &Attached, node: &str) -> bool {
    let pod = &report.pod;
    let seen = state.pod(&pod.namespace, &pod.name, Some(pod.uid.as_str()));
    let seen = seen.filter(|_| !pod.container);
    let uid = seen.as_ref().map_or(&pod.uid, |seen| &seen.meta.api_uid);
    let status = PodAttachmentsStatus {
        sandbox: report.sandbox.clone(),
        attachments: report.attachments.clone(),
    };
    let records = record_name::records_of(state, &pod.namespace, uid, node);
    let mut records = records.iter();
    let record_fits = records.any(|record| is_as_it_should(record, &status));
    let annotation_fits = match (&report.network_status, &seen) {
        (Some(value), Some(seen)) => {
            seen.network_status == Some(cached::digest(&value.to_string()))
        }
        _ => true,
    };
    !record_fits || !annotation_fits
}

/// Records of pods of which the journal has nothing, not even what could not be removed yet, and
/// that do not live here.
fn strays(state: &State, journaled: &Journaled) -> Vec<(String, String)> {
    let done: Vec<String> = journaled.done.iter().map(|one| one.pod.key()).collect();
    let mut known: BTreeSet<&str> = journaled.uids.iter().map(String::as_str).collect();
    known.extend(done.iter().map(String::as_str));
    for pod in state.pods.objects.values() {
        let is_journaled = pod
            .config_hash
            .as_deref()
            .is_some_and(|uid| known.contains(uid));
        if !pod.ended || is_journaled {
            known.insert(pod.meta.api_uid.as_str());
        }
    }
    let records = state.records.objects.values();
    // By the pod's UID, or by namespace and id where it is a container's.
    let strays = records.filter(|record: &&Arc<CachedRecord>| {
        let place = key(&record.namespace, &record.uid);
        !known.contains(record.uid.as_str()) && !known.contains(place.as_str())
    });
    strays
        .map(|record| (record.namespace.clone(), record.uid.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(state: &mut State, uid: &str) {
        let seen = CachedRecord {
            namespace: "a".to_owned(),
            name: uid.to_owned(),
            uid: uid.to_owned(),
            finalizer: Some(0),
            status: 0,
        };
        state.records.put(&key("a", uid), Arc::new(seen));
    }

    fn pod(state: &mut State, name: &str, uid: &str, hash: Option<&str>) {
        let wire = serde_json::json!({
            "metadata": {"namespace": "a", "name": name, "uid": uid,
                "annotations": hash.map(|hash| serde_json::json!({cached::CONFIG_HASH: hash}))},
            "status": {"phase": "Failed"},
        });
        let seen = cached::pod(&serde_json::from_value(wire).unwrap());
        state.pods.put(&key("a", name), Arc::new(seen));
    }

    #[test]
    fn a_record_stays_while_the_journal_has_anything_of_its_pod() {
        let mut state = State::default();
        for uid in ["removal-fails", "mirror", "gone"] {
            record(&mut state, uid);
        }
        pod(&mut state, "static", "mirror", Some("0123"));
        pod(&mut state, "over", "gone", None);
        let journaled = Journaled {
            done: Vec::new(),
            uids: ["removal-fails", "0123"].map(str::to_owned).into(),
            is_partial: false,
        };
        let gone = ("a".to_owned(), "gone".to_owned());
        assert_eq!(strays(&state, &journaled), [gone]);
    }

    #[test]
    fn a_record_whose_pod_is_gone_is_an_orphan() {
        let mut state = State::default();
        assert!(!has_orphans(&state));
        record(&mut state, "u1");
        assert!(has_orphans(&state));
        let alive = serde_json::json!({"metadata": {"namespace": "a", "name": "p", "uid": "u1"}});
        let alive = cached::pod(&serde_json::from_value(alive).unwrap());
        state.pods.put(&key("a", "p"), Arc::new(alive));
        assert!(!has_orphans(&state));
        pod(&mut state, "p", "u1", None);
        assert!(has_orphans(&state), "it has ended");
    }

    #[test]
    fn a_containers_record_in_another_namespace_is_another() {
        let mut state = State::default();
        record(&mut state, "c1");
        let journaled = |namespace: &str| Journaled {
            done: Vec::new(),
            uids: [format!("{namespace}/c1")].into(),
            is_partial: false,
        };
        assert_eq!(strays(&state, &journaled("a")), []);
        assert_eq!(strays(&state, &journaled("b")).len(), 1);
    }
}
