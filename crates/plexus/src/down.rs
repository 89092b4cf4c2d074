//! `plexus down`: stops what `plexus up` runs, and removes every trace of it from this machine.

use crate::out::{need_root, print};
use crate::query;
use crate::up::{Lock, Machine, NetnsLock, PathFlags, Paths, agent, previous_log};
use anyhow::{Context, bail};
use clap::Args;
use plexus_embedded::Directory;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long it may take to stop: what is in flight is waited for.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The CNI configuration that an agent of Kubernetes has too.
const PODS_CONFLIST: &str = "00-plexus.conflist";

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
        if paths.server_dir.exists() {
            print(&format!("(left: {})\n", not_ours(&paths.server_dir)))?;
        }
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
    let server = take_server(&paths)?;
    let lock = Lock::take(&paths.lock())?;
    let alone = NetnsLock::take()?;
    let removed = plexus_agent::uninstall(options, flags.force)?;
    let rest = remove_rest(&paths, server);
    drop((alone, lock));
    let removed = removed.iter().map(|what| match what.starts_with("(left") {
        true => format!("{what}\n"),
        false => format!("removed {what}\n"),
    });
    print(&removed.collect::<String>())?;
    for left in rest? {
        print(&format!("(left: {left})\n"))?;
    }
    print("plexus is gone from this machine; IP forwarding stays as it is, others may rely on it\n")
}

/// Whether anything is there besides what runtimes look for: of what runs, or of what ran and was removed
/// by hand in part.
fn has_traces(paths: &Paths) -> bool {
    let paths_made = [&paths.state_dir, &paths.socket, &paths.api_socket];
    paths_made.iter().any(|path| path.exists())
        || Directory::has_store(&paths.server_dir)
        || paths.context().is_there()
}

/// An agent of Kubernetes has the same places, but neither a server nor networks for containers.
fn refuse_what_is_not_ours(paths: &Paths, for_runtimes: &[PathBuf]) -> anyhow::Result<()> {
    let only_up_makes = [&paths.lock(), &paths.api_socket];
    let is_network = |file: &PathBuf| {
        file.extension() == Some("conflist".as_ref())
            && file.file_name() != Some(PODS_CONFLIST.as_ref())
    };
    if only_up_makes.iter().any(|path| path.exists())
        || Directory::has_store(&paths.server_dir)
        || paths.context().is_there()
        || for_runtimes.iter().any(is_network)
    {
        return Ok(());
    }
    let there = [&paths.state_dir, &paths.socket]
        .into_iter()
        .chain(for_runtimes);
    let there = there
        .filter(|path| path.exists())
        .map(|path| path.display().to_string());
    bail!(
        "{} was not made by plexus up: is this a node of Kubernetes? there the DaemonSet is what to delete; \
         --force removes it all the same",
        there.collect::<Vec<_>>().join(", ")
    )
}

/// Asked before anything is stopped.
fn refuse_while_in_use(paths: &Paths) -> anyhow::Result<()> {
    let (status, text) = query::get(&paths.socket, "/attachments").context(
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
    let first_names: Vec<&str> = containers.iter().take(8).map(String::as_str).collect();
    bail!(
        "{} of this machine's containers still have interfaces ({}{}): stop them first, or take \
         their interfaces away with --force",
        containers.len(),
        first_names.join(", "),
        if containers.len() > first_names.len() {
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
    let until = Instant::now() + STOP_TIMEOUT;
    while Lock::holder(&paths.lock())? == Some(process) {
        if Instant::now() > until {
            bail!(
                "process {number} has not ended within {} s: look at its log, then try again",
                STOP_TIMEOUT.as_secs()
            );
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// The API's directory, held so that no server starts in it; none if it is not one of ours. Refuses while a
/// server runs by itself: whoever started it ends it.
fn take_server(paths: &Paths) -> anyhow::Result<Option<Directory>> {
    let server = Directory::take(&paths.server_dir)?;
    if let Ok(answers) = UnixStream::connect(&paths.api_socket) {
        let process = socket_peercred(&answers).context("cannot ask who has the API's socket")?;
        bail!(
            "a plexus server answers at {} (process {}): stop it first",
            paths.api_socket.display(),
            process.pid.as_raw_nonzero()
        );
    }
    Ok(server)
}

fn not_ours(directory: &Path) -> String {
    let directory = directory.display();
    format!("{directory} is not the directory of our API: there is no store of ours in it")
}

/// Removes what the agent does not know of: the API's store, its context, the log, empty directories. Gives what stays on purpose.
fn remove_rest(paths: &Paths, server: Option<Directory>) -> anyhow::Result<Vec<String>> {
    let mut left = Vec::new();
    let mut problems = Vec::new();
    let mut note = |path: &Path, result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            problems.push(format!("{}: {error}", path.display()));
        }
        _ => {}
    };
    let node = paths.node();
    let node = [&node, &node.with_extension("new")];
    let logs = [&paths.log(), &previous_log(&paths.log())];
    for file in [&paths.api_socket].into_iter().chain(logs).chain(node) {
        note(file, std::fs::remove_file(file));
    }
    let context = paths.context().remove();
    // Last what says that all of this is ours.
    note(&paths.lock(), std::fs::remove_file(paths.lock()));
    problems.extend(context.err().map(|error| format!("{error:#}")));
    match server.map(Directory::remove) {
        Some(Ok(others)) => {
            let others = others.iter().map(|path| path.display());
            left.extend(others.map(|other| format!("{other} is not ours")));
        }
        Some(Err(error)) => problems.push(format!("{:#}", anyhow::Error::new(error))),
        // It may be of an `up` that ended as it began.
        None if paths.server_dir.starts_with(&paths.state_dir)
            && std::fs::remove_dir(&paths.server_dir).is_ok() => {}
        None if paths.server_dir.exists() => left.push(not_ours(&paths.server_dir)),
        None => {}
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
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn temp_paths(name: &str) -> (PathBuf, Paths) {
        let root = std::env::temp_dir().join(format!("px-down-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let state_dir = root.join("state");
        let paths = Paths {
            socket: root.join("agent.sock"),
            api_socket: root.join("api.sock"),
            server_dir: state_dir.join("server"),
            cni_bin_dir: root.join("bin"),
            cni_conf_dir: root.join("net.d"),
            kubeconfig: Some(root.join("kubeconfig")),
            state_dir,
        };
        fs::create_dir_all(&paths.state_dir).unwrap();
        (root, paths)
    }

    /// As a server that has ended leaves it.
    fn served(paths: &Paths) {
        let kinds = plexus_embedded::kinds::Kinds::builtin().unwrap();
        let options = plexus_embedded::Options::new(&paths.server_dir, kinds);
        plexus_embedded::Server::start(options).unwrap().stop();
    }

    #[test]
    fn only_what_up_made_is_removed() {
        let (root, paths) = temp_paths("made");
        let for_pods = [paths.cni_conf_dir.join(PODS_CONFLIST)];
        let refused = |for_runtimes: &[PathBuf]| {
            let refused = refuse_what_is_not_ours(&paths, for_runtimes);
            refused.err().map(|error| error.to_string())
        };
        let error = refused(&for_pods).unwrap();
        assert!(error.contains("Kubernetes"), "{error}");
        assert!(!paths.lock().exists(), "nothing is made by looking");
        let for_containers = [paths.cni_conf_dir.join("plexus-blue.conflist")];
        assert_eq!(refused(&for_containers), None);
        // A directory is no proof, whoever made it.
        fs::create_dir_all(&paths.server_dir).unwrap();
        assert!(refused(&[]).is_some());
        served(&paths);
        assert_eq!(refused(&[]), None);
        let kubeconfig = root.join("kubeconfig");
        let theirs = "contexts: [{name: plexus, context: {cluster: theirs, user: theirs}}]";
        fs::write(&kubeconfig, theirs).unwrap();
        let server = take_server(&paths).unwrap();
        assert_eq!(remove_rest(&paths, server).unwrap(), [""; 0]);
        assert_eq!(fs::read_to_string(&kubeconfig).unwrap(), theirs);
        assert!(!paths.server_dir.exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn its_context_goes_and_others_stay() {
        let (root, paths) = temp_paths("context");
        served(&paths);
        let kubeconfig = root.join("kubeconfig");
        fs::write(&kubeconfig, "current-context: production\n").unwrap();
        let own = paths.server_dir.join("kubeconfig");
        let said = paths.context().put(&own).unwrap().unwrap();
        assert!(said.contains("context plexus"), "{said}");
        // Also after the rest was removed by hand.
        fs::remove_file(paths.context().note).unwrap();
        assert!(has_traces(&paths));
        assert!(refuse_what_is_not_ours(&paths, &[]).is_ok());
        let server = take_server(&paths).unwrap();
        assert_eq!(remove_rest(&paths, server).unwrap(), [""; 0]);
        // What was current before is not known any more: nothing is, until somebody chooses.
        assert!(!kubeconfig.exists());
        assert!(!paths.context().is_there());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_others_keep_beside_ours_stays_and_is_named() {
        let (root, mut paths) = temp_paths("beside");
        served(&paths);
        let notes = paths.server_dir.join("notes.txt");
        fs::write(&notes, "theirs").unwrap();
        let server = take_server(&paths).unwrap();
        let left = remove_rest(&paths, server).unwrap();
        assert_eq!(left, [format!("{} is not ours", notes.display())]);
        assert_eq!(fs::read_dir(&paths.server_dir).unwrap().count(), 1);
        // All of a directory that never was ours.
        paths.server_dir = root.join("photos");
        fs::create_dir(&paths.server_dir).unwrap();
        fs::write(paths.server_dir.join("one.jpg"), "theirs").unwrap();
        assert!(!has_traces(&Paths {
            state_dir: root.join("none"),
            ..paths.clone()
        }));
        let server = take_server(&paths).unwrap();
        let left = remove_rest(&paths, server).unwrap();
        assert!(
            left[0].contains("photos is not the directory of our API"),
            "{left:?}"
        );
        assert!(paths.server_dir.join("one.jpg").exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn nothing_is_taken_from_a_server_that_runs_by_itself() {
        let (root, paths) = temp_paths("serves");
        let kinds = plexus_embedded::kinds::Kinds::builtin().unwrap();
        let mut options = plexus_embedded::Options::new(&paths.server_dir, kinds);
        options.unix = Some(paths.api_socket.clone());
        let server = plexus_embedded::Server::start(options).unwrap();
        let error = take_server(&paths).unwrap_err().to_string();
        assert!(error.contains("stop it first"), "{error}");
        let elsewhere = Paths {
            server_dir: root.join("none"),
            ..paths.clone()
        };
        let error = take_server(&elsewhere).unwrap_err().to_string();
        assert!(
            error.contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        server.stop();
        assert!(take_server(&paths).unwrap().is_some());
        fs::remove_dir_all(root).unwrap();
    }
}
