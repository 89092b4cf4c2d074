//! Where a lab's files are, and what its namespaces, cgroups and addresses are called. Names only:
//! makes nothing. Everything of a lab carries its prefix, so that two labs never meet, and so that
//! `down` can find what is left of a lab whose records are lost.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The control plane's address in the underlay, the nodes' gateway.
pub const CONTROL_PLANE_V4: &str = "192.168.77.254";
/// The same for IPv6.
pub const CONTROL_PLANE_V6: &str = "fd00:77::fe";
/// The API server's port in the underlay.
pub const API_PORT: u16 = 6443;
/// An address outside of the cluster, in the control plane's namespace. Only the nodes know the
/// way to it and only they are known there: a pod is answered if it is masqueraded.
pub const OUTSIDE_V4: &str = "203.0.113.1";
/// The same for IPv6.
pub const OUTSIDE_V6: &str = "2001:db8:113::1";
/// Services' addresses.
pub const SERVICE_CIDRS: &str = "10.96.0.0/16,fd00:96::/112";
/// Pods' addresses.
pub const CLUSTER_CIDRS: &str = "10.244.0.0/16,fd00:244::/56";

/// Below a lab's directory, what tells why something failed: logs of its processes and containers, journals of its agents.
pub const TELLING: [&str; 3] = ["log", "nodes/*/fs/var/log", "nodes/*/fs/var/lib/plexus"];

/// Directories that a node replaces by its own: a state directory below them would be hidden.
const HIDDEN: [&str; 5] = ["/run", "/var", "/opt", "/etc", "/proc"];

/// The names of one lab.
#[derive(Debug, Clone)]
pub struct Layout {
    prefix: String,
    state: PathBuf,
}

impl Layout {
    /// The lab called `prefix`: at most ten lower-case letters and digits, a letter first.
    pub fn of(prefix: &str) -> Result<Self> {
        check_prefix(prefix)?;
        Ok(Self {
            prefix: prefix.to_owned(),
            state: root()?.join(prefix),
        })
    }

    /// The lab whose state directory this is.
    pub fn at(state: &Path) -> Result<Self> {
        let prefix = state
            .file_name()
            .and_then(|name| name.to_str())
            .with_context(|| format!("{} does not end in a lab's name", state.display()))?;
        check_prefix(prefix)?;
        Ok(Self {
            prefix: prefix.to_owned(),
            state: state.to_path_buf(),
        })
    }

    /// The name of the lab.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The directory that has everything of this lab.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// What the lab was asked to be, and its nodes.
    pub fn record(&self) -> PathBuf {
        self.state.join("lab.json")
    }

    /// For `kubectl` and tests, as administrator, from the namespace that called `up`.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    /// For a component or a node, from inside the lab.
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.state.join(format!("{user}.kubeconfig"))
    }

    /// Keys and certificates.
    pub fn pki(&self) -> PathBuf {
        self.state.join("pki")
    }

    /// etcd's data.
    pub fn etcd(&self) -> PathBuf {
        self.state.join("etcd")
    }

    /// Image archives.
    pub fn images(&self) -> PathBuf {
        self.state.join("images")
    }

    /// The program that is a node's first process and every sandbox's.
    pub fn pause(&self) -> PathBuf {
        self.images().join("pause")
    }

    /// What a process printed.
    pub fn log(&self, process: &str) -> PathBuf {
        self.state.join("log").join(format!("{process}.log"))
    }

    /// Where a process's id is kept.
    pub fn pid_file(&self, process: &str) -> PathBuf {
        self.state.join("run").join(format!("{process}.pid"))
    }

    /// A node's own directory.
    pub fn node(&self, node: &str) -> PathBuf {
        self.state.join("nodes").join(node)
    }

    /// Where a node's kubelet looks for static pods.
    pub fn static_pods(&self, node: &str) -> PathBuf {
        self.node(node).join("static-pods")
    }

    /// The name of a node's network namespace and of its cgroups; `cp` is the control plane.
    pub fn namespace(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    /// The network namespace as a path.
    pub fn namespace_path(&self, node: &str) -> PathBuf {
        Path::new("/run/netns").join(self.namespace(node))
    }

    /// Whether a namespace or cgroup of this name belongs to the lab.
    pub fn owns(&self, name: &str) -> bool {
        name.strip_prefix(&self.prefix)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| rest == "cp" || index_of(rest).is_ok())
    }
}

/// The directory in which each lab has one of its own: `PLEXUS_KUBE_ROOT`, or in the cache.
pub fn root() -> Result<PathBuf> {
    let root = match std::env::var_os("PLEXUS_KUBE_ROOT").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => cache()?.join("kube"),
    };
    if HIDDEN.iter().any(|dir| root.starts_with(dir)) || !root.is_absolute() {
        bail!(
            "labs cannot be in {}: nodes have their own {}; name another absolute directory in \
             PLEXUS_KUBE_ROOT",
            root.display(),
            HIDDEN.join(", ")
        );
    }
    Ok(root)
}

/// `$XDG_CACHE_HOME/plexus` or `~/.cache/plexus`.
pub(crate) fn cache() -> Result<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|dir| !dir.is_empty());
    let home = named("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&named("HOME")?).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set: set one, the cache lives there")?;
    Ok(home.join("plexus"))
}

/// The number in a node's name: 1 for `n1`.
pub fn index_of(node: &str) -> Result<u8> {
    node.strip_prefix('n')
        .filter(|digits| !digits.starts_with(['0', '+']))
        .and_then(|digits| digits.parse().ok())
        .filter(|index| (1..=MAX_NODES).contains(index))
        .with_context(|| format!("{node:?} is no node: they are called n1 to n{MAX_NODES}"))
}

/// More would need more than one byte of an address.
pub const MAX_NODES: u8 = 200;

/// A node's address in the underlay.
pub fn node_v4(index: u8) -> String {
    format!("192.168.77.{index}")
}

/// A node's IPv6 address in the underlay.
pub fn node_v6(index: u8) -> String {
    format!("fd00:77::{index}")
}

fn check_prefix(prefix: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !(1..=10).contains(&prefix.len())
        || !prefix.chars().all(plain)
        || !prefix.starts_with(|c: char| c.is_ascii_lowercase())
    {
        bail!(
            "{prefix:?} cannot name a lab: 1 to 10 lower-case letters and digits, a letter first"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_owns_its_names_and_no_others() {
        let lab = Layout::at(Path::new("/labs/a")).unwrap();
        for own in ["a-cp", "a-n1", "a-n200"] {
            assert!(lab.owns(own), "{own}");
        }
        for other in [
            "a", "a-", "a-n", "a-n0", "a-n01", "a-n201", "a-x", "ab-n1", "a-n1-x",
        ] {
            assert!(!lab.owns(other), "{other}");
        }
    }

    #[test]
    fn a_prefix_cannot_leave_its_directory() {
        for bad in ["", "..", "a/b", "A", "1a", "a-b", "elevenchars"] {
            assert!(check_prefix(bad).is_err(), "{bad:?}");
        }
    }
}
