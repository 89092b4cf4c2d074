//! `plexus controller`: flags, each also as `PLEXUS_…` and as a key of the configuration file.

use crate::kubernetes::{FirstInterface, NAMESPACE, OwnCidrs};
use crate::log::{self, LogFlags};
use crate::out::print;
use crate::value::{self, Cidrs};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use ipnet::IpNet;
use plexus_client::Server;
use plexus_controller as controller;
use plexus_core::allowed_subnets::{AllowedSubnets, USUAL_RANGES};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The flags of `plexus controller`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Flags {
    /// How to reach the API from outside of a pod.
    #[arg(long, env = "PLEXUS_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// The namespace that Plexus itself is in.
    #[arg(long, env = "PLEXUS_NAMESPACE", default_value = NAMESPACE, value_parser = value::label)]
    namespace: String,
    /// Who this is among the replicas: the pod's name.
    #[arg(long, env = "PLEXUS_IDENTITY", required = true)]
    identity: Option<String>,
    /// Who gives pods their first interface: as the agents are told.
    #[arg(
        long,
        env = "PLEXUS_CLUSTER_NETWORK",
        value_enum,
        default_value = "none"
    )]
    cluster_network: FirstInterface,
    /// Where the addresses of Plexus's own cluster network come from: as the agents are told.
    #[arg(long, env = "PLEXUS_OWN_CIDRS", value_enum, default_value = "node")]
    own_cidrs: OwnCidrs,
    /// For --own-cidrs=blocks: the subnets of the Network cluster-default, comma-separated; it is
    /// made from them unless it exists.
    #[arg(long, env = "PLEXUS_OWN_SUBNETS", value_delimiter = ',', num_args = 0.., value_parser = value::cidr)]
    own_subnets: Vec<IpNet>,
    /// The ranges that the subnets of `routed` Networks must be in, comma-separated; nothing for none: as the agents
    /// are told.
    #[arg(long, env = "PLEXUS_ALLOWED_SUBNETS", default_value = USUAL_RANGES, value_parser = value::cidrs)]
    allowed_subnets: Cidrs,
    /// Where /healthz, /readyz and /metrics are served, such as 127.0.0.1:9092; default: nowhere.
    #[arg(long, env = "PLEXUS_HEALTH_ADDRESS")]
    health_address: Option<SocketAddr>,
    /// A unix socket on which the same is served: `plexus controller status` asks there; default: none.
    #[arg(long, env = "PLEXUS_HEALTH_SOCKET")]
    health_socket: Option<PathBuf>,
    /// Seconds that a Node must have been gone before its blocks return, from 1 to 3600.
    #[arg(long, env = "PLEXUS_NODE_GRACE", default_value_t = 60, value_parser = value::number::<1, 3600>)]
    node_grace: u16,
    #[command(flatten)]
    log: LogFlags,
    /// File with these settings, as `key = value` (TOML); flags and environment win.
    #[arg(long, env = "PLEXUS_CONFIG", default_value = crate::config::CONTROLLER)]
    config: PathBuf,
    #[command(subcommand)]
    query: Option<Query>,
}

/// What a controller is asked.
#[derive(Debug, Subcommand)]
enum Query {
    /// Whether the controller beside us is ready, and what is missing; fails if it is not.
    Status {
        /// Whether it goes on instead: what a liveness probe asks.
        #[arg(long)]
        live: bool,
        /// Its socket.
        #[arg(long, env = "PLEXUS_HEALTH_SOCKET", default_value = SOCKET)]
        socket: PathBuf,
    },
}

/// Where the manifest has the socket.
const SOCKET: &str = "/run/plexus/controller.sock";

/// Runs the controller until it is asked to stop, or asks the one that runs.
pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    if let Some(Query::Status { live, socket }) = &flags.query {
        return status(*live, socket);
    }
    log::start(&flags.log)?;
    controller::run(options(flags))?;
    Ok(())
}

/// Prints the answer; fails if it is not a good one.
fn status(live: bool, socket: &Path) -> anyhow::Result<()> {
    let path = if live { "/healthz" } else { "/readyz" };
    let answer = plexus_cli::agent::get(socket, path);
    let (status, body) = answer.with_context(|| {
        let socket = socket.display();
        format!("the controller at {socket} does not answer: was it started with --health-socket={socket}?")
    })?;
    if status != 200 {
        bail!("{}", body.trim_end());
    }
    print(&body)
}

fn options(flags: Flags) -> controller::Options {
    controller::Options {
        server: flags
            .kubeconfig
            .map_or(Server::Inferred, Server::Kubeconfig),
        namespace: flags.namespace,
        identity: flags.identity.unwrap_or_default(),
        health: flags.health_address,
        health_socket: flags.health_socket,
        cluster_network: match flags.cluster_network {
            FirstInterface::Own => controller::ClusterNetwork::Own,
            FirstInterface::Delegate => controller::ClusterNetwork::Delegate,
            FirstInterface::None => controller::ClusterNetwork::None,
        },
        own_cidrs: match flags.own_cidrs {
            OwnCidrs::Node => controller::OwnCidrs::Node,
            OwnCidrs::Blocks => controller::OwnCidrs::Blocks(flags.own_subnets),
        },
        allowed_subnets: AllowedSubnets::new(flags.allowed_subnets.0),
        node_grace: Duration::from_secs(flags.node_grace.into()),
    }
}
