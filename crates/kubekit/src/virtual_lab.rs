//! Implements `cluster` for a lab of `plexus lab`: virtual nodes, the embedded API, no containers.
//! Programs are this machine's, in the network namespace of the pod or node; what a pod's own program would
//! do, serving its name, a thread of the test does in its place.

mod broken;
mod observer;
mod serve;

pub use observer::LabView;

use crate::api::Api;
use crate::cluster::{Cluster, NodeFiles, Object, Output, Sandbox, is_ready};
use crate::kubernetes::{COMMAND_TIMEOUT_SECONDS, kubectl, output};
use crate::{command, tools};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use serve::Servers;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Where the shared lab's name is told.
pub const LAB: &str = "PLEXUS_LAB";
/// The program whose verb `lab` is.
const PROGRAM: &str = "PLEXUS_BIN";
/// What nodes see when somebody outside asks them.
const FABRIC: [&str; 2] = ["10.200.0.254", "fd00:200::fe"];

/// A running lab as a cluster under test.
pub struct VirtualLab {
    name: String,
    program: PathBuf,
    directory: PathBuf,
    kubeconfig: PathBuf,
    api: Api,
    servers: Servers,
}

impl VirtualLab {
    /// The lab of that name, by its own word.
    pub fn open(name: &str) -> Result<Self> {
        let program = match std::env::var_os(PROGRAM) {
            Some(path) => PathBuf::from(path),
            None => bail!("{PROGRAM} is not set: set it to the plexus that made the lab"),
        };
        let argv = lab_argv(&program, name, &["status", "-o", "json"]);
        let status = command::output(&argv, "")?;
        let status: Value = serde_json::from_slice(&status.stdout).with_context(|| {
            let message = String::from_utf8_lossy(&status.stderr);
            format!("no lab {name}: `plexus lab up --lab {name}` makes it: {message}")
        })?;
        let path = |key: &str| {
            let text = status[key].as_str();
            text.map(PathBuf::from)
                .with_context(|| format!("lab {name} has no {key}"))
        };
        let kubeconfig = path("kubeconfig")?;
        Ok(Self {
            name: name.to_owned(),
            directory: path("directory")?,
            api: Api::connect(&kubeconfig)?,
            kubeconfig,
            program,
            servers: Servers::default(),
        })
    }

    /// The lab that this test run shares, named by `PLEXUS_LAB`.
    pub fn shared() -> Result<&'static Self> {
        static SHARED: OnceLock<Result<VirtualLab>> = OnceLock::new();
        let opened = SHARED.get_or_init(|| {
            let name = std::env::var(LAB).with_context(|| format!("{LAB} is not set"))?;
            Self::open(&name)
        });
        match opened {
            Ok(lab) => Ok(lab),
            Err(error) => bail!("{error:#}"),
        }
    }

    /// Runs a program in a namespace of the lab that `plexus lab exec` knows, on a machine of that name.
    fn run(&self, target: &[&str], host: &str, argv: &[&str]) -> Result<Output> {
        let mut words = vec!["exec"];
        words.extend(target);
        words.extend(["--", "timeout", "-k", "1", COMMAND_TIMEOUT_SECONDS]);
        // Only a machine has a name of its own; here it is that of the namespace's owner.
        let named = "hostname \"$0\"; exec \"$@\"";
        words.extend(["unshare", "--uts", "sh", "-c", named, host]);
        words.extend(argv);
        let argv = lab_argv(&self.program, &self.name, &words);
        Ok(output(command::output(&argv, "")?))
    }

    /// What the lab's keeper has written down about a pod's sandbox.
    fn record(&self, pod: &Object) -> Result<Value> {
        let seen = self
            .get(pod)?
            .with_context(|| format!("{pod} is not there"))?;
        let uid = seen["metadata"]["uid"].as_str().unwrap_or_default();
        let node = self.node_of(pod)?;
        let path = self.directory.join(node).join(format!("pods/{uid}.json"));
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("{pod} has no sandbox: {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
    }

    /// What the lab was asked to be.
    fn spec(&self) -> Result<Value> {
        let path = self.directory.join("lab.json");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_str(&text)?)
    }

    fn view(&self) -> LabView {
        LabView {
            program: self.program.clone(),
            name: self.name.clone(),
            directory: self.directory.clone(),
        }
    }

    fn node_file(&self, node: &str, name: &str) -> String {
        let path = self.directory.join(node).join(name);
        path.display().to_string()
    }
}

impl Cluster for VirtualLab {
    fn api(&self) -> &Api {
        &self.api
    }

    fn kubectl(&self, arguments: &[&str], input: &str) -> Result<Output> {
        kubectl(&tools::kubectl()?, &self.kubeconfig, arguments, input)
    }

    fn nodes(&self) -> Result<Vec<String>> {
        let nodes = self.list("v1", "Node", "")?;
        let names = nodes
            .iter()
            .filter_map(|node| Some(node["metadata"]["name"].as_str()?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok(names)
    }

    fn exec(&self, pod: &Object, argv: &[&str]) -> Result<Output> {
        // The image of the tests' pods has nothing else.
        let mut inside = vec!["busybox"];
        inside.extend(argv);
        self.in_netns(pod, &inside)
    }

    fn in_netns(&self, pod: &Object, argv: &[&str]) -> Result<Output> {
        self.run(&[&pod.name, "-n", &pod.namespace], &pod.name, argv)
    }

    fn on_node(&self, node: &str, argv: &[&str]) -> Result<Output> {
        self.run(&["--node", node], node, argv)
    }

    fn outside(&self, argv: &[&str]) -> Result<Output> {
        self.run(&["--outside"], "outside", argv)
    }

    fn outside_addresses(&self) -> [&'static str; 2] {
        FABRIC
    }

    fn files(&self, node: &str) -> Result<NodeFiles> {
        let spec = self.spec()?;
        let plugins = spec["programs"]["delegates"].as_str();
        Ok(NodeFiles {
            plugins: plugins.map_or_else(|| self.node_file(node, "cni/bin"), str::to_owned),
            shim: self.node_file(node, "cni/bin/plexus-cni"),
            configs: self.node_file(node, "cni/net.d"),
            journal: self.node_file(node, "state/journal.db"),
            socket: self.node_file(node, "agent.sock"),
            routers: self.node_file(node, "routers"),
        })
    }

    fn sandbox_of(&self, pod: &Object) -> Result<Sandbox> {
        let record = self.record(pod)?;
        let id = record["container"].as_str().context("no container")?;
        let named = record["result"]["interfaces"].as_array();
        let inside = named.into_iter().flatten().filter(|link| {
            link["name"] != "lo" && link["sandbox"].as_str().is_some_and(|s| !s.is_empty())
        });
        Ok(Sandbox {
            id: id.to_owned(),
            interfaces: inside
                .filter_map(|link| Some(link["name"].as_str()?.to_owned()))
                .collect(),
        })
    }

    fn beside_controller(&self, argv: &[&str]) -> Result<Output> {
        self.outside(argv)
    }

    fn wait_ready(&self, pod: &Object, timeout: Duration) -> Result<Value> {
        let seen = self.wait_for(pod, timeout, &is_ready)?;
        let command = seen["spec"]["containers"][0]["command"].to_string();
        let on_host = seen["spec"]["hostNetwork"] == true;
        if command.contains("httpd") && !on_host {
            let record = self.record(pod)?;
            let netns = record["netns"].as_str().context("no network namespace")?;
            self.servers
                .start(&pod.name, &Path::new("/run/netns").join(netns))?;
        }
        Ok(seen)
    }
}

fn lab_argv(program: &Path, lab: &str, words: &[&str]) -> Vec<String> {
    let program = program.display().to_string();
    let all = [program.as_str(), "lab", "--lab", lab].into_iter();
    all.chain(words.iter().copied())
        .map(str::to_owned)
        .collect()
}
