//! The Kubernetes front door: what a pod's annotations ask for becomes the same list of networks
//! that an inline configuration has.
//!
//! Takes the pod, and what the node knows of networks ([`Objects`]); never asks anyone else. Gives
//! a [`Body`] for the one path behind every door, with where each network came from.

use ipnet::IpNet;
use plexus_api::cni::{Body, Error, FqName, Network, Runtime};
use plexus_api::objects::NetworkSpec;
use plexus_types::IfName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The annotations that a pod's networks are read from; nothing else of a pod's annotations is kept.
pub const ANNOTATIONS: [&str; 5] = [
    "k8s.v1.cni.cncf.io/networks",
    "opencontrail.org/network",
    "plexus.dev/networks",
    "opencontrail.org/default-gw",
    "v1.multus-cni.io/default-network",
];

/// A pod, as far as its networks are concerned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Those of [`ANNOTATIONS`] that it has.
    pub annotations: BTreeMap<String, String>,
}

/// A `Network` object.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkObject {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object's UID: what blocks and routers are named by.
    pub uid: String,
    /// What it is.
    pub spec: NetworkSpec,
    /// `overlay`: its number, once it has one.
    pub vni: Option<u32>,
    /// Why no new pod may use it, if so: Pending, Failed, Terminating.
    pub unusable: Option<String>,
}

/// A NetworkAttachmentDefinition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NadObject {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object's UID.
    pub uid: String,
    /// Those that matter: `opencontrail.org/*`, `k8s.v1.cni.cncf.io/resourceName`, profiles.
    pub annotations: BTreeMap<String, String>,
    /// `spec.config`, as written.
    pub config: Option<String>,
}

/// What the node knows. `None` means: there is no such object, and the caches are in sync.
pub trait Objects {
    /// A `Network`.
    fn network(&self, namespace: &str, name: &str) -> Option<Arc<NetworkObject>>;
    /// A NAD.
    fn nad(&self, namespace: &str, name: &str) -> Option<Arc<NadObject>>;
    /// Labels of a namespace.
    fn namespace(&self, name: &str) -> Option<BTreeMap<String, String>>;
    /// The blocks of a network that this node owns.
    fn blocks(&self, network_uid: &str) -> Vec<IpNet>;
    /// A configuration in the CNI directory with that `name` (NADs without a config).
    fn on_disk(&self, name: &str) -> Option<String>;
}

/// What holds on every node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `--cluster-name`: `<cluster>-<namespace>` is a project of that name's namespace.
    pub cluster_name: String,
    /// Pod and service CIDRs: they stay on eth0 when the default route goes elsewhere.
    pub cluster_cidrs: Vec<IpNet>,
}

/// Where an attachment came from; kept in the journal, so that records and answers can be made
/// from it alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Which of the pod's references, from 0; 0 is the cluster-wide default network.
    pub index: u32,
    /// How many there are.
    pub total: u32,
    /// Namespace of the NAD or Network; empty for the cluster-wide default network.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The network's identity: `spec.uuid`, else the object's UID.
    pub uuid: String,
    /// Which annotation named it; empty for the cluster-wide default network.
    pub source: String,
    /// Subnets of the network with their gateways, for the queries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<(IpNet, Option<std::net::IpAddr>)>,
}

/// What a pod asked for: `references` has one element per network of `body`, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct PodNetworks {
    /// [`Body::All`], or [`Body::One`] in plugin mode.
    pub body: Body,
    /// Where each came from.
    pub references: Vec<Reference>,
    /// What users must be told though it works: quotes that were straightened, …
    pub warnings: Vec<String>,
}

/// All networks of a pod: `first` (index 0), then one per reference, in the order of
/// [`ANNOTATIONS`], duplicates included.
pub fn pod_networks(
    pod: &PodFacts,
    first: (Network, Reference),
    runtime: &Runtime,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<PodNetworks, Error> {
    let _ = (pod, first, runtime, settings, objects);
    Err(not_yet())
}

/// Plugin mode under a delegating plugin: the one network that a call means. Multus passes the bare
/// NAD name, so the namespace comes from the pod's annotation: the element whose `interface` is
/// CNI_IFNAME, else the i-th for `net<i>`, else the only one of that name, else the pod's own.
pub fn named_network(
    pod: &PodFacts,
    name: &str,
    fq_name: Option<&FqName>,
    cni_ifname: &IfName,
    runtime: &Runtime,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<PodNetworks, Error> {
    let _ = (pod, name, fq_name, cni_ifname, runtime, settings, objects);
    Err(not_yet())
}

fn not_yet() -> Error {
    Error::new(plexus_api::cni::Code::Failed, "not there", "")
}
