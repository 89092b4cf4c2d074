//! The pods of the lab, as the API says: those without a node get one, those on a node of ours get a worker,
//! and what is left of those that are gone is taken away.

use super::schedule::{Candidate, NodeRequirements, Port, choose};
use super::shared::Shared;
use super::{claims, status, worker};
use crate::error::{LabError, chain};
use crate::name::NodeName;
use crate::sandbox;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use plexus_client::Watches;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often the keeper tries to schedule pods that found no node.
const UNSCHEDULED_RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Pauses after the API has failed: short enough that a server that is back is noticed at once.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(50);
const MAX_RETRY_DELAY: Duration = Duration::from_millis(1600);

/// A pod's worker, and where the pod is.
struct Worker {
    desired: watch::Sender<worker::Desired>,
    node: NodeName,
    task: JoinHandle<()>,
}

/// What is known of pods.
struct Pods {
    shared: Arc<Shared>,
    client: Client,
    /// By UID. One per pod, also of a pod that is gone, until nothing is left of it.
    workers: BTreeMap<String, Worker>,
    /// Pods without a node, each with the reason that was reported last.
    unscheduled: BTreeMap<String, (Pod, String)>,
    /// UIDs that a list has named so far.
    listed: BTreeSet<String>,
}

/// Follows the pods until the task is dropped.
pub(super) async fn run(shared: Arc<Shared>) {
    let client = shared.client().await;
    let api: Api<Pod> = Api::all(client.clone());
    let mut stream = Watches::default().watch(api, ListParams::default()).boxed();
    let mut pause = FIRST_RETRY_DELAY;
    let mut pods = Pods {
        shared,
        client,
        workers: BTreeMap::new(),
        unscheduled: BTreeMap::new(),
        listed: BTreeSet::new(),
    };
    let mut again = tokio::time::interval(UNSCHEDULED_RETRY_INTERVAL);
    loop {
        let mut is_time = false;
        tokio::select! {
            item = stream.next() => match item {
                Some(Ok(event)) => {
                    if matches!(event, Event::InitDone) {
                        pause = FIRST_RETRY_DELAY;
                    }
                    pods.take(event);
                }
                Some(Err(error)) => {
                    tracing::debug!(error = chain(&error), "pods are not seen now");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_RETRY_DELAY);
                }
                None => return,
            },
            _ = again.tick() => is_time = true,
        }
        pods.workers.retain(|_, worker| !worker.task.is_finished());
        pods.schedule(is_time).await;
    }
}

impl Pods {
    fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.metadata.uid.clone());
                self.observe(pod);
            }
            Event::InitDone => self.forget_the_unlisted(),
            Event::Apply(pod) => self.observe(pod),
            Event::Delete(pod) => {
                if let Some(uid) = pod.metadata.uid {
                    self.forget(&uid);
                }
            }
        }
    }

    fn observe(&mut self, pod: Pod) {
        let Some(uid) = pod.metadata.uid.clone() else {
            return;
        };
        let spec = pod.spec.as_ref();
        let Some(node) = spec.and_then(|spec| spec.node_name.clone()) else {
            let last_reason = self
                .unscheduled
                .remove(&uid)
                .map(|(_, last_reason)| last_reason);
            self.unscheduled
                .insert(uid, (pod, last_reason.unwrap_or_default()));
            return;
        };
        self.unscheduled.remove(&uid);
        // A pod of another cluster's node is none of ours.
        let Ok(node) = node.parse::<NodeName>() else {
            return;
        };
        self.notify_worker(&uid, node, Some(Arc::new(pod)));
    }

    fn forget(&mut self, uid: &str) {
        self.unscheduled.remove(uid);
        if let Some(node) = self.workers.get(uid).map(|worker| worker.node) {
            self.notify_worker(uid, node, None);
        }
    }

    /// After a list: whoever is not on it is gone, and so are those of whom there is a record only.
    fn forget_the_unlisted(&mut self) {
        let recorded = sandbox::all(&self.shared.layout);
        for (node, sandbox) in recorded {
            if !self.listed.contains(&sandbox.uid) && !self.workers.contains_key(&sandbox.uid) {
                self.notify_worker(&sandbox.uid, node, None);
            }
        }
        let known: Vec<String> = self.workers.keys().cloned().collect();
        for uid in known {
            if !self.listed.contains(&uid) {
                self.forget(&uid);
            }
        }
        self.unscheduled.retain(|uid, _| self.listed.contains(uid));
    }

    /// Tells a pod's worker what is wanted now.
    fn notify_worker(&mut self, uid: &str, node: NodeName, desired: worker::Desired) {
        if let Some(worker) = self.workers.get(uid)
            && worker.desired.send(desired.clone()).is_ok()
        {
            return;
        }
        let (sender, receiver) = watch::channel(desired);
        let shared = Arc::clone(&self.shared);
        let work = worker::work(shared, self.client.clone(), uid.to_owned(), node, receiver);
        let worker = Worker {
            desired: sender,
            node,
            task: tokio::spawn(work),
        };
        self.workers.insert(uid.to_owned(), worker);
    }

    /// Gives pods without a node one, by what the Nodes say now. These are asked for only if somebody waits for
    /// one: at once for a pod that is new, `again` and again for those that found none.
    async fn schedule(&mut self, again: bool) {
        for (pod, last_reason) in self.unscheduled.values_mut() {
            if let Some(why) = claims::waits(pod).filter(|_| !is_going(pod)) {
                report_unschedulable(&self.client, pod, last_reason, why).await;
            }
        }
        if !needs_nodes(self.unscheduled.values(), again) {
            return;
        }
        let mut candidates = match nodes(&self.client).await {
            Ok(nodes) => self.candidates(nodes),
            Err(error) => {
                tracing::debug!(error = chain(&error), "nobody gets a node now");
                return;
            }
        };
        let mut found = Vec::new();
        for (uid, (pod, last_reason)) in &mut self.unscheduled {
            if !needs_node(pod) {
                continue;
            }
            let requirements = NodeRequirements::of(pod);
            match choose(&candidates, &requirements) {
                Ok(node) => {
                    for chosen in candidates.iter_mut().filter(|one| one.node == node) {
                        chosen.pods += 1;
                        chosen.ports.extend(requirements.ports.clone());
                    }
                    match status::bind(&self.client, pod, &node.to_string()).await {
                        Ok(()) => found.push(uid.clone()),
                        Err(error) => {
                            tracing::debug!(error = chain(&error), "a pod has no node yet");
                        }
                    }
                }
                Err(why) => report_unschedulable(&self.client, pod, last_reason, why).await,
            }
        }
        for uid in found {
            self.unscheduled.remove(&uid);
        }
    }

    fn candidates(&self, nodes: Vec<Node>) -> Vec<Candidate> {
        let candidates = nodes.into_iter().filter_map(|node| self.candidate(node));
        candidates.collect()
    }

    /// A node as its Node says it is; none if it is not, or no longer, one of the lab.
    fn candidate(&self, seen: Node) -> Option<Candidate> {
        let node: NodeName = seen.metadata.name?.parse().ok()?;
        if !self.shared.has_node(node) {
            return None;
        }
        let spec = seen.spec.unwrap_or_default();
        Some(Candidate {
            node,
            labels: seen.metadata.labels.unwrap_or_default(),
            unschedulable: spec.unschedulable.unwrap_or_default(),
            taints: spec.taints.unwrap_or_default(),
            ready: self.shared.is_ready(node),
            pods: self.workers_on(node).count(),
            ports: self
                .workers_on(node)
                .filter_map(|worker| worker.desired.borrow().clone())
                .flat_map(|pod| Port::of(&pod))
                .collect(),
        })
    }

    /// Those of pods that are not gone.
    fn workers_on(&self, node: NodeName) -> impl Iterator<Item = &Worker> {
        let workers = self.workers.values();
        workers.filter(move |worker| worker.node == node && worker.desired.borrow().is_some())
    }
}

fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

async fn nodes(client: &Client) -> Result<Vec<Node>, LabError> {
    let api: Api<Node> = Api::all(client.clone());
    let listed = api.list(&ListParams::default()).await;
    let listed = listed.map_err(LabError::api("list the Nodes"))?;
    Ok(listed.items)
}

/// Says once why a pod has no node.
async fn report_unschedulable(client: &Client, pod: &Pod, last_reason: &mut String, why: String) {
    if *last_reason == why {
        return;
    }
    let result = match status::warn(client, pod, "FailedScheduling", &why).await {
        Ok(()) => status::unschedulable(client, pod, &why).await,
        Err(error) => Err(error),
    };
    *last_reason = why;
    if let Err(error) = result {
        tracing::debug!(error = chain(&error), "a pod has no node yet");
    }
}

/// Whether a node would help it.
fn needs_node(pod: &Pod) -> bool {
    !is_going(pod) && claims::waits(pod).is_none()
}

fn needs_nodes<'p>(mut unscheduled: impl Iterator<Item = &'p (Pod, String)>, again: bool) -> bool {
    unscheduled.any(|(pod, last_reason)| needs_node(pod) && (again || last_reason.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn nodes_are_asked_for_at_once_for_who_is_new_and_at_a_pace_for_the_others() {
        let pod = |spec: Value, last_reason: &str| -> (Pod, String) {
            let pod = serde_json::from_value(json!({"spec": spec})).unwrap();
            (pod, last_reason.to_owned())
        };
        let plain = json!({"containers": []});
        let claims = json!({"containers": [], "resourceClaims": [{"name": "a"}]});
        let new = pod(plain.clone(), "");
        let result = pod(plain.clone(), "no node is ready");
        let mut going = new.clone();
        going.0.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2024-01-01T00:00:00Z")).unwrap());
        let asks = |all: &[&(Pod, String)], again| needs_nodes(all.iter().copied(), again);
        for never in [&pod(claims.clone(), ""), &pod(claims, "it waits"), &going] {
            assert!(!asks(&[never], false) && !asks(&[never], true));
        }
        assert!(asks(&[&new], false) && asks(&[&going, &new], true));
        assert!(!asks(&[&result], false) && asks(&[&result], true));
        assert!(!asks(&[], true));
    }
}
