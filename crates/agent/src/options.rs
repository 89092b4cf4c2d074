//! What an agent is told when it starts.

use ipnet::IpNet;
use plexus_client::Server;
use plexus_core::nics::NicChoice;
use plexus_types::PluginType;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The agent's settings; the command line fills them in.
#[derive(Debug, Clone)]
pub struct Options {
    /// This node's name, for logs and records.
    pub node: String,
    /// The socket that the shim connects to.
    pub socket: PathBuf,
    /// Journal and lock.
    pub state_dir: PathBuf,
    /// Where runtimes look for plugins; searched for delegates if no other directory is given.
    pub cni_bin_dir: PathBuf,
    /// Where runtimes look for configurations.
    pub cni_conf_dir: PathBuf,
    /// Where delegates are, if not in the plugin directory.
    pub delegate_bin_dir: Option<PathBuf>,
    /// The plugin types that may be executed; none: whatever is in the directory.
    pub allowed_delegates: Option<BTreeSet<PluginType>>,
    /// How many delegates run at a time.
    pub delegates_at_a_time: usize,
    /// How long one delegate may run.
    pub delegate_timeout: Duration,
    /// How many ADDs may wait or run at a time.
    pub queue: usize,
    /// In a container: where the host's `/` is. Delegates are executed in there.
    pub host_root: Option<PathBuf>,
    /// Where the queries are answered besides the socket; loopback only.
    pub query_address: Option<SocketAddr>,
    /// The shim to install in the plugin directory; none: nothing is installed.
    pub shim_source: Option<PathBuf>,
    /// The cluster that this node belongs to; none: inline configurations only.
    pub kubernetes: Option<Kubernetes>,
}

/// How the agent takes part in a cluster.
#[derive(Debug, Clone)]
pub struct Kubernetes {
    /// How to reach the API.
    pub server: Server,
    /// The namespace that Plexus itself is in.
    pub namespace: String,
    /// `k8s`: the first part of Contrail's names.
    pub cluster_name: String,
    /// Pod and service CIDRs: not masqueraded, and always by way of the first interface.
    pub cluster_cidrs: Vec<IpNet>,
    /// This node's addresses on the underlay; empty: what its Node says.
    pub node_ips: Vec<IpAddr>,
    /// Who gives pods their first interface.
    pub cluster_network: ClusterNetwork,
    /// Serve containers that are no pods too: a CNI configuration per Network, and a record per
    /// container. For a machine without a kubelet.
    pub containers: bool,
    /// Make this host's Node in the API and keep its addresses right. For a machine without a
    /// kubelet.
    pub register_node: bool,
    /// Which of this node's NICs others are told of.
    pub nics: NicChoice,
}

/// Who gives pods their first interface. Never guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterNetwork {
    /// We do, by routing the node's podCIDRs.
    OwnNodeCidrs,
    /// We do, by routing blocks of the Network `cluster-default`.
    OwnBlocks,
    /// The other configuration in the CNI directory.
    Delegate,
    /// Somebody else, who calls us for further interfaces (Multus).
    None,
}

impl Options {
    /// The directories that delegates are looked for in.
    pub fn delegate_dirs(&self) -> Vec<PathBuf> {
        vec![
            self.delegate_bin_dir
                .clone()
                .unwrap_or_else(|| self.cni_bin_dir.clone()),
        ]
    }

    /// Where the configurations of running delegates are: beside the socket, in memory as a rule,
    /// so that a full disk does not keep a pod from being removed.
    pub fn spool(&self) -> PathBuf {
        beside(&self.socket, ".delegates")
    }

    /// Where the routers of overlay networks are pinned: beside the socket.
    pub fn routers(&self) -> PathBuf {
        let directory = self.socket.parent().map(PathBuf::from);
        directory.unwrap_or_default().join("routers")
    }

    /// The journal's file.
    pub fn journal(&self) -> PathBuf {
        self.state_dir.join("journal.db")
    }
}

/// The file beside another whose name goes on with `more`.
pub(crate) fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}
