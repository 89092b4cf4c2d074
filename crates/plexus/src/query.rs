//! `plexus agent status|attachments|metrics`: one GET to an agent's socket, for people and for the kubelet's probes.

use crate::out::print;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// What an agent is asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Query {
    /// Whether the agent of this node is ready, and what is missing; fails if it is not.
    Status {
        /// Whether its background work goes on instead: what a liveness probe asks.
        #[arg(long)]
        live: bool,
        #[command(flatten)]
        agent: AgentFlags,
    },
    /// The interfaces that it knows, as JSON.
    Attachments {
        /// Those of one pod, as NAMESPACE/NAME.
        #[arg(long, value_name = "POD")]
        pod: Option<String>,
        #[command(flatten)]
        agent: AgentFlags,
    },
    /// Its metrics, as Prometheus reads them.
    Metrics {
        #[command(flatten)]
        agent: AgentFlags,
    },
}

/// Which agent.
#[derive(Debug, Args)]
pub(crate) struct AgentFlags {
    /// The agent's socket.
    #[arg(long, env = "PLEXUS_SOCKET", default_value = crate::paths::SOCKET)]
    socket: PathBuf,
}

/// Prints the answer; fails if it is not a good one.
pub(crate) fn run(query: &Query) -> anyhow::Result<()> {
    let (path, agent) = match query {
        Query::Status { live: true, agent } => ("/healthz".to_owned(), agent),
        Query::Status { live: false, agent } => ("/readyz".to_owned(), agent),
        Query::Attachments { pod: None, agent } => ("/attachments".to_owned(), agent),
        Query::Attachments {
            pod: Some(pod),
            agent,
        } => {
            if !pod.contains('/') || pod.contains(|c: char| c.is_whitespace() || c.is_control()) {
                bail!("{pod:?} is not a pod: write NAMESPACE/NAME");
            }
            (format!("/attachments?pod={pod}"), agent)
        }
        Query::Metrics { agent } => ("/metrics".to_owned(), agent),
    };
    let (status, body) = get(&agent.socket, &path)?;
    if status != 200 {
        bail!("{}", body.trim_end());
    }
    print(&body)
}

/// Status and body of an answer.
pub(crate) fn get(socket: &Path, path: &str) -> anyhow::Result<(u16, String)> {
    plexus_cli::agent::get(socket, path).with_context(|| {
        let socket = socket.display();
        format!("the agent at {socket} does not answer: does it run, and are you root?")
    })
}
