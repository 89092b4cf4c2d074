//! `plexus ask`: one GET to an agent's socket, for people and for the kubelet's probes.

use anyhow::{Context, bail};
use clap::Args;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than any answer takes; a probe has its own patience.
const PATIENCE: Duration = Duration::from_secs(5);

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
    std::io::stdout().write_all(body.as_bytes())?;
    Ok(())
}

/// Status and body of an answer.
pub(crate) fn get(socket: &Path, path: &str) -> anyhow::Result<(u16, String)> {
    let shown = socket.display();
    let mut stream = UnixStream::connect(socket).with_context(|| {
        format!("cannot connect to {shown}: does the agent run, and are you root?")
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .with_context(|| format!("the agent at {shown} does not answer"))?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .with_context(|| format!("{shown} does not speak HTTP"))?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.with_context(|| format!("{shown} does not speak HTTP"))?;
    Ok((status, body.to_owned()))
}
