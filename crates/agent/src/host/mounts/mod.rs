//! What an agent in a container needs of its mounts, checked before anything is touched: without it
//! pods' namespaces are empty files to us, and our own pins die with the container.
//!
//! ```text
//! /run/netns         from the host to us    HostToContainer   pods' namespaces, pinned by the runtime
//! host's root        from the host to us    HostToContainer   the same for the plugins that we execute
//! the socket's dir   both ways              Bidirectional     routers of overlay networks, pinned by us
//! ```
//!
//! Reads the kernel's mount table and nothing else; mounts nothing. An agent that is not in a
//! container needs none of this.

use crate::options::Options;
use plexus_client::Server;
use plexus_kernel::mountinfo::{Mount, Table};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where runtimes pin pods' namespaces: the directory, and the name that they use for it.
const NETNS: [&str; 2] = ["/run/netns", "/var/run/netns"];

/// Why an agent in a container does not start.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel does not show its table.
    #[error("cannot read this container's mounts: is /proc mounted?")]
    Table(#[source] io::Error),
    /// One or more mounts are not as they must be.
    #[error("the agent's container is not mounted as it must be: {}", joined(.0))]
    Wrong(Vec<Problem>),
}

/// One mount that is not as it must be: its path, as the container sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is not there.
    #[error(
        "{0} is missing: add a hostPath volume (type: DirectoryOrCreate) and its volumeMount with `mountPath: {0}` and `mountPropagation: HostToContainer`"
    )]
    Missing(PathBuf),
    /// What the host mounts in it later does not appear here.
    #[error(
        "{0} does not receive what the host mounts there, so that new pods' namespaces cannot be seen: write `mountPropagation: HostToContainer` at its volumeMount (`mountPath: {0}`); if it is there, the host's own mount is private: `mount --make-rshared /` on the host"
    )]
    NotFromHost(PathBuf),
    /// What we mount in it does not appear on the host.
    #[error(
        "{0} does not show the host what is mounted there, so that the routers of networks would die with this container: write `mountPropagation: Bidirectional` at its volumeMount (`mountPath: {0}`), with `privileged: true`"
    )]
    NotToHost(PathBuf),
}

/// Checks what these options need; nothing if the agent is not in a container: that is, if it is
/// given neither the host's root nor the API as a pod has it.
pub(crate) fn check(options: &Options) -> Result<(), MountError> {
    let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
        && options
            .kubernetes
            .as_ref()
            .is_some_and(|kubernetes| kubernetes.server == Server::Account);
    if options.host_root.is_none() && !in_pod {
        return Ok(());
    }
    let socket_dir = options.socket.parent().unwrap_or(Path::new("/"));
    let table = Table::own().map_err(MountError::Table)?;
    let resolved = |path: &Path| (path.to_owned(), fs::canonicalize(path).ok());
    let problems = Needs {
        from_host: NETNS.iter().map(|path| resolved(Path::new(path))).collect(),
        host_root: options.host_root.as_deref().map(resolved),
        to_host: resolved(socket_dir),
    }
    .problems(&table);
    match problems.is_empty() {
        true => Ok(()),
        false => Err(MountError::Wrong(problems)),
    }
}

/// Whether the pin of a namespace is positively gone: its directory receives what the host does to
/// it, and the file is not there. A runtime removes the pin only after the sandbox has ended, so
/// that this is evidence where not every process can be seen.
pub(crate) fn pin_gone(path: &Path) -> bool {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let Ok(directory) = fs::canonicalize(directory) else {
        return false;
    };
    let pin = fs::symlink_metadata(directory.join(name));
    // The table is read only if there is something to find out.
    pin.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        && Table::own().is_ok_and(|table| table.covering(&directory).is_some_and(Mount::receives))
}

/// A path as it was given, and where it leads, if it is there.
type ResolvedPath = (PathBuf, Option<PathBuf>);

/// What must propagate where.
struct Needs {
    from_host: Vec<ResolvedPath>,
    host_root: Option<ResolvedPath>,
    to_host: ResolvedPath,
}

impl Needs {
    fn problems(&self, table: &Table) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (path, real) in self.from_host.iter().chain(&self.host_root) {
            match real {
                None => problems.push(Problem::Missing(path.clone())),
                Some(real) if table.covering(real).is_some_and(Mount::receives) => {}
                Some(_) => problems.push(Problem::NotFromHost(path.clone())),
            }
        }
        let (path, real) = &self.to_host;
        if !real.as_ref().is_some_and(|real| self.is_sent(real, table)) {
            problems.push(Problem::NotToHost(path.clone()));
        }
        problems
    }

    /// Shared, and with the host: the same place seen through the host's root is of the same peers.
    /// Sharing alone is not enough, since a mount can also be shared with nobody.
    fn is_sent(&self, real: &Path, table: &Table) -> bool {
        let Some(peers) = table.covering(real).and_then(|mount| mount.shared) else {
            return false;
        };
        let Some((_, Some(root))) = &self.host_root else {
            return true;
        };
        let inside = real.strip_prefix("/").unwrap_or(real);
        let Some(host) = table.covering(&root.join(inside)) else {
            return true;
        };
        host.shared == Some(peers) || host.master == Some(peers)
    }
}

fn joined(problems: &[Problem]) -> String {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

#[cfg(test)]
mod tests;
