//! The pods of the lab, as the API says: those without a node get one, those on a node of ours get a worker, and what is left of those
//! that are gone is taken away.

use super::nodes::labels;
use super::place::{Candidate, Port, choose};
use super::shared::Shared;
use super::status;
use super::worker;
use crate::error::chain;
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

/// How often pods that found no node are looked at again.
const AGAIN: Duration = Duration::from_millis(500);

/// A pod's worker, and where the pod is.
struct Worker {
    wish: watch::Sender<worker::Wish>,
    node: NodeName,
}

/// What is known of pods.
struct Pods {
    shared: Arc<Shared>,
    client: Client,
    /// By UID.
    workers: BTreeMap<String, Worker>,
    /// Those without a node, with what was said about that.
    homeless: BTreeMap<String, (Pod, String)>,
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
        homeless: BTreeMap::new(),
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
        pods.find_homes().await;
    }
}

impl Pods {
    fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.metadata.uid.clone());
                self.see(pod);
            }
            Event::InitDone => self.forget_the_unlisted(),
            Event::Apply(pod) => self.see(pod),
            Event::Delete(pod) => {
                if let Some(uid) = pod.metadata.uid {
                    self.forget(&uid);
                }
            }
        }
    }

    fn see(&mut self, pod: Pod) {
        let Some(uid) = pod.metadata.uid.clone() else {
            return;
        };
        let spec = pod.spec.as_ref();
        let Some(node) = spec.and_then(|spec| spec.node_name.clone()) else {
            let said = self.homeless.remove(&uid).map(|(_, said)| said);
            self.homeless.insert(uid, (pod, said.unwrap_or_default()));
            return;
        };
        self.homeless.remove(&uid);
        // A pod of another cluster's node is none of ours.
        let Ok(node) = node.parse::<NodeName>() else {
            return;
        };
        self.wish(&uid, node, Some(Arc::new(pod)));
    }

    fn forget(&mut self, uid: &str) {
        self.homeless.remove(uid);
        if let Some(node) = self.workers.get(uid).map(|worker| worker.node) {
            self.wish(uid, node, None);
            self.workers.remove(uid);
        }
    }

    /// After a list: whoever is not on it is gone, and so are those of whom there is a record only.
    fn forget_the_unlisted(&mut self) {
        let recorded = sandbox::all(&self.shared.layout);
        for (node, sandbox) in recorded {
            if !self.listed.contains(&sandbox.uid) && !self.workers.contains_key(&sandbox.uid) {
                self.wish(&sandbox.uid, node, None);
                self.workers.remove(&sandbox.uid);
            }
        }
        let known: Vec<String> = self.workers.keys().cloned().collect();
        for uid in known {
            if !self.listed.contains(&uid) {
                self.forget(&uid);
            }
        }
        self.homeless.retain(|uid, _| self.listed.contains(uid));
    }

    /// Tells a pod's worker what is wanted now.
    fn wish(&mut self, uid: &str, node: NodeName, wish: worker::Wish) {
        if let Some(worker) = self.workers.get(uid)
            && worker.wish.send(wish.clone()).is_ok()
        {
            return;
        }
        let (sender, receiver) = watch::channel(wish);
        let shared = Arc::clone(&self.shared);
        let work = worker::work(shared, self.client.clone(), uid.to_owned(), node, receiver);
        tokio::spawn(work);
        let worker = Worker { wish: sender, node };
        self.workers.insert(uid.to_owned(), worker);
    }

    async fn find_homes(&mut self) {
        let mut candidates = self.candidates();
        let mut found = Vec::new();
        for (uid, (pod, said)) in &mut self.homeless {
            if pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let selector = pod.spec.as_ref().and_then(|s| s.node_selector.clone());
            let ports = Port::of(pod);
            let told = match choose(&candidates, &selector.unwrap_or_default(), &ports) {
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
                    let told = status::warn(&self.client, pod, "FailedScheduling", &why).await;
                    *said = why;
                    told
                }
            };
            if let Err(error) = told {
                tracing::debug!(error = chain(&error), "a pod has no node yet");
            }
        }
        for uid in found {
            self.homeless.remove(&uid);
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
                    .filter_map(|worker| worker.wish.borrow().clone())
                    .flat_map(|pod| Port::of(&pod))
                    .collect(),
            })
            .collect()
    }

    fn workers_on(&self, node: NodeName) -> impl Iterator<Item = &Worker> {
        let workers = self.workers.values();
        workers.filter(move |worker| worker.node == node)
    }
}
