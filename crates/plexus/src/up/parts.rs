//! The parts of one machine's Plexus, wired together: where the agent finds the API, how the
//! controller is kept running. Each part is the same that runs by itself elsewhere.

use super::paths::Paths;
use crate::kubernetes::NAMESPACE;
use anyhow::Context;
use ipnet::IpNet;
use plexus_agent::{ClusterNetwork, Kubernetes};
use plexus_client::Server;
use plexus_controller as controller;
use plexus_core::nics::NicChoice;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// Pause before a controller that has ended is started again.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// What there is to say about this machine.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) node: String,
    pub(crate) node_ips: Vec<IpAddr>,
    pub(crate) subnets: Vec<IpNet>,
    pub(crate) shim: Option<PathBuf>,
    pub(crate) query_address: Option<SocketAddr>,
}

/// How the agent runs; without an API it is one that only cleans up.
pub(crate) fn agent(paths: &Paths, machine: &Machine, api: Option<&Path>) -> plexus_agent::Options {
    plexus_agent::Options {
        node: machine.node.clone(),
        socket: paths.socket.clone(),
        state_dir: paths.state_dir.clone(),
        cni_bin_dir: paths.cni_bin_dir.clone(),
        cni_conf_dir: paths.cni_conf_dir.clone(),
        delegate_bin_dir: None,
        allowed_delegates: None,
        delegates_at_a_time: 4,
        delegate_timeout: Duration::from_secs(60),
        queue: 512,
        host_root: None,
        query_address: machine.query_address,
        shim_source: machine.shim.clone(),
        kubernetes: api.map(|socket| Kubernetes {
            server: Server::Socket(socket.to_owned()),
            namespace: NAMESPACE.to_owned(),
            cluster_name: "k8s".to_owned(),
            cluster_cidrs: machine.subnets.clone(),
            node_ips: machine.node_ips.clone(),
            cluster_network: ClusterNetwork::OwnBlocks,
            containers: true,
            register_node: true,
            nics: NicChoice::default(),
        }),
    }
}

/// The controller on a thread of its own, started again whenever it ends.
pub(crate) struct Controller {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Controller {
    pub(crate) fn start(machine: &Machine, api: &Path) -> anyhow::Result<Self> {
        let mut options = controller::Options::new(machine.node.clone());
        options.server = Server::Socket(api.to_owned());
        options.namespace = NAMESPACE.to_owned();
        options.cluster_network = controller::ClusterNetwork::Own;
        options.own_cidrs = controller::OwnCidrs::Blocks(machine.subnets.clone());
        let (stop, stop_requested) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name("controller".to_owned())
            .spawn(move || run_controller(&options, &stop_requested))
            .context("cannot start the controller's thread")?;
        Ok(Self { stop, thread })
    }

    /// Waits until it has ended.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(true);
        if self.thread.join().is_err() {
            tracing::error!("the controller's thread ended badly");
        }
    }
}

fn run_controller(options: &controller::Options, stop_requested: &watch::Receiver<bool>) {
    loop {
        let mut stop = stop_requested.clone();
        let until = async move {
            // Whoever could ask is gone: that asks too.
            drop(stop.wait_for(|stop| *stop).await);
        };
        let ended = controller::run_until(options.clone(), until);
        if *stop_requested.borrow() {
            return;
        }
        let error = ended
            .err()
            .map(|error| format!("{:#}", anyhow::Error::new(error)));
        let error = error.unwrap_or_default();
        tracing::warn!(error, "the controller has ended: it is started again");
        std::thread::sleep(RESTART_DELAY);
    }
}
