//! Everything that an agent leaves on a host, removed: what its containers have, what its networks
//! keep on the node, its files. Needs the locks that an agent needs, so that it never works beside
//! one. Refuses while containers have interfaces, unless it is told to take those away.

use crate::addresses::host_local::{self, Removed};
use crate::agent::Agent;
use crate::background::backoff::Backoff;
use crate::host::conflists;
use crate::host::install;
use crate::host::lock::{Lock, LockError};
use crate::journal::{State, Stored};
use crate::options::{Options, beside};
use crate::start::{StartError, assemble};
use plexus_api::cni::Error;
use plexus_cni::delegate::seen_from_here;
use plexus_cni::queue;
use plexus_types::IfName;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Why something stayed.
#[derive(Debug, thiserror::Error)]
pub enum UninstallError {
    /// An agent runs.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The node cannot be looked at.
    #[error(transparent)]
    Start(#[from] Box<StartError>),
    /// The journal does not tell what there is.
    #[error("what this host's containers have cannot be told: {0}")]
    Journal(Error),
    /// Containers would lose their networks.
    #[error(
        "{} still have interfaces: {}; stop them first, or take their interfaces away with --force",
        counted(.0.len()),
        shortened(.0)
    )]
    InUse(Vec<String>),
    /// Some things could not be removed; what tells of them is kept.
    #[error(
        "not everything could be removed: {}; what is known of it is kept: mend that, and repeat it",
        .0.join("; ")
    )]
    Left(Vec<String>),
}

/// Removes what an agent with these options has left; gives what was removed, and what stays on
/// purpose.
pub fn uninstall(options: Options, force: bool) -> Result<Vec<String>, UninstallError> {
    // The cluster is not asked: its objects are somebody else's to remove.
    let options = Options {
        kubernetes: None,
        shim_source: None,
        ..options
    };
    let state = Lock::state(&options.state_dir)?;
    let socket = Lock::socket(&options.socket)?;
    let agent = assemble(options).map_err(Box::new)?;
    let mut log = Log::default();
    match agent.remove_containers(force, &mut log) {
        // Nobody will ever be able to tell.
        Err(UninstallError::Journal(error)) if force => log.done.push(format!(
            "(left: interfaces of containers go with them, addresses that plugins keep stay: {error})"
        )),
        done => done?,
    }
    agent.remove_node_side(&mut log);
    agent.remove_directories(&mut log);
    remove_configurations(&agent.options, &mut log);
    // A repetition needs them, and so does a runtime that removes containers until then.
    if log.problems.is_empty() {
        remove_files(&agent.options, &mut log);
    }
    drop((agent, state, socket));
    match log.problems.is_empty() {
        true => Ok(log.done),
        false => Err(UninstallError::Left(log.problems)),
    }
}

/// What is in the directories of runtimes because an agent with these options was here.
pub fn written_for_runtimes(options: &Options) -> io::Result<Vec<PathBuf>> {
    let mut found = configurations(options)?;
    found.extend(programs(options));
    Ok(found)
}

/// What was done, and what could not be.
#[derive(Debug, Default)]
struct Log {
    done: Vec<String>,
    problems: Vec<String>,
}

impl Log {
    /// What is not there needs no removing.
    fn removed(&mut self, path: &Path, result: io::Result<()>) {
        match result {
            Ok(()) => self.done.push(path.display().to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.problems.push(format!("{}: {error}", path.display())),
        }
    }

    fn remove_files(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        for file in files {
            self.removed(&file, fs::remove_file(&file));
        }
    }
}

impl Agent {
    fn remove_containers(&self, force: bool, log: &mut Log) -> Result<(), UninstallError> {
        self.replay().map_err(UninstallError::Journal)?;
        for left in [
            self.drain_queue(&mut Backoff::new(), drop).map(drop),
            // No background does what the replay leaves for later.
            self.retry_removals(&mut Backoff::new(), true, drop),
        ] {
            if let Err(error) = left {
                tracing::error!(error, "something is left for whoever repeats this");
            }
        }
        let stored = self.stored().map_err(UninstallError::Journal)?;
        // One that is being removed is nobody's any more.
        let used = stored.iter().filter(|one| one.state != State::Deleting);
        let mut used = containers(used);
        let journal = self.journal().map_err(UninstallError::Journal)?;
        let unreadable = journal.quarantined();
        used.extend(unreadable.keys().cloned());
        if !used.is_empty() && !force {
            return Err(UninstallError::InUse(used));
        }
        log.problems.extend(unreadable.iter().map(|(key, problem)| {
            format!("{key}: what plugins made for it is left: its rows cannot be read: {problem}")
        }));
        for Stored { record, .. } in stored {
            let container = record.container.short();
            let what = format!("{} of container {container}", record.ifname);
            match self.undo(&record) {
                Ok(()) => log.done.push(what),
                Err(error) => log.problems.push(format!("{what}: {error}")),
            }
        }
        log.problems.extend(queued(&self.options.socket));
        Ok(())
    }

    fn remove_node_side(&self, log: &mut Log) {
        let known_plans = self
            .journal()
            .ok()
            .and_then(|j| j.node_plans(&self.boot).ok());
        let plans = known_plans.unwrap_or_default();
        let bridges = plans.iter().flat_map(|(_, plan)| &plan.bridges);
        let bridges: BTreeSet<IfName> = bridges.map(|bridge| bridge.name.clone()).collect();
        let bridges: Vec<IfName> = bridges.into_iter().collect();
        let cleared = plexus_kernel::clear::clear(&self.node, &bridges);
        log.done.extend(cleared.done);
        let left = cleared.left.into_iter();
        log.done.extend(left.map(|what| format!("(left: {what})")));
        log.problems.extend(cleared.problems);
        let unreadable = self.journal().map(|j| j.quarantined_networks());
        for (network, problem) in unreadable.unwrap_or_default() {
            log.done.push(format!(
                "(left: the bridge of network {network}, if it has one: its row cannot be read: {problem})"
            ));
        }
    }
}

impl Agent {
    /// Of host-local's directories, those that we used and nobody uses.
    fn remove_directories(&self, log: &mut Log) {
        let directories = self.journal().ok().and_then(|j| j.directories().ok());
        for directory in directories.unwrap_or_default() {
            match host_local::remove_unused(&directory) {
                Ok(Removed::Nothing) => {}
                Ok(Removed::All) => log.done.push(directory.display().to_string()),
                Ok(Removed::InUse) => {
                    let directory = directory.display();
                    log.done.push(format!(
                        "(left: {directory}: others have addresses or files in it)"
                    ));
                }
                Err(error) => log.problems.push(plexus_types::chain(&error)),
            }
        }
    }
}

/// DELs that a runtime was promised and that cannot be done.
fn queued(socket: &Path) -> Option<String> {
    match queue::list(&queue::dir(socket)) {
        Ok(left) if left.is_empty() => None,
        Ok(left) => Some(format!("{} queued DELs fail: see the log", left.len())),
        Err(error) => Some(format!("the queue of DELs: {}", queue::describe(&error))),
    }
}

/// Each container once.
fn containers<'s>(stored: impl Iterator<Item = &'s Stored>) -> Vec<String> {
    let each = stored.map(|one| {
        let record = &one.record;
        let id = record.container.short();
        let pod = record.details.pod.as_ref();
        pod.map_or_else(|| id.to_owned(), |pod| format!("{pod} ({id})"))
    });
    let each: BTreeSet<String> = each.collect();
    each.into_iter().collect()
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 container".to_owned(),
        count => format!("{count} containers"),
    }
}

fn shortened(containers: &[String]) -> String {
    const SHOWN: usize = 8;
    match containers.get(..SHOWN) {
        Some(first) if containers.len() > SHOWN => format!("{}, …", first.join(", ")),
        _ => containers.join(", "),
    }
}

/// The runtime's files first: it must not call what is not there.
fn remove_configurations(options: &Options, log: &mut Log) {
    match configurations(options) {
        Ok(files) => log.remove_files(files),
        Err(error) => {
            let directory = options.cni_conf_dir.display();
            log.problems.push(format!("{directory}: {error}"));
        }
    }
}

/// The CNI configurations that an agent wrote; that for pods is the last one, as they are removed so.
fn configurations(options: &Options) -> io::Result<Vec<PathBuf>> {
    let Ok(directory) = seen_from_here(options.host_root.as_deref(), &options.cni_conf_dir) else {
        return Ok(Vec::new());
    };
    let mut found = conflists::written(&directory)?;
    let first = directory.join(crate::host::conflist::NAME);
    if fs::read_to_string(&first).is_ok_and(|text| text.contains("plexus-cni")) {
        found.push(first);
    }
    Ok(found)
}

/// The plugins that an agent installed.
fn programs(options: &Options) -> Vec<PathBuf> {
    let directory = seen_from_here(options.host_root.as_deref(), &options.cni_bin_dir);
    directory.map_or_else(|_| Vec::new(), |directory| install::ours(&directory))
}

fn remove_files(options: &Options, log: &mut Log) {
    log.remove_files(programs(options));
    for directory in [queue::dir(&options.socket), options.spool()] {
        log.removed(&directory, fs::remove_dir_all(&directory));
    }
    remove_routers(&options.routers(), log);
    let databases = [options.journal(), options.state_dir.join("cache.db")];
    let databases = databases
        .iter()
        .flat_map(|file| ["", "-wal", "-shm"].map(|more| beside(file, more)));
    log.remove_files(databases);
    let socket = &options.socket;
    let state_lock = options.state_dir.join("lock");
    log.remove_files([socket.clone(), beside(socket, ".lock"), state_lock]);
}

/// Routers are gone; what is left are files on which a mount did not survive: empty, and nobody's to read.
/// The directory's own name is one that others use too: whatever else is in it stays.
fn remove_routers(directory: &Path, log: &mut Log) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_pin = |file: fs::Metadata| {
            file.is_file() && file.len() == 0 && file.permissions().mode() & 0o777 == 0
        };
        if entry.metadata().is_ok_and(is_pin) {
            log.removed(&entry.path(), fs::remove_file(entry.path()));
        }
    }
    match fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let directory = directory.display();
            log.done
                .push(format!("(left: {directory} has more in it than ours)"));
        }
        removed => log.removed(directory, removed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_del_that_is_still_queued_is_a_problem() {
        let dir = std::env::temp_dir().join(format!("px-uninstall-{}", std::process::id()));
        let socket = dir.join("agent.sock");
        assert_eq!(queued(&socket), None);
        fs::create_dir_all(&dir).unwrap();
        queue::put(&socket, "c", "eth0", "{}").unwrap();
        let said = queued(&socket).unwrap();
        assert!(said.starts_with("1 queued DEL"), "{said}");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_directory_of_routers_is_removed_if_nothing_else_is_in_it() {
        let dir = std::env::temp_dir().join(format!("px-routers-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("r1"), "").unwrap();
        fs::set_permissions(dir.join("r1"), PermissionsExt::from_mode(0o000)).unwrap();
        fs::write(dir.join("inventory.csv"), "").unwrap();
        let mut log = Log::default();
        remove_routers(&dir, &mut log);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        assert!(log.done[1].starts_with("(left: "), "{:?}", log.done);
        fs::remove_file(dir.join("inventory.csv")).unwrap();
        remove_routers(&dir, &mut log);
        assert!(!dir.exists() && log.problems.is_empty());
        remove_routers(&dir, &mut log);
        assert!(log.problems.is_empty(), "{:?}", log.problems);
    }

    #[test]
    fn few_are_named_and_many_are_counted() {
        let few = UninstallError::InUse(vec!["a".to_owned(), "b".to_owned()]).to_string();
        assert!(
            few.starts_with("2 containers still have interfaces: a, b; "),
            "{few}"
        );
        let many: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
        let many = UninstallError::InUse(many).to_string();
        assert!(many.contains("c7, …") && !many.contains("c8"), "{many}");
    }
}
