//! What the command line says to the controller.

use ipnet::IpNet;
use plexus_client::Server;
use plexus_core::allowed_subnets::AllowedSubnets;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How the controller runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// How to reach the API server.
    pub server: Server,
    /// Plexus's own namespace: the lease, the status and the cluster's default network are there.
    pub namespace: String,
    /// Who we are among the replicas: the pod's name. Unique; the same again after a restart of
    /// the same container, which then goes on at once.
    pub identity: String,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; none: nowhere.
    pub health: Option<SocketAddr>,
    /// The same on a unix socket, which nobody else can answer in our place; none: nowhere.
    pub health_socket: Option<PathBuf>,
    /// Who serves index 0.
    pub cluster_network: ClusterNetwork,
    /// With [`ClusterNetwork::Own`]: where its addresses come from.
    pub own_cidrs: OwnCidrs,
    /// What networks may put into the nodes' own routing tables.
    pub allowed_subnets: AllowedSubnets,
    /// How long a Node must have been gone before its blocks return.
    pub node_grace: Duration,
}

impl Options {
    /// The defaults, for a replica of this name.
    pub fn new(identity: impl Into<String>) -> Self {
        Options {
            server: Server::Inferred,
            namespace: "plexus-system".to_owned(),
            identity: identity.into(),
            health: None,
            health_socket: None,
            cluster_network: ClusterNetwork::None,
            own_cidrs: OwnCidrs::Node,
            allowed_subnets: AllowedSubnets::default(),
            node_grace: Duration::from_secs(60),
        }
    }

    /// Whether the cluster's own network is the Network `cluster-default`.
    pub(crate) fn has_own_blocks(&self) -> bool {
        self.cluster_cidrs().is_some()
    }

    /// The subnets of the Network `cluster-default`, if the cluster's own network has one.
    pub(crate) fn cluster_cidrs(&self) -> Option<&[IpNet]> {
        match (self.cluster_network, &self.own_cidrs) {
            (ClusterNetwork::Own, OwnCidrs::Blocks(cidrs)) => Some(cidrs),
            _ => None,
        }
    }
}

/// Who serves index 0, the cluster-wide default network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClusterNetwork {
    /// Plexus's own routed network.
    Own,
    /// Another CNI's configuration on the node.
    Delegate,
    /// Nobody asks us.
    #[default]
    None,
}

/// Where the addresses of the cluster's own network come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnCidrs {
    /// The Nodes' `podCIDRs`.
    Node,
    /// Blocks of the Network `cluster-default`, which the controller makes with these subnets if
    /// there is none; without any it waits for somebody else to make it.
    Blocks(Vec<IpNet>),
}
