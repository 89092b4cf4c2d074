//! The door of `cluster` opened on a real Kubernetes: a running lab, found by its state directory.
//! What only Kubernetes has is here and not in the trait.

use crate::cluster::{Cluster, Object, Output};
use crate::lab::Lab;
use crate::{command, underlay};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// Where the shared lab's state directory is told.
pub const STATE: &str = "PLEXUS_KUBE_STATE";

/// Seconds that a program started by a test may take.
const LONGEST: &str = "30";

/// A running lab as a cluster under test.
pub struct Kube {
    lab: Lab,
}

impl Kube {
    /// The lab with this state directory.
    pub fn open(state: &Path) -> Result<Self> {
        Ok(Self {
            lab: Lab::open(state)?,
        })
    }

    /// The lab that this test run shares, named by `PLEXUS_KUBE_STATE`. Tests use namespaces of
    /// their own in it, and leave it as they found it.
    pub fn shared() -> Result<&'static Self> {
        static SHARED: OnceLock<Result<Kube>> = OnceLock::new();
        let opened = SHARED.get_or_init(|| {
            let state = std::env::var_os(STATE).with_context(|| {
                format!("{STATE} is not set: `make test-kube` sets it, or set it to what `kubelab up` printed")
            })?;
            Self::open(Path::new(&state))
        });
        match opened {
            Ok(kube) => Ok(kube),
            Err(error) => bail!("{error:#}"),
        }
    }

    /// The lab: faults, nodes, the API server's client.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// `kubectl` as administrator, with `input`; whatever comes of it.
    pub fn kubectl(&self, arguments: &[&str], input: &str) -> Result<Output> {
        let program = self
            .lab
            .tools()
            .kubernetes
            .join("kubectl")
            .display()
            .to_string();
        let config = format!("--kubeconfig={}", self.lab.layout().kubeconfig().display());
        let mut argv = vec!["timeout", "-k", "1", LONGEST, &program, &config];
        argv.extend(arguments);
        Ok(output(command::output(&argv, input)?))
    }

    /// `crictl` on a node.
    pub fn crictl(&self, node: &str, arguments: &[&str]) -> Result<Output> {
        crictl(&self.lab, node, arguments)
    }

    /// The node that a pod is bound to.
    pub fn node_of(&self, pod: &Object) -> Result<String> {
        let found = self.found(pod)?;
        let node = found.pointer("/spec/nodeName").and_then(Value::as_str);
        Ok(node
            .with_context(|| format!("{pod} is on no node yet"))?
            .to_owned())
    }

    /// The id of the pod's running sandbox.
    pub fn sandbox(&self, pod: &Object) -> Result<String> {
        let node = self.node_of(pod)?;
        self.sandbox_on(pod, &node)
    }

    /// The path, on its node, of the pod's network namespace.
    pub fn netns(&self, pod: &Object) -> Result<String> {
        let node = self.node_of(pod)?;
        self.netns_on(pod, &node)
    }

    /// What the API server and the kubelet do to run a program: slower than `exec`, and part of what
    /// users see.
    pub fn kubectl_exec(&self, pod: &Object, argv: &[&str]) -> Result<Output> {
        let mut arguments = vec!["exec", "-n", &pod.namespace, &pod.name, "--"];
        arguments.extend(argv);
        self.kubectl(&arguments, "")
    }

    /// Waits until a DaemonSet or Deployment runs its newest pods, all of them, ready.
    pub fn wait_rolled_out(&self, object: &Object) -> Result<()> {
        crate::install::wait_rolled_out(&self.lab, object)
    }

    fn found(&self, pod: &Object) -> Result<Value> {
        self.get(pod)?
            .with_context(|| format!("{pod} is not there"))
    }

    fn sandbox_on(&self, pod: &Object, node: &str) -> Result<String> {
        let listed = self.crictl(
            node,
            &[
                "pods",
                "-q",
                "--state",
                "ready",
                "--namespace",
                &format!("^{}$", pod.namespace),
                "--name",
                &format!("^{}$", pod.name),
            ],
        )?;
        let ids = listed.text()?;
        let id = ids.split_whitespace().next();
        Ok(id
            .with_context(|| format!("{pod} has no sandbox on {node}"))?
            .to_owned())
    }

    fn netns_on(&self, pod: &Object, node: &str) -> Result<String> {
        let id = self.sandbox_on(pod, node)?;
        let text = self.crictl(node, &["inspectp", &id])?.text()?;
        let value: Value = serde_json::from_str(&text).context("crictl printed no JSON")?;
        let namespaces = value
            .pointer("/info/runtimeSpec/linux/namespaces")
            .and_then(Value::as_array);
        let network = namespaces
            .into_iter()
            .flatten()
            .find(|entry| entry["type"] == "network");
        let path = network.and_then(|entry| entry["path"].as_str());
        Ok(path
            .with_context(|| format!("{pod} has no network namespace of its own"))?
            .to_owned())
    }
}

impl Cluster for Kube {
    fn nodes(&self) -> Result<Vec<String>> {
        Ok(self.lab.spec()?.nodes.into_iter().collect())
    }

    fn apply(&self, yaml: &str) -> Result<()> {
        self.lab.api().apply(yaml)
    }

    fn delete(&self, object: &Object) -> Result<()> {
        self.lab.api().delete(object, None)
    }

    fn get(&self, object: &Object) -> Result<Option<Value>> {
        self.lab.api().get(object)
    }

    fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        self.lab.api().list(api_version, kind, namespace)
    }

    fn exec(&self, pod: &Object, argv: &[&str]) -> Result<Output> {
        let found = self.found(pod)?;
        let node = found
            .pointer("/spec/nodeName")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let id = found
            .pointer("/status/containerStatuses/0/containerID")
            .and_then(Value::as_str)
            .and_then(|id| id.strip_prefix("containerd://"))
            .with_context(|| format!("{pod} has no container yet"))?;
        let mut arguments = vec!["exec", id];
        arguments.extend(argv);
        self.crictl(node, &arguments)
    }

    fn in_netns(&self, pod: &Object, argv: &[&str]) -> Result<Output> {
        let node = self.node_of(pod)?;
        let enter = format!("--net={}", self.netns_on(pod, &node)?);
        let mut inside = vec!["nsenter", &enter];
        inside.extend(argv);
        self.on_node(&node, &inside)
    }

    fn on_node(&self, node: &str, argv: &[&str]) -> Result<Output> {
        on_node(&self.lab, node, argv)
    }

    fn outside(&self, argv: &[&str]) -> Result<Output> {
        let mut inside = underlay::inside(self.lab.layout(), "cp");
        let bounded = ["timeout", "-k", "1", LONGEST];
        inside.extend(bounded.iter().chain(argv).map(|word| (*word).to_owned()));
        Ok(output(command::output(&inside, "")?))
    }
}

/// `crictl` on a node of a lab.
pub(crate) fn crictl(lab: &Lab, node: &str, arguments: &[&str]) -> Result<Output> {
    let program = lab.tools().crictl.join("crictl").display().to_string();
    let argv: Vec<&str> = std::iter::once(program.as_str())
        .chain(arguments.iter().copied())
        .collect();
    on_node(lab, node, &argv)
}

fn on_node(lab: &Lab, node: &str, argv: &[&str]) -> Result<Output> {
    let mut bounded = vec!["timeout", "-k", "1", LONGEST];
    bounded.extend(argv);
    Ok(output(command::output(&lab.inside(node, &bounded)?, "")?))
}

fn output(output: std::process::Output) -> Output {
    Output {
        // No status: a signal ended it.
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
