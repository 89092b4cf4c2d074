//! Pods that come and go: single ones with random networks on random nodes, and a StatefulSet whose pods are
//! deleted under the same name, or which is deleted as a whole and made again.

use crate::networks::{DELEGATED, NADS, OBJECTS};
use crate::rng::Rng;
use crate::summary::Summary;
use anyhow::Result;
use plexus_kubekit::cluster::is_ready;
use plexus_kubekit::{Cluster, Kube, Namespace, Object, wait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const MAX_PODS: usize = 40;
const STATEFUL: &str = "same";
const STATEFUL_NETWORKS: [&str; 3] = ["local1", "bridge", "contrail"];
const REPLICAS: usize = 4;
const PAUSE: Duration = Duration::from_millis(700);

pub(crate) struct Churn<'a> {
    kube: &'static Kube,
    namespace: &'a Namespace<'static>,
    nodes: Vec<String>,
    rng: Rng,
    next: usize,
    /// Pods that are wanted, and how many networks each has beside the cluster's.
    pods: BTreeMap<String, usize>,
}

impl<'a> Churn<'a> {
    pub(crate) fn new(
        kube: &'static Kube,
        namespace: &'a Namespace<'static>,
        rng: Rng,
    ) -> Result<Self> {
        let churn = Self {
            kube,
            namespace,
            nodes: kube.nodes()?,
            rng,
            next: 1,
            pods: BTreeMap::new(),
        };
        churn.make_stateful()?;
        Ok(churn)
    }

    /// One change. What the API server does not take, because it is dead, is tried another time.
    pub(crate) fn step(&mut self, summary: &mut Summary) {
        std::thread::sleep(PAUSE);
        let done = match self.rng.below(10) {
            0 => self.recreate().map(|()| summary.recreated += 1),
            1 if self.rng.below(10) == 0 => self.replace_stateful(),
            choice
                if self.pods.len() >= MAX_PODS
                    || (choice < 5 && self.pods.len() > MAX_PODS / 2) =>
            {
                self.remove().map(|()| summary.removed += 1)
            }
            _ => self.add().map(|()| summary.made += 1),
        };
        if done.is_err() {
            summary.refused += 1;
        }
    }

    /// Waits until all pods are ready with all of their interfaces; says which are not.
    pub(crate) fn wait_ready(&mut self, timeout: Duration) -> Vec<String> {
        let end = Instant::now() + timeout;
        let mut wanted = self.pods.clone();
        for index in 0..REPLICAS {
            wanted.insert(format!("{STATEFUL}-{index}"), STATEFUL_NETWORKS.len());
        }
        let mut wrong = Vec::new();
        for (name, networks) in wanted {
            let object = self.namespace.pod(&name);
            let left = end.saturating_duration_since(Instant::now());
            let seen = self.kube.wait_for(&object, left, &|seen| {
                is_ready(seen) && interfaces(seen) == Some(networks + 1)
            });
            if let Err(error) = seen {
                wrong.push(format!("pod {name} with {networks} networks: {error:#}"));
            }
        }
        wrong
    }

    /// Deletes all pods, and waits for their records to be gone.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.kube.delete(&self.stateful())?;
        for name in self.pods.keys() {
            self.kube.delete(&self.namespace.pod(name))?;
        }
        self.pods.clear();
        for (version, kind) in [("v1", "Pod"), ("plexus.dev/v1alpha1", "PodAttachments")] {
            wait::until(&format!("{kind}s gone"), Duration::from_secs(180), || {
                let left = self.kube.list(version, kind, self.namespace.name())?;
                Ok(left.is_empty().then_some(()))
            })?;
        }
        Ok(())
    }

    fn add(&mut self) -> Result<()> {
        let name = format!("pod{}", self.next);
        self.next += 1;
        let count = self.rng.below(5);
        let names: &[&str] = if self.rng.below(2) == 0 {
            &NADS
        } else {
            &OBJECTS
        };
        let key = if names.len() == NADS.len() {
            "k8s.v1.cni.cncf.io/networks"
        } else {
            "plexus.dev/networks"
        };
        let mut chosen: Vec<&str> = Vec::new();
        for _ in 0..count {
            let name = self.rng.pick(names).copied().unwrap_or_default();
            // `ptp` itself cannot be twice in a pod: its routes to the gateway would collide.
            if name != DELEGATED || !chosen.contains(&name) {
                chosen.push(name);
            }
        }
        let annotations = match chosen.join(",") {
            none if none.is_empty() => json!({}),
            list => json!({key: list}),
        };
        let node = self.rng.pick(&self.nodes).cloned().unwrap_or_default();
        let mut spec = pod_spec();
        spec["nodeName"] = node.into();
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace.name(), "annotations": annotations},
            "spec": spec,
        });
        self.kube.apply(&object.to_string())?;
        self.pods.insert(name, chosen.len());
        Ok(())
    }

    fn remove(&mut self) -> Result<()> {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        if let Some(name) = self.rng.pick(&names) {
            self.kube.delete(&self.namespace.pod(name))?;
            self.pods.remove(name);
        }
        Ok(())
    }

    /// A pod of the StatefulSet: its successor has the same name, maybe on another node. Sometimes by force:
    /// the successor then starts while the predecessor still runs.
    fn recreate(&mut self) -> Result<()> {
        let name = format!("{STATEFUL}-{}", self.rng.below(REPLICAS));
        let grace = (self.rng.below(3) == 0).then_some(0);
        self.kube
            .lab()
            .api()
            .delete(&self.namespace.pod(&name), grace)
    }

    fn replace_stateful(&mut self) -> Result<()> {
        self.kube.delete(&self.stateful())?;
        self.kube
            .wait_gone(&self.stateful(), Duration::from_secs(30))?;
        self.make_stateful()
    }

    fn make_stateful(&self) -> Result<()> {
        let networks = STATEFUL_NETWORKS.join(",");
        let object = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": STATEFUL, "namespace": self.namespace.name()},
            "spec": {
                "replicas": REPLICAS, "serviceName": STATEFUL, "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {"app": STATEFUL}},
                "template": {
                    "metadata": {
                        "labels": {"app": STATEFUL},
                        "annotations": {"k8s.v1.cni.cncf.io/networks": networks},
                    },
                    "spec": pod_spec(),
                },
            },
        });
        self.kube.apply(&object.to_string())
    }

    fn stateful(&self) -> Object {
        Object::new("apps/v1", "StatefulSet", self.namespace.name(), STATEFUL)
    }
}

fn pod_spec() -> Value {
    json!({
        "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": false,
        "enableServiceLinks": false, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "localhost/pause:1", "imagePullPolicy": "Never"}],
    })
}

/// How many interfaces the pod is said to have.
fn interfaces(seen: &Value) -> Option<usize> {
    let text = seen
        .pointer("/metadata/annotations/k8s.v1.cni.cncf.io~1network-status")?
        .as_str()?;
    Some(serde_json::from_str::<Value>(text).ok()?.as_array()?.len())
}
