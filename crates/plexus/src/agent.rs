//! `plexus agent`: flags, each also as `PLEXUS_…` and as a key of the configuration file.

use crate::kubernetes::ClusterFlags;
use crate::log::{self, LogFlags};
use crate::query::{self, Query};
use crate::value::{self, PluginTypes};
use clap::Args;
use plexus_agent::Options;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The flags of `plexus agent`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Flags {
    /// Name of this node, for logs and records.
    #[arg(long, env = "PLEXUS_NODE", default_value = "localhost")]
    node: String,
    /// Unix socket that plexus-cni connects to; one agent per socket.
    #[arg(long, env = "PLEXUS_SOCKET", default_value = "/run/plexus/agent.sock")]
    socket: PathBuf,
    /// Directory of the journal; one agent per directory.
    #[arg(long, env = "PLEXUS_STATE_DIR", default_value = "/var/lib/plexus")]
    state_dir: PathBuf,
    /// Directory in which runtimes look for CNI plugins.
    #[arg(long, env = "PLEXUS_CNI_BIN_DIR", default_value = "/opt/cni/bin")]
    cni_bin_dir: PathBuf,
    /// Directory in which runtimes look for CNI configurations.
    #[arg(long, env = "PLEXUS_CNI_CONF_DIR", default_value = "/etc/cni/net.d")]
    cni_conf_dir: PathBuf,
    /// Directory of the plugins to execute, if not the CNI plugin directory.
    #[arg(long, env = "PLEXUS_DELEGATE_BIN_DIR")]
    delegate_bin_dir: Option<PathBuf>,
    /// Plugin types that may be executed, comma-separated, nothing for none; default: all in the directory.
    #[arg(long, env = "PLEXUS_ALLOW_DELEGATES", value_parser = value::plugin_types)]
    allow_delegates: Option<PluginTypes>,
    /// How many plugins are executed at a time, from 1 to 256.
    #[arg(long, env = "PLEXUS_DELEGATES_AT_A_TIME", default_value_t = 4, value_parser = value::number::<1, 256>)]
    delegates_at_a_time: u16,
    /// Seconds that an executed plugin may take, from 1 to 3600.
    #[arg(long, env = "PLEXUS_DELEGATE_TIMEOUT", default_value_t = 60, value_parser = value::number::<1, 3600>)]
    delegate_timeout: u16,
    /// How many ADDs may wait or run at a time, from 1 to 10000; more are told to try again later.
    #[arg(long, env = "PLEXUS_QUEUE", default_value_t = 512, value_parser = value::number::<1, 10_000>)]
    queue: u16,
    /// In a container: where the host's / is; plugins are looked for and executed in there.
    #[arg(long, env = "PLEXUS_HOST_ROOT")]
    host_root: Option<PathBuf>,
    /// Where queries are answered besides the socket, such as 127.0.0.1:9091; loopback only.
    #[arg(long, env = "PLEXUS_QUERY_ADDRESS", value_parser = value::loopback)]
    query_address: Option<SocketAddr>,
    /// The plexus-cni to install in the CNI plugin directory; default: nothing is installed.
    #[arg(long, env = "PLEXUS_SHIM_SOURCE")]
    shim_source: Option<PathBuf>,
    #[command(flatten)]
    log: LogFlags,
    /// File with these settings, as `key = value` (TOML); flags and environment win.
    #[arg(long, env = "PLEXUS_CONFIG", default_value = crate::config::AGENT)]
    config: PathBuf,
    #[command(flatten)]
    kubernetes: ClusterFlags,
    #[command(subcommand)]
    query: Option<Query>,
}

/// Runs the agent until it is asked to stop, or asks the one that runs.
pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    if let Some(query) = &flags.query {
        return query::run(query);
    }
    log::start(&flags.log)?;
    plexus_agent::run(Options {
        node: flags.node,
        socket: flags.socket,
        state_dir: flags.state_dir,
        cni_bin_dir: flags.cni_bin_dir,
        cni_conf_dir: flags.cni_conf_dir,
        delegate_bin_dir: flags.delegate_bin_dir,
        allowed_delegates: flags.allow_delegates.map(|list| list.0),
        delegates_at_a_time: flags.delegates_at_a_time.into(),
        delegate_timeout: Duration::from_secs(flags.delegate_timeout.into()),
        queue: flags.queue.into(),
        host_root: flags.host_root,
        query_address: flags.query_address,
        shim_source: flags.shim_source,
        kubernetes: flags.kubernetes.cluster()?,
    })?;
    Ok(())
}
