//! `plexus ask`: one GET to an agent's socket, for people and for the kubelet's probes.

use crate::out::print;
use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};

/// The flags of `plexus ask`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// What to ask for: /healthz, /readyz, /metrics, /attachments[?pod=namespace/name], /vm-cfg/…, /vm/….
    path: String,
    /// The agent's socket.
    #[arg(long, env = "PLEXUS_SOCKET", default_value = "/run/plexus/agent.sock")]
    socket: PathBuf,
}

/// Prints the answer; fails if it is not a good one.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    if !flags.path.starts_with('/') || flags.path.contains(char::is_whitespace) {
        bail!(
            "{:?} is not a path: it begins with / and has no blanks, such as /readyz",
            flags.path
        );
    }
    let (status, body) = get(&flags.socket, &flags.path)?;
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
