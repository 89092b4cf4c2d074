//! Implements `cluster` for a real Kubernetes: a running lab, found by its state directory.
//! What only Kubernetes has is here and not in the trait.

mod broken;

use crate::api::Api;
use crate::cluster::{Cluster, NodeFiles, Object, Output, Sandbox};
use crate::lab::Lab;
use crate::layout::{CONTROL_PLANE_V4, CONTROL_PLANE_V6};
use crate::{command, underlay};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// Where the shared lab's state directory is told.
pub const STATE: &str = "PLEXUS_KUBE_STATE";

/// Seconds that a program started by a test may take.
pub(crate) const COMMAND_TIMEOUT_SECONDS: &str = "30";

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

    /// `crictl` on a node.
    pub fn crictl(&self, node: &str, arguments: &[&str]) -> Result<Output> {
        crictl(&self.lab, node, arguments)
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

    /// What the node's agent has logged lately.
    pub fn agent_log(&self, node: &str) -> Result<String> {
        let (agent, _) = self.of_component("agent", |on| on == node)?;
        let arguments = ["logs", "-n", "plexus-system", &agent, "--since=5m"];
        self.kubectl(&arguments, "")?.text()
    }

    /// Name and node of a running pod of Plexus.
    fn of_component(&self, component: &str, on: impl Fn(&str) -> bool) -> Result<(String, String)> {
        let pods = self.list("v1", "Pod", "plexus-system")?;
        let mut found = pods.iter().filter_map(|pod| {
            let is = pod["metadata"]["labels"]["app.kubernetes.io/component"] == component;
            let node = pod["spec"]["nodeName"].as_str().filter(|node| on(node))?;
            let stays = pod["metadata"]["deletionTimestamp"].is_null();
            let name = pod["metadata"]["name"].as_str()?;
            (is && stays).then(|| (name.to_owned(), node.to_owned()))
        });
        found
            .next()
            .with_context(|| format!("no pod of Plexus's {component}"))
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
    fn api(&self) -> &Api {
        self.lab.api()
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> Result<Output> {
        let program = self.lab.tools().kubernetes.join("kubectl");
        kubectl(&program, &self.lab.layout().kubeconfig(), arguments, input)
    }

    fn nodes(&self) -> Result<Vec<String>> {
        Ok(self.lab.spec()?.nodes.into_iter().collect())
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
        let bounded = ["timeout", "-k", "1", COMMAND_TIMEOUT_SECONDS];
        inside.extend(bounded.iter().chain(argv).map(|word| (*word).to_owned()));
        Ok(output(command::output(&inside, "")?))
    }

    fn outside_addresses(&self) -> [&'static str; 2] {
        [CONTROL_PLANE_V4, CONTROL_PLANE_V6]
    }

    fn files(&self, _node: &str) -> Result<NodeFiles> {
        let text = str::to_owned;
        Ok(NodeFiles {
            plugins: text("/opt/cni/bin"),
            shim: text("/opt/cni/bin/plexus-cni"),
            configs: text("/etc/cni/net.d"),
            journal: text("/var/lib/plexus/journal.db"),
            socket: text("/run/plexus/agent.sock"),
            routers: text("/run/plexus/routers"),
        })
    }

    fn sandbox_of(&self, pod: &Object) -> Result<Sandbox> {
        let node = self.node_of(pod)?;
        let id = self.sandbox_on(pod, &node)?;
        let text = self.crictl(&node, &["inspectp", &id])?.text()?;
        let state: Value = serde_json::from_str(&text).context("crictl printed no JSON")?;
        let named = state["info"]["cniResult"]["Interfaces"].as_object();
        let inside = named.into_iter().flatten().filter(|(name, link)| {
            *name != "lo" && link["Sandbox"].as_str().is_some_and(|s| !s.is_empty())
        });
        let interfaces = inside.map(|(name, _)| name.clone()).collect();
        Ok(Sandbox { id, interfaces })
    }

    fn beside_controller(&self, argv: &[&str]) -> Result<Output> {
        let (_, node) = self.of_component("controller", |_| true)?;
        self.on_node(&node, argv)
    }
}

/// `kubectl` with this kubeconfig and this input, for as long as a program of a test may run.
pub(crate) fn kubectl(
    program: &Path,
    kubeconfig: &Path,
    arguments: &[&str],
    input: &str,
) -> Result<Output> {
    let program = program.display().to_string();
    let config = format!("--kubeconfig={}", kubeconfig.display());
    let mut argv = vec![
        "timeout",
        "-k",
        "1",
        COMMAND_TIMEOUT_SECONDS,
        &program,
        &config,
    ];
    argv.extend(arguments);
    Ok(output(command::output(&argv, input)?))
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
    let mut bounded = vec!["timeout", "-k", "1", COMMAND_TIMEOUT_SECONDS];
    bounded.extend(argv);
    Ok(output(command::output(&lab.inside(node, &bounded)?, "")?))
}

pub(crate) fn output(output: std::process::Output) -> Output {
    Output {
        // No status: a signal ended it.
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
