//! `plexus down`: stops what `plexus up` runs, and removes every trace of it from this machine.

use crate::ask;
use crate::up::{Lock, Machine, PathFlags, Paths, agent, is_ours, need_root};
use anyhow::{Context, bail};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long it may take to stop: what is in flight is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// The flags of `plexus down`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Take the interfaces of containers that still run away.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    paths: PathFlags,
}

/// Stops and removes.
pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    need_root("plexus down")?;
    let paths = flags.paths.paths()?;
    if !paths.state_dir.exists() && !paths.socket.exists() {
        return say("there is nothing to remove");
    }
    if let Some(process) = Lock::holder(&paths.lock())? {
        if !flags.force {
            refuse_while_in_use(&paths)?;
        }
        stop(process, &paths)?;
    }
    let alone = Lock::take(&paths.lock())?;
    let nobody = Machine {
        node: String::new(),
        node_ips: Vec::new(),
        subnets: Vec::new(),
        shim: None,
        query_address: None,
    };
    let removed = plexus_agent::uninstall(agent(&paths, &nobody, None), flags.force)?;
    for what in removed {
        say(&format!("removed {what}"))?;
    }
    remove_rest(&paths)?;
    drop(alone);
    say("plexus is gone from this machine; IP forwarding stays as it is, others may rely on it")
}

/// Asked before anything is stopped.
fn refuse_while_in_use(paths: &Paths) -> anyhow::Result<()> {
    let (status, text) = ask::get(&paths.socket, "/attachments").context(
        "the agent cannot be asked which containers there are: try again, or use --force",
    )?;
    if status != 200 {
        bail!("which containers there are is not known: {}", text.trim());
    }
    let all: Vec<serde_json::Value> = serde_json::from_str(&text)
        .context("the agent's answer about its containers cannot be read")?;
    let containers: BTreeSet<String> = all
        .iter()
        .filter_map(|one| one.get("container")?.as_str())
        .map(|id| id.chars().take(12).collect())
        .collect();
    if containers.is_empty() {
        return Ok(());
    }
    let shown: Vec<&str> = containers.iter().take(8).map(String::as_str).collect();
    bail!(
        "{} of this machine's containers still have interfaces ({}{}): stop them first, or take \
         their interfaces away with --force",
        containers.len(),
        shown.join(", "),
        if containers.len() > shown.len() {
            ", …"
        } else {
            ""
        }
    )
}

/// Asks it to stop, and waits until it has.
fn stop(process: Pid, paths: &Paths) -> anyhow::Result<()> {
    let number = process.as_raw_nonzero();
    say(&format!("stopping plexus up (process {number})"))?;
    match kill_process(process, Signal::TERM) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => return Err(error).context(format!("cannot stop process {number}")),
    }
    let until = Instant::now() + PATIENCE;
    while Lock::holder(&paths.lock())? == Some(process) {
        if Instant::now() > until {
            bail!(
                "process {number} has not ended within {} s: look at its log, then try again",
                PATIENCE.as_secs()
            );
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// What the agent does not know of: the API's store, the kubeconfig, the log, empty directories.
fn remove_rest(paths: &Paths) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    let mut note = |path: &Path, result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            problems.push(format!("{}: {error}", path.display()));
        }
        _ => {}
    };
    note(
        &paths.server_dir,
        std::fs::remove_dir_all(&paths.server_dir),
    );
    if is_ours(&paths.kubeconfig) {
        note(&paths.kubeconfig, std::fs::remove_file(&paths.kubeconfig));
    }
    for file in [&paths.api_socket, &paths.log(), &paths.lock()] {
        note(file, std::fs::remove_file(file));
    }
    for directory in paths.own_directories() {
        // Whatever else is in there is somebody else's.
        let _ = std::fs::remove_dir(directory);
    }
    if !problems.is_empty() {
        bail!(
            "not everything could be removed: {}; repeat it",
            problems.join("; ")
        );
    }
    Ok(())
}

fn say(text: &str) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}
