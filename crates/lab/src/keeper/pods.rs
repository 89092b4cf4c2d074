//! The pods of the lab, as the API says: those without a node get one, those on a node of ours get a worker,
//! and what is left of those that are gone is taken away.

use super::nodes::labels;
use super::place::{Candidate, Port, choose};
use super::shared::Shared;
use super::{claims, status, worker};
use crate::error::{LabError, chain};
use crate::name::NodeName;
use crate::sandbox;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often pods that found no node are looked at again.
const AGAIN: Duration = Duration::from_millis(500);

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
    /// Those without a node, with what was said about that.
    unscheduled: BTreeMap<String, (Pod, String)>,
    /// UIDs that a list has named so far.
    listed: BTreeSet<String>,
}

/// Follows the pods until the task is dropped.
pub(super) async fn keep(shared: Arc<Shared>) {
    let client = shared.client().await;
    let api: Api<Pod> = Api::all(client.clone());
    let stream = watcher(api, watcher::Config::default()).backoff(super::shared::Pauses::default());
    let mut stream = std::pin::pin!(stream);
    let mut pods = Pods {
        shared,
        client,
        workers: BTreeMap::new(),
        unscheduled: BTreeMap::new(),
        listed: BTreeSet::new(),
    };
    let mut again = tokio::time::interval(AGAIN);
    loop {
        tokio::select! {
            item = stream.next() => match item {
                Some(Ok(event)) => pods.take(event),
                Some(Err(error)) => tracing::debug!(error = chain(&error), "pods are not seen now"),
                None => return,
            },
            _ = again.tick() => {}
        }
        pods.workers.retain(|_, worker| !worker.task.is_finished());
        pods.schedule().await;
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
            let said = self.unscheduled.remove(&uid).map(|(_, said)| said);
            self.unscheduled
                .insert(uid, (pod, said.unwrap_or_default()));
            return;
        };
        self.unscheduled.remove(&uid);
        // A pod of another cluster's node is none of ours.
        let Ok(node) = node.parse::<NodeName>() else {
            return;
        };
        self.tell_worker(&uid, node, Some(Arc::new(pod)));
    }

    fn forget(&mut self, uid: &str) {
        self.unscheduled.remove(uid);
        if let Some(node) = self.workers.get(uid).map(|worker| worker.node) {
            self.tell_worker(uid, node, None);
        }
    }

    /// After a list: whoever is not on it is gone, and so are those of whom there is a record only.
    fn forget_the_unlisted(&mut self) {
        let recorded = sandbox::all(&self.shared.layout);
        for (node, sandbox) in recorded {
            if !self.listed.contains(&sandbox.uid) && !self.workers.contains_key(&sandbox.uid) {
                self.tell_worker(&sandbox.uid, node, None);
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
    fn tell_worker(&mut self, uid: &str, node: NodeName, desired: worker::Desired) {
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

    async fn schedule(&mut self) {
        let mut candidates = self.candidates();
        let mut found = Vec::new();
        for (uid, (pod, said)) in &mut self.unscheduled {
            if pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let selector = pod.spec.as_ref().and_then(|s| s.node_selector.clone());
            let ports = Port::of(pod);
            let chosen = match claims::waits(pod) {
                Some(why) => Err(why),
                None => choose(&candidates, &selector.unwrap_or_default(), &ports),
            };
            let told = match chosen {
                Ok(node) => {
                    let bound = status::bind(&self.client, pod, &node.to_string()).await;
                    for chosen in candidates.iter_mut().filter(|one| one.node == node) {
                        chosen.pods += 1;
                        chosen.ports.extend(ports.clone());
                    }
                    found.extend(bound.is_ok().then(|| uid.clone()));
                    bound
                }
                Err(why) if why == *said => Ok(()),
                Err(why) => {
                    let told = say_unschedulable(&self.client, pod, &why).await;
                    *said = why;
                    told
                }
            };
            if let Err(error) = told {
                tracing::debug!(error = chain(&error), "a pod has no node yet");
            }
        }
        for uid in found {
            self.unscheduled.remove(&uid);
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let nodes = &self.shared.spec().nodes;
        nodes
            .iter()
            .map(|node| Candidate {
                node: *node,
                labels: labels(*node),
                ready: self.shared.is_ready(*node),
                pods: self.workers_on(*node).count(),
                ports: self
                    .workers_on(*node)
                    .filter_map(|worker| worker.desired.borrow().clone())
                    .flat_map(|pod| Port::of(&pod))
                    .collect(),
            })
            .collect()
    }

    /// Those of pods that are not gone.
    fn workers_on(&self, node: NodeName) -> impl Iterator<Item = &Worker> {
        let workers = self.workers.values();
        workers.filter(move |worker| worker.node == node && worker.desired.borrow().is_some())
    }
}

async fn say_unschedulable(client: &Client, pod: &Pod, why: &str) -> Result<(), LabError> {
    status::warn(client, pod, "FailedScheduling", why).await?;
    status::unschedulable(client, pod, why).await
}
