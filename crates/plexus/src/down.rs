//! `plexus down`: stops what `plexus up` runs, and removes every trace of it from this machine.

use crate::ask;
use crate::out::{need_root, print};
use crate::up::{Alone, Lock, Machine, PathFlags, Paths, agent, is_ours};
use anyhow::{Context, bail};
use clap::Args;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long it may take to stop: what is in flight is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);
/// The CNI configuration that an agent of Kubernetes has too.
const FOR_PODS: &str = "00-plexus.conflist";

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
    need_root("plexus down changes this host's networks")?;
    let paths = flags.paths.paths()?;
    let nobody = Machine {
        node: String::new(),
        node_ips: Vec::new(),
        subnets: Vec::new(),
        shim: None,
        query_address: None,
    };
    let options = agent(&paths, &nobody, None);
    let for_runtimes = plexus_agent::written_for_runtimes(&options)
        .with_context(|| format!("cannot look into {}", paths.cni_conf_dir.display()))?;
    if for_runtimes.is_empty() && !has_traces(&paths) {
        return print("there is nothing to remove\n");
    }
    if !flags.force {
        refuse_what_is_not_ours(&paths, &for_runtimes)?;
    }
    if let Some(process) = Lock::holder(&paths.lock())? {
        if !flags.force {
            refuse_while_in_use(&paths)?;
        }
        stop(process, &paths)?;
    }
    let lock = Lock::take(&paths.lock())?;
    let alone = Alone::take()?;
    let removed = plexus_agent::uninstall(options, flags.force)?;
    let rest = remove_rest(&paths);
    drop((alone, lock));
    let removed = removed.iter().map(|what| format!("removed {what}\n"));
    print(&removed.collect::<String>())?;
    for left in rest? {
        print(&format!("(left: {left})\n"))?;
    }
    print("plexus is gone from this machine; IP forwarding stays as it is, others may rely on it\n")
}

/// Whether anything is there besides what runtimes look for: of what runs, or of what ran and was removed
/// by hand in part.
fn has_traces(paths: &Paths) -> bool {
    let places = [
        &paths.state_dir,
        &paths.server_dir,
        &paths.socket,
        &paths.api_socket,
    ];
    places.iter().any(|place| place.exists()) || is_ours(&paths.kubeconfig)
}

/// An agent of Kubernetes has the same places, but neither a server nor networks for containers.
fn refuse_what_is_not_ours(paths: &Paths, for_runtimes: &[PathBuf]) -> anyhow::Result<()> {
    let only_up_makes = [&paths.server_dir, &paths.lock(), &paths.api_socket];
    let is_network = |file: &PathBuf| {
        file.extension() == Some("conflist".as_ref()) && file.file_name() != Some(FOR_PODS.as_ref())
    };
    if only_up_makes.iter().any(|place| place.exists())
        || is_ours(&paths.kubeconfig)
        || for_runtimes.iter().any(is_network)
    {
        return Ok(());
    }
    let there = [&paths.state_dir, &paths.socket]
        .into_iter()
        .chain(for_runtimes);
    let there = there
        .filter(|place| place.exists())
        .map(|place| place.display().to_string());
    bail!(
        "{} was not made by plexus up: is this a node of Kubernetes? there the DaemonSet is what to delete; \
         --force removes it all the same",
        there.collect::<Vec<_>>().join(", ")
    )
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
    print(&format!("stopping plexus up (process {number})\n"))?;
    let held = pidfd_open(process, PidfdFlags::empty());
    // It has the lock still: the number means it and nobody else.
    let signalled = match held {
        Ok(held) if Lock::holder(&paths.lock())? == Some(process) => {
            pidfd_send_signal(held, Signal::TERM)
        }
        other => other.map(drop),
    };
    match signalled {
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

/// Removes what the agent does not know of: the API's store, the kubeconfig, the log, empty
/// directories. Gives what stays on purpose.
fn remove_rest(paths: &Paths) -> anyhow::Result<Vec<String>> {
    let mut left = Vec::new();
    let mut problems = Vec::new();
    let mut note = |path: &Path, result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            problems.push(format!("{}: {error}", path.display()));
        }
        _ => {}
    };
    if is_as_published(paths) {
        note(&paths.kubeconfig, std::fs::remove_file(&paths.kubeconfig));
    } else if paths.kubeconfig.exists() {
        let kubeconfig = paths.kubeconfig.display();
        left.push(format!("{kubeconfig} is not what plexus up wrote"));
    }
    for file in [&paths.api_socket, &paths.log()] {
        note(file, std::fs::remove_file(file));
    }
    // Last what says that all of this is ours.
    note(
        &paths.server_dir,
        std::fs::remove_dir_all(&paths.server_dir),
    );
    note(&paths.lock(), std::fs::remove_file(paths.lock()));
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
    Ok(left)
}

/// Somebody may have added to it, or have put his own there. Where the server's own is gone, it is to
/// be one of an embedded API.
fn is_as_published(paths: &Paths) -> bool {
    match std::fs::read(paths.server_dir.join("kubeconfig")) {
        Ok(server) => std::fs::read(&paths.kubeconfig).is_ok_and(|published| published == server),
        Err(_) => is_ours(&paths.kubeconfig),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_what_up_made_is_removed() {
        let root = std::env::temp_dir().join(format!("px-down-{}", std::process::id()));
        let state_dir = root.join("state");
        let paths = Paths {
            socket: root.join("agent.sock"),
            api_socket: root.join("api.sock"),
            server_dir: state_dir.join("server"),
            cni_bin_dir: root.join("bin"),
            cni_conf_dir: root.join("net.d"),
            kubeconfig: root.join("kubeconfig"),
            state_dir,
        };
        fs::create_dir_all(&paths.state_dir).unwrap();
        let for_pods = [paths.cni_conf_dir.join(FOR_PODS)];
        let refused = refuse_what_is_not_ours(&paths, &for_pods);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("Kubernetes"), "{error}");
        assert!(!paths.lock().exists(), "nothing is made by looking");
        let for_containers = [paths.cni_conf_dir.join("plexus-blue.conflist")];
        refuse_what_is_not_ours(&paths, &for_containers).unwrap();
        fs::create_dir_all(&paths.server_dir).unwrap();
        refuse_what_is_not_ours(&paths, &[]).unwrap();
        fs::write(paths.server_dir.join("kubeconfig"), "ours").unwrap();
        fs::write(&paths.kubeconfig, "ours, and another cluster").unwrap();
        assert!(!is_as_published(&paths));
        fs::write(&paths.kubeconfig, "ours").unwrap();
        assert!(is_as_published(&paths));
        fs::write(&paths.kubeconfig, "theirs").unwrap();
        let left = remove_rest(&paths).unwrap();
        assert!(left[0].contains("not what plexus up wrote"), "{left:?}");
        assert_eq!(fs::read_to_string(&paths.kubeconfig).unwrap(), "theirs");
        assert!(!paths.server_dir.exists());
        fs::remove_dir_all(root).unwrap();
    }
}
