//! The interface of end-to-end tests: what a test may ask of a cluster, whether that is Kubernetes
//! ([`crate::Kube`]) or a lab of virtual nodes ([`crate::VirtualLab`]). What only the former can do, a test asks
//! [`crate::test_cluster::kubernetes`] for.

use crate::api::Api;
use crate::wait;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Longer than anything healthy takes on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Which object: version, kind, namespace (empty where there is none), name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// `v1`, `apps/v1`, …
    pub api_version: String,
    /// `Pod`, `Network`, …
    pub kind: String,
    /// Empty for objects of the whole cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Object {
    /// An object of any kind.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// A pod.
    pub fn pod(namespace: &str, name: &str) -> Self {
        Self::new("v1", "Pod", namespace, name)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// What a program did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its exit status; 124 if it was stopped for taking too long.
    pub status: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Output {
    /// Whether it succeeded.
    pub fn ok(&self) -> bool {
        self.status == 0
    }

    /// What it printed; an error with everything it said if it failed.
    pub fn text(self) -> Result<String> {
        if !self.ok() {
            bail!(
                "status {}: {} {}",
                self.status,
                self.stdout.trim(),
                self.stderr.trim()
            );
        }
        Ok(self.stdout)
    }
}

/// Where a node keeps what tests look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFiles {
    /// Directory of the plugins that are executed.
    pub plugins: String,
    /// Our own plugin, where the runtime finds it.
    pub shim: String,
    /// Directory of CNI configurations.
    pub configs: String,
    /// The agent's journal.
    pub journal: String,
    /// The agent's socket.
    pub socket: String,
    /// Directory of the namespaces of networks.
    pub routers: String,
}

/// What the runtime knows of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Its id.
    pub id: String,
    /// The interfaces inside that the answer to its ADD named, without `lo`.
    pub interfaces: Vec<String>,
}

/// A cluster under test.
pub trait Cluster: Send + Sync {
    /// The API, as administrator.
    fn api(&self) -> &Api;

    /// `kubectl` as administrator, with `input`; whatever comes of it.
    fn kubectl(&self, arguments: &[&str], input: &str) -> Result<Output>;

    /// The nodes' names, sorted.
    fn nodes(&self) -> Result<Vec<String>>;

    /// Runs a program in the pod's first container: one that busybox has. Ends after half a minute at the
    /// latest.
    fn exec(&self, pod: &Object, argv: &[&str]) -> Result<Output>;

    /// Runs a program of the node in the pod's network namespace: `ip`, `ping`, `tcpdump`, …
    fn in_netns(&self, pod: &Object, argv: &[&str]) -> Result<Output>;

    /// Runs a program on a node, as root.
    fn on_node(&self, node: &str, argv: &[&str]) -> Result<Output>;

    /// Runs a program outside of the cluster, where only the nodes' addresses are known.
    fn outside(&self, argv: &[&str]) -> Result<Output>;

    /// The addresses that nodes see when somebody outside asks them, IPv4 first.
    fn outside_addresses(&self) -> [&'static str; 2];

    /// Where this node keeps its files, as programs see them that [`Cluster::on_node`] runs.
    fn files(&self, node: &str) -> Result<NodeFiles>;

    /// What the runtime knows of a running pod.
    fn sandbox_of(&self, pod: &Object) -> Result<Sandbox>;

    /// Runs a program on the controller's loopback.
    fn beside_controller(&self, argv: &[&str]) -> Result<Output>;

    /// Creates or changes every object of a YAML text with one or several documents. Objects without
    /// a namespace go to `default`.
    fn apply(&self, yaml: &str) -> Result<()> {
        self.api().apply(yaml)
    }

    /// Deletes an object; one that is not there is fine. Does not wait until it is gone.
    fn delete(&self, object: &Object) -> Result<()> {
        self.api().delete(object, None)
    }

    /// The object as it is now.
    fn get(&self, object: &Object) -> Result<Option<Value>> {
        self.api().get(object)
    }

    /// All objects of a kind, in one namespace or (empty) in all.
    fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        self.api().list(api_version, kind, namespace)
    }

    /// The node that a pod is bound to.
    fn node_of(&self, pod: &Object) -> Result<String> {
        let found = self
            .get(pod)?
            .with_context(|| format!("{pod} is not there"))?;
        let node = found.pointer("/spec/nodeName").and_then(Value::as_str);
        Ok(node
            .with_context(|| format!("{pod} is on no node yet"))?
            .to_owned())
    }

    /// Waits until the object is there and the predicate holds; gives the object.
    fn wait_for(
        &self,
        object: &Object,
        timeout: Duration,
        holds: &dyn Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = None;
        let waited = wait::until(&object.to_string(), timeout, || {
            last = self.get(object)?;
            Ok(last.as_ref().filter(|value| holds(value)).cloned())
        });
        waited.with_context(|| match &last {
            Some(value) => format!("last seen: {}", value.get("status").unwrap_or(value)),
            None => format!("{object} was not there"),
        })
    }

    /// Waits until the object is gone.
    fn wait_gone(&self, object: &Object, timeout: Duration) -> Result<()> {
        wait::until(&format!("{object} gone"), timeout, || {
            Ok(self.get(object)?.is_none().then_some(()))
        })
    }

    /// Waits until the pod is ready and its program runs; gives the pod.
    fn wait_ready(&self, pod: &Object, timeout: Duration) -> Result<Value> {
        self.wait_for(pod, timeout, &is_ready)
    }
}

/// Whether an object has the condition `Ready`, `Available` or the like with status True.
pub fn has_condition(object: &Value, condition: &str) -> bool {
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|entry| entry["type"] == condition && entry["status"] == "True")
}

/// Whether a pod or a node is ready.
pub fn is_ready(object: &Value) -> bool {
    has_condition(object, "Ready")
}
