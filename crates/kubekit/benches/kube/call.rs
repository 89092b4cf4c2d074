//! One execution of a CNI plugin as containerd makes it, with a clock around it.

use anyhow::{Context, Result};
use plexus_testkit::bench::timed;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// Where containerd keeps namespaces; the agent's pod sees it.
const NAMESPACES: &str = "/var/run/netns";

/// A pod's ADD and DEL: the program, and what it is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) program: String,
    /// The sandbox, and the name of its namespace.
    pub(crate) container: String,
    pub(crate) pod: Pod,
    /// The plugin's configuration, with `name`, `cniVersion` and `runtimeConfig`, as libcni makes it.
    pub(crate) config: Value,
}

/// The pod that it is made for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Call {
    pub(crate) fn netns(&self) -> String {
        format!("{NAMESPACES}/{}", self.container)
    }

    /// Gives the time and the result.
    pub(crate) fn add(&self) -> Result<(Duration, Value)> {
        self.run("ADD", &self.config)
    }

    /// The runtime gives the result back.
    pub(crate) fn del(&self, result: Value) -> Result<Duration> {
        let mut config = self.config.clone();
        config["prevResult"] = result;
        Ok(self.run("DEL", &config)?.0)
    }

    fn run(&self, verb: &str, config: &Value) -> Result<(Duration, Value)> {
        let pod = &self.pod;
        let arguments = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE={};K8S_POD_NAME={};K8S_POD_INFRA_CONTAINER_ID={};K8S_POD_UID={}",
            pod.namespace, pod.name, self.container, pod.uid
        );
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", &self.container)
            .env("CNI_NETNS", self.netns())
            .env("CNI_IFNAME", "eth0")
            .env("CNI_PATH", "/opt/cni/bin")
            .env("CNI_ARGS", arguments);
        timed(&mut command, config).with_context(|| format!("{verb} for {} failed", pod.name))
    }
}
