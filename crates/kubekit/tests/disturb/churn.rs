//! Pods that come and go while something else happens.

use super::{pod_of_three, wait_ready};
use crate::common;
use plexus_kubekit::{Cluster, Object, wait};
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// No pod needs longer, whatever was killed.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const CONCURRENT_PODS: usize = 6;

/// A churn that is going on.
pub(crate) struct Churn<'a> {
    cluster: &'a dyn Cluster,
    namespace: &'a str,
    next: AtomicUsize,
    over: AtomicBool,
    most: usize,
    keep: usize,
    remaining: Mutex<Vec<Object>>,
}

impl<'a> Churn<'a> {
    /// At most so many pods in all; the last `keep` stay.
    pub(crate) fn new(
        cluster: &'a dyn Cluster,
        namespace: &'a str,
        most: usize,
        keep: usize,
    ) -> Self {
        Self {
            cluster,
            namespace,
            next: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            most,
            keep,
            remaining: Mutex::default(),
        }
    }

    /// Runs pods while `work` runs, and until all are through if they are counted. Every pod gets
    /// ready with all four interfaces. Gives how many there were.
    pub(crate) fn during(&self, work: impl FnOnce(&Self)) -> usize {
        let nodes = self.cluster.nodes().expect("nodes");
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..CONCURRENT_PODS)
                .map(|_| scope.spawn(|| self.work(&nodes)))
                .collect();
            // Whatever happens, the workers end.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(self)));
            if self.most == usize::MAX || done.is_err() {
                self.over.store(true, SeqCst);
            }
            let results: Vec<_> = workers.into_iter().map(|one| one.join()).collect();
            assert!(done.is_ok(), "what went on meanwhile failed");
            assert!(results.iter().all(Result::is_ok), "a pod failed");
        });
        self.count()
    }

    /// How many were begun.
    pub(crate) fn count(&self) -> usize {
        self.next.load(SeqCst).min(self.most)
    }

    /// Waits until so many were begun.
    pub(crate) fn wait_for(&self, count: usize) {
        common::holds("the churn goes on", READY_TIMEOUT, || {
            self.count() >= count.min(self.most) || self.over.load(SeqCst)
        });
    }

    /// Those that stay.
    pub(crate) fn remaining(&self) -> Vec<Object> {
        self.remaining.lock().expect("not poisoned").clone()
    }

    fn work(&self, nodes: &[String]) {
        loop {
            let number = self.next.fetch_add(1, SeqCst);
            if self.over.load(SeqCst) || number >= self.most {
                return;
            }
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let node = &nodes[number % nodes.len()];
                self.one(number, node);
            }));
            if let Err(panic) = failed {
                self.over.store(true, SeqCst);
                std::panic::resume_unwind(panic);
            }
        }
    }

    fn one(&self, number: usize, node: &str) {
        let name = format!("c{number}");
        let text = pod_of_three(self.namespace, &name, node).to_string();
        let pod = Object::pod(self.namespace, &name);
        wait::until("a pod is made", READY_TIMEOUT, || {
            self.cluster.apply(&text).map(Some)
        })
        .expect("made");
        let ready = wait_ready(self.cluster, &pod, READY_TIMEOUT);
        self.has_all(&pod, &ready);
        if self.most != usize::MAX && number + self.keep >= self.most {
            self.remaining.lock().expect("not poisoned").push(pod);
            return;
        }
        wait::until("a pod is deleted", READY_TIMEOUT, || {
            self.cluster.api().delete(&pod, Some(0)).map(Some)
        })
        .expect("deleted");
    }

    /// Its record names four interfaces.
    fn has_all(&self, pod: &Object, ready: &Value) {
        let uid = ready["metadata"]["uid"].as_str().unwrap_or_default();
        let record = super::record_of(&pod.namespace, uid);
        let found = wait::until(&format!("the record of {pod}"), READY_TIMEOUT, || {
            let record = self.cluster.get(&record)?;
            Ok(record.and_then(|record| record["status"]["attachments"].as_array().cloned()))
        });
        assert_eq!(found.expect("a record").len(), 4, "{pod}");
    }
}
