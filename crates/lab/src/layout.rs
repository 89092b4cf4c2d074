//! Where a lab's files are. Names only: makes nothing.

use crate::name::{LabName, NodeName};
use crate::part::Part;
use std::path::{Path, PathBuf};

/// The directory in which each lab has one of its own. Gone when the machine boots, like the labs.
pub(crate) const ROOT: &str = "/run/plexus/lab";

/// Where plugins keep their files; each node has one of its own there.
pub(crate) const PLUGIN_FILES: &str = "/var/lib/cni";

/// The files of one lab.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    name: LabName,
}

impl Layout {
    /// The lab of that name.
    pub fn of(name: LabName) -> Self {
        Self::in_root(Path::new(ROOT), name)
    }

    pub(crate) fn in_root(root: &Path, name: LabName) -> Self {
        Self {
            root: root.to_owned(),
            name,
        }
    }

    /// The lab's name.
    pub fn name(&self) -> &LabName {
        &self.name
    }

    /// Where all labs are.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory that has everything of this lab.
    pub fn dir(&self) -> PathBuf {
        self.root.join(self.name.as_str())
    }

    /// Held by whoever makes, changes or removes the lab.
    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join(format!("{}.lock", self.name))
    }

    /// There if a lab had to mount the directory of named namespaces.
    pub(crate) fn names_mounted(&self) -> PathBuf {
        self.root.join("names.mounted")
    }

    /// There if a lab had to make the directory in which plugins keep their files.
    pub(crate) fn plugin_dir_made(&self) -> PathBuf {
        self.root.join("plugins.made")
    }

    /// What the lab was asked to be.
    pub(crate) fn spec(&self) -> PathBuf {
        self.dir().join("lab.json")
    }

    /// What the keeper sees.
    pub(crate) fn report(&self) -> PathBuf {
        self.dir().join("keeper.json")
    }

    /// Held by the keeper.
    pub(crate) fn keeper_lock(&self) -> PathBuf {
        self.dir().join("keeper.lock")
    }

    /// What a process of the lab says.
    pub fn log(&self, part: Part) -> PathBuf {
        self.dir().join("log").join(format!("{part}.log"))
    }

    /// The server's own directory.
    pub(crate) fn server(&self) -> PathBuf {
        self.dir().join("server")
    }

    /// The server's socket.
    pub(crate) fn server_socket(&self) -> PathBuf {
        self.dir().join("server.sock")
    }

    /// What the server writes.
    pub(crate) fn server_kubeconfig(&self) -> PathBuf {
        self.server().join("kubeconfig")
    }

    /// The same under a shorter name: for `kubectl` and everybody else on this machine.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir().join("kubeconfig")
    }

    /// For those inside the lab.
    pub(crate) fn inner_kubeconfig(&self) -> PathBuf {
        self.dir().join("inner.kubeconfig")
    }

    /// A node's directory.
    pub fn node(&self, node: NodeName) -> PathBuf {
        self.dir().join(node.to_string())
    }

    /// What a node's plugins keep: it is the node's `/var/lib/cni`.
    pub(crate) fn plugin_files(&self, node: NodeName) -> PathBuf {
        self.node(node).join("plugins")
    }

    /// The socket of a node's agent.
    pub fn agent_socket(&self, node: NodeName) -> PathBuf {
        self.node(node).join("agent.sock")
    }

    /// The journal of a node's agent.
    pub fn agent_state(&self, node: NodeName) -> PathBuf {
        self.node(node).join("state")
    }

    /// Where a node's runtime finds plugins.
    pub fn cni_bin(&self, node: NodeName) -> PathBuf {
        self.node(node).join("cni/bin")
    }

    /// Where a node's runtime finds its configuration.
    pub fn cni_conf(&self, node: NodeName) -> PathBuf {
        self.node(node).join("cni/net.d")
    }

    /// The sandboxes of a node, a file each.
    pub(crate) fn sandboxes(&self, node: NodeName) -> PathBuf {
        self.node(node).join("pods")
    }

    /// The sandbox of a pod, by the pod's UID.
    pub(crate) fn sandbox(&self, node: NodeName, uid: &str) -> PathBuf {
        self.sandboxes(node).join(format!("{uid}.json"))
    }

    /// There while a process is to stay dead. With a node's goes what is held of it.
    pub(crate) fn held(&self, part: Part) -> PathBuf {
        match part {
            Part::Agent(node) => self.node(node).join("agent.held"),
            other => self.dir().join(format!("{other}.held")),
        }
    }
}
