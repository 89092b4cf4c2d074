//! The processes of a lab by name, and how each one is started: `etcd`, `apiserver`,
//! `controller-manager`, `scheduler`, and per node `n1-containerd`, `n1-kubelet`, `n1-kube-proxy`.
//! The same part started again gets the same command line.

use crate::layout::{Layout, index_of};
use crate::process::{self, Process, Start};
use crate::spec::Spec;
use crate::tools::Tools;
use crate::{control_plane, node};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A process that can be stopped, killed and started again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The API server's store.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// A node's containerd. Its containers live on without it.
    Containerd(String),
    /// A node's kubelet.
    Kubelet(String),
    /// A node's kube-proxy.
    KubeProxy(String),
}

impl Part {
    /// Starts it; refuses if it runs.
    pub(crate) fn start(&self, layout: &Layout, spec: &Spec, tools: &Tools) -> Result<()> {
        let (argv, how) = match self {
            Self::Etcd | Self::ApiServer | Self::ControllerManager | Self::Scheduler => (
                control_plane::command(self, layout, spec, tools),
                Start::Direct,
            ),
            Self::Containerd(name) | Self::Kubelet(name) | Self::KubeProxy(name) => {
                (node::command(self, name, layout, tools)?, Start::Guided)
            }
        };
        process::start(layout, &self.to_string(), how, &argv).map(drop)
    }

    /// SIGKILL; nothing to kill is an error, because a test that kills nothing shows nothing.
    pub(crate) fn kill(&self, layout: &Layout) -> Result<()> {
        self.running(layout)?.kill()
    }

    /// SIGTERM, and SIGKILL after ten seconds.
    pub(crate) fn stop(&self, layout: &Layout) -> Result<()> {
        self.running(layout)?.stop(Duration::from_secs(10))
    }

    pub(crate) fn runs(&self, layout: &Layout) -> bool {
        Process::recorded(layout, &self.to_string()).is_some()
    }

    fn running(&self, layout: &Layout) -> Result<Process> {
        Process::recorded(layout, &self.to_string()).with_context(|| {
            let log = layout.log(&self.to_string());
            format!("{self} does not run; its log is {}", log.display())
        })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Etcd => f.write_str("etcd"),
            Self::ApiServer => f.write_str("apiserver"),
            Self::ControllerManager => f.write_str("controller-manager"),
            Self::Scheduler => f.write_str("scheduler"),
            Self::Containerd(node) => write!(f, "{node}-containerd"),
            Self::Kubelet(node) => write!(f, "{node}-kubelet"),
            Self::KubeProxy(node) => write!(f, "{node}-kube-proxy"),
        }
    }
}

impl FromStr for Part {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "etcd" => return Ok(Self::Etcd),
            "apiserver" => return Ok(Self::ApiServer),
            "controller-manager" => return Ok(Self::ControllerManager),
            "scheduler" => return Ok(Self::Scheduler),
            _ => {}
        }
        let of_node = |make: fn(String) -> Self, node: &str| -> Result<Self> {
            index_of(node)?;
            Ok(make(node.to_owned()))
        };
        match text.split_once('-') {
            Some((node, "containerd")) => of_node(Self::Containerd, node),
            Some((node, "kubelet")) => of_node(Self::Kubelet, node),
            Some((node, "kube-proxy")) => of_node(Self::KubeProxy, node),
            _ => bail!(
                "{text:?} is no part: etcd, apiserver, controller-manager, scheduler, and per node \
                 n1-containerd, n1-kubelet, n1-kube-proxy"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "etcd",
            "apiserver",
            "controller-manager",
            "scheduler",
            "n1-kubelet",
            "n12-kube-proxy",
        ] {
            assert_eq!(name.parse::<Part>().unwrap().to_string(), name);
        }
        for bad in [
            "",
            "kubelet",
            "n0-kubelet",
            "n1-kube",
            "../n1-kubelet",
            "n1-kubelet-",
        ] {
            assert!(bad.parse::<Part>().is_err(), "{bad:?}");
        }
    }
}
