//! Plexus as the CNI of the cluster: what every pod gets whether it asks for networks or not, shown
//! by pods and packets.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;
#[path = "cluster_cni/host_port.rs"]
mod host_port;
#[path = "cluster_cni/kubelet.rs"]
mod kubelet;
#[path = "cluster_cni/policies.rs"]
mod policies;
#[path = "cluster_cni/services.rs"]
mod services;
#[path = "cluster_cni/static_pods.rs"]
mod static_pods;
#[path = "cluster_cni/ways.rs"]
mod ways;
#[path = "common/web.rs"]
mod web;

/// The shared cluster, a namespace of its own in it, and the first two nodes. A case that needs more than a
/// lab of virtual nodes has says so, and ends there on one.
macro_rules! stage {
    ($base:literal => $kube:ident, $namespace:ident, $nodes:ident) => {
        let $kube = plexus_kubekit::test_cluster::shared().expect("a cluster");
        stage!(@in $base, $kube, $namespace, $nodes);
    };
    ($base:literal => $need:expr, $kube:ident, $namespace:ident, $nodes:ident) => {
        let Some($kube) = plexus_kubekit::test_cluster::kubernetes($need).expect("a cluster") else {
            return;
        };
        stage!(@in $base, $kube, $namespace, $nodes);
    };
    (@in $base:literal, $kube:ident, $namespace:ident, $nodes:ident) => {
        let $namespace = plexus_kubekit::Namespace::create($kube, $base).expect("a namespace");
        let $nodes = plexus_kubekit::Cluster::nodes($kube).expect("nodes");
        assert!($nodes.len() >= 2, "two nodes are needed: {:?}", $nodes);
    };
}
pub(crate) use stage;
