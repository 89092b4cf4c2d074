//! The flags of `plexus agent` about the cluster that its node belongs to. Whether there is one, and
//! who gives pods their first interface, is configured, never guessed.

use crate::value;
use anyhow::bail;
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use plexus_agent::{ClusterNetwork, Kubernetes};
use plexus_client::Server;
use plexus_core::nics::{NicChoice, NicPattern};
use std::net::IpAddr;
use std::path::PathBuf;

/// Who gives pods their first interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FirstInterface {
    /// Plexus.
    Own,
    /// The other CNI whose configuration is in the CNI directory; Plexus calls it.
    Delegate,
    /// Another CNI, which calls Plexus for further interfaces (Multus).
    None,
}

/// Where the addresses of Plexus's own cluster network come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OwnCidrs {
    /// The podCIDRs of the Node.
    Node,
    /// Blocks of the Network `cluster-default` in Plexus's own namespace.
    Blocks,
}

/// Plexus's own namespace, if nothing else is said.
pub(crate) const NAMESPACE: &str = "plexus-system";

/// The flags about the cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct ClusterFlags {
    /// Use the API of the cluster that this is a pod of; implied by --cluster-network=own and
    /// delegate, and by --kubeconfig.
    #[arg(long, env = "PLEXUS_KUBERNETES")]
    kubernetes: bool,
    /// How to reach the API from outside of a pod.
    #[arg(long, env = "PLEXUS_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Who gives pods their first interface; without Kubernetes, and unless given: none.
    #[arg(long, env = "PLEXUS_CLUSTER_NETWORK", value_enum)]
    cluster_network: Option<FirstInterface>,
    /// With --cluster-network=own: where its addresses come from.
    #[arg(long, env = "PLEXUS_OWN_CIDRS", value_enum)]
    own_cidrs: Option<OwnCidrs>,
    /// The cluster's pod and service CIDRs, comma-separated: not masqueraded, and always by way of
    /// the first interface.
    #[arg(long, env = "PLEXUS_CLUSTER_CIDRS", value_delimiter = ',', num_args = 0.., value_parser = value::cidr)]
    cluster_cidrs: Option<Vec<IpNet>>,
    /// The cluster's name, the first part of Contrail's names; default: k8s.
    #[arg(long, env = "PLEXUS_CLUSTER_NAME", value_parser = value::label)]
    cluster_name: Option<String>,
    /// This node's addresses on the underlay, comma-separated, the preferred first;
    /// those that its Node has too; default: all of the Node's.
    #[arg(long, env = "PLEXUS_NODE_IP", value_delimiter = ',', num_args = 0..)]
    node_ip: Option<Vec<IpAddr>>,
    /// The namespace that Plexus itself is in; default: plexus-system.
    #[arg(long, env = "PLEXUS_NAMESPACE", value_parser = value::label)]
    namespace: Option<String>,
    /// Serve containers that are no pods too (Podman, nerdctl): a CNI configuration per Network, and
    /// a record per container. For a host without a kubelet.
    #[arg(long, env = "PLEXUS_CONTAINERS")]
    containers: bool,
    /// Make this host's Node in the API, and keep its addresses right. For a host without a kubelet.
    #[arg(long, env = "PLEXUS_REGISTER_NODE")]
    register_node: bool,
    /// Virtual links that count as NICs of the node, comma-separated: names, or beginnings of names with * behind
    /// them. Hardware, bonds and VLANs on these count anyway.
    #[arg(long, env = "PLEXUS_NICS", value_delimiter = ',', num_args = 0..)]
    nics: Option<Vec<NicPattern>>,
    /// Count the NIC of the default route among those that networks may use, too.
    #[arg(long, env = "PLEXUS_DEFAULT_ROUTE_NIC")]
    default_route_nic: bool,
}

impl ClusterFlags {
    /// The cluster, if there is one.
    pub(crate) fn cluster(self) -> anyhow::Result<Option<Kubernetes>> {
        let takes_part = matches!(
            self.cluster_network,
            Some(FirstInterface::Own | FirstInterface::Delegate)
        );
        if !takes_part && !self.kubernetes && self.kubeconfig.is_none() {
            return self.nothing_for_nobody().map(|()| None);
        }
        Ok(Some(Kubernetes {
            cluster_network: self.cluster_network()?,
            server: self.kubeconfig.map_or(Server::Account, Server::Kubeconfig),
            namespace: self.namespace.unwrap_or_else(|| NAMESPACE.to_owned()),
            cluster_name: self.cluster_name.unwrap_or_else(|| "k8s".to_owned()),
            cluster_cidrs: self.cluster_cidrs.unwrap_or_default(),
            node_ips: self.node_ip.unwrap_or_default(),
            containers: self.containers,
            register_node: self.register_node,
            nics: NicChoice {
                virtual_names: self.nics.unwrap_or_default().into_iter().collect(),
                default_route: self.default_route_nic,
            },
        }))
    }

    fn cluster_network(&self) -> anyhow::Result<ClusterNetwork> {
        Ok(match (self.cluster_network, self.own_cidrs) {
            (Some(FirstInterface::Own), Some(OwnCidrs::Node)) => ClusterNetwork::OwnNodeCidrs,
            (Some(FirstInterface::Own), Some(OwnCidrs::Blocks)) => ClusterNetwork::OwnBlocks,
            (Some(FirstInterface::Own), None) => bail!(
                "--cluster-network=own needs --own-cidrs: write node if the cluster gives every \
                 Node podCIDRs, else blocks"
            ),
            // The manifest has both flags; only the first one is edited.
            (Some(FirstInterface::Delegate), _) => ClusterNetwork::Delegate,
            (Some(FirstInterface::None) | None, _) => ClusterNetwork::None,
        })
    }

    /// A setting that nobody will look at is a mistake.
    fn nothing_for_nobody(&self) -> anyhow::Result<()> {
        let given = [
            ("own-cidrs", self.own_cidrs.is_some()),
            ("cluster-cidrs", self.cluster_cidrs.is_some()),
            ("cluster-name", self.cluster_name.is_some()),
            ("node-ip", self.node_ip.is_some()),
            ("namespace", self.namespace.is_some()),
            ("containers", self.containers),
            ("register-node", self.register_node),
            ("nics", self.nics.is_some()),
            ("default-route-nic", self.default_route_nic),
        ];
        let Some((name, _)) = given.iter().find(|(_, given)| *given) else {
            return Ok(());
        };
        bail!(
            "--{name} is about a cluster, and none is given: add --cluster-network=own, \
             --cluster-network=delegate, --kubernetes or --kubeconfig"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Just {
        #[command(flatten)]
        flags: ClusterFlags,
    }

    fn cluster(line: &str) -> anyhow::Result<Option<Kubernetes>> {
        let words = ["agent"].into_iter().chain(line.split_whitespace());
        Just::try_parse_from(words)?.flags.cluster()
    }

    #[test]
    fn a_cluster_is_only_where_it_is_said() {
        for line in ["", "--cluster-network=none"] {
            assert!(cluster(line).unwrap().is_none(), "{line}");
        }
        for (line, network) in [
            ("--kubernetes", ClusterNetwork::None),
            ("--kubeconfig=/x", ClusterNetwork::None),
            (
                "--kubernetes --cluster-network=none --own-cidrs=node",
                ClusterNetwork::None,
            ),
            (
                "--cluster-network=delegate --own-cidrs=node",
                ClusterNetwork::Delegate,
            ),
            (
                "--cluster-network=own --own-cidrs=node",
                ClusterNetwork::OwnNodeCidrs,
            ),
            (
                "--cluster-network=own --own-cidrs=blocks",
                ClusterNetwork::OwnBlocks,
            ),
        ] {
            let cluster = cluster(line).unwrap().unwrap();
            assert_eq!(cluster.cluster_network, network, "{line}");
            assert_eq!(cluster.namespace, "plexus-system");
            assert_eq!(cluster.cluster_name, "k8s");
        }
    }

    #[test]
    fn lists_are_read() {
        let line = "--kubernetes --cluster-cidrs=10.244.0.0/16,fd00:96::/112 \
                    --node-ip=192.168.77.1,fd00:77::1 --cluster-name=blue --namespace=net";
        let cluster = cluster(line).unwrap().unwrap();
        assert_eq!(cluster.cluster_cidrs.len(), 2);
        assert_eq!(cluster.node_ips.len(), 2);
        assert_eq!(cluster.cluster_name, "blue");
        assert_eq!(cluster.namespace, "net");
    }

    #[test]
    fn what_is_missing_or_useless_is_said() {
        for (line, expected) in [
            ("--cluster-network=own", "needs --own-cidrs"),
            ("--own-cidrs=node", "--own-cidrs is about a cluster"),
            ("--node-ip=10.0.0.1", "--node-ip is about a cluster"),
            ("--containers", "--containers is about a cluster"),
            ("--register-node", "--register-node is about a cluster"),
            ("--cluster-network=maybe", "delegate"),
            ("--kubernetes --cluster-cidrs=10.0.0.1", "10.0.0.1"),
            ("--kubernetes --cluster-cidrs=10.0.0.1/8", "10.0.0.0/8"),
            ("--kubernetes --node-ip=eth0", "eth0"),
            ("--kubernetes --namespace=A/b", "lower-case"),
        ] {
            let error = cluster(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
