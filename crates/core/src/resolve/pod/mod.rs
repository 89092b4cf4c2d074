//! Kubernetes: what a pod's annotations ask for becomes the same list of networks
//! that an inline configuration has.
//!
//! Takes the pod, and what the node knows of networks ([`Objects`]); never asks anyone else. Gives
//! a [`Body`] for the one path behind every door, with where each network came from.
//!
//! ```text
//!   object ──read and checked once──► ParsedNad, ParsedNetwork ──request, for each pod──► Network
//! ```
//! An object is read when a pod first refers to it, and what was read stays with it until it changes: a node holds
//! nothing of networks that its pods do not use. The text of a NAD stays beside: it tells whether the NAD has
//! changed, and is read again for pods whose `cni-args` stand in the configuration ([`ParsedNetwork`]).

mod cached;
mod cluster_default;
mod container;
mod default_gw;
mod error;
mod examine;
mod lookup;
mod multi_nic;
mod nad;
mod named;
mod namespaces;
mod object;
mod once;
mod remedy;
mod request;

pub use cached::{
    CONFIG_HASH, MAX_KEPT_CONFIG, is_kept, matters_in_nad, nad_size, network_size, too_large,
};
pub use cluster_default::{CLUSTER_DEFAULT, block_network, pod_cidr_network};
pub use container::{HOME, container_network, is_first, runtime_name};
pub use error::{Instead, ResolveError};
pub use examine::{Examined, examine};
pub use lookup::{Networks, by_fq_name};
pub use multi_nic::{MultiNicError, MultiNicObject, NodeNic};
pub use nad::{ParsedNad, nad_network};
pub use named::named_network;
pub use namespaces::NamespaceRules;
pub use object::name_of;
pub use once::ReadOnce;
pub use plexus_api::pod::ANNOTATIONS;
pub use request::Named;

use crate::allowed_subnets::AllowedSubnets;
use crate::ipam;
use ipnet::IpNet;
use lookup::{Lookup, ResolvedNetwork};
use plexus_api::cni::{DefaultGw, Network, NetworkBackend, ParsedNetwork, Routing, Runtime};
use plexus_api::go_folds;
use plexus_api::objects::NetworkSpec;
use plexus_api::pod::MAX_NETWORKS;
use request::NetworkRequest;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

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
    /// Where its blocks may be, besides the subnets of the spec.
    pub earlier_subnets: Vec<IpNet>,
    /// The UID of the NAD that it was made from, if it was.
    pub made_from: Option<String>,
    /// Why no new pod may use it, if so: Pending, Failed, Terminating.
    pub unusable: Option<String>,
    /// It is being deleted.
    pub going: bool,
    /// What the spec means; nothing if no pod can use it so.
    pub parsed: ReadOnce<Option<ParsedNetwork>>,
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
    /// Why no pod may use it, if so: it is too large to be kept.
    pub unusable: Option<String>,
    /// What it means.
    pub parsed: ReadOnce<ParsedNad>,
}

/// What the node knows. `None` means: there is no such object, and the caches are in sync.
pub trait Objects {
    /// A `Network`.
    fn network(&self, namespace: &str, name: &str) -> Option<Arc<NetworkObject>>;
    /// A NAD.
    fn nad(&self, namespace: &str, name: &str) -> Option<Arc<NadObject>>;
    /// Labels of a namespace.
    fn namespace(&self, name: &str) -> Option<BTreeMap<String, String>>;
    /// A configuration in the CNI directory with that `name` (NADs without a config).
    fn on_disk(&self, name: &str) -> Option<String>;
    /// A MultiNicNetwork, with what this node has of it.
    fn multi_nic(&self, name: &str) -> Option<Arc<MultiNicObject>>;
    /// What is within a prefix that no network may take from the nodes: an address of a Node, or the API server's.
    fn taken_within(&self, net: &IpNet) -> Option<String> {
        let _ = net;
        None
    }
}

/// What holds on every node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `--cluster-name`: `<cluster>-<namespace>` is a project of that name's namespace.
    pub cluster_name: String,
    /// Pod and service CIDRs: they stay on eth0 when the default route goes elsewhere.
    pub cluster_cidrs: Vec<IpNet>,
    /// `--allowed-subnets`: what networks may put into the nodes' own routing tables.
    pub allowed_subnets: AllowedSubnets,
    /// Whose pods may use which networks.
    pub namespaces: NamespaceRules,
}

/// Where an attachment came from; kept in the journal, so that records and answers can be made
/// from it alone.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub subnets: Vec<(IpNet, Option<IpAddr>)>,
}

impl Reference {
    /// To one network, the only one, by its own name.
    fn of(namespace: &str, name: &str, uuid: &str, network: &Network) -> Self {
        Self {
            index: 0,
            total: 1,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uuid: uuid.to_owned(),
            source: String::new(),
            subnets: match &network.backend {
                NetworkBackend::Native(native) => native
                    .ipam
                    .as_ref()
                    .map_or_else(Vec::new, |ipam| ipam::of(ipam).subnets()),
                NetworkBackend::Delegate(_) => Vec::new(),
            },
        }
    }
}

/// What a pod asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct PodNetworks {
    /// Its references, in order: all of the pod's, or in plugin mode the one that the call means.
    pub references: Vec<ResolvedReference>,
    /// Who has the default route; none in plugin mode.
    pub default_gw: Option<DefaultGw>,
    /// What users must be told though it works: quotes that were straightened, …
    pub warnings: Vec<String>,
}

/// One mention of a network, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedReference {
    /// Where it came from.
    pub reference: Reference,
    /// What it means: a network for each interface that it makes.
    pub networks: Networks,
}

/// All networks of a pod: `first` (index 0), then one per reference, in the order of
/// [`ANNOTATIONS`], duplicates included. Multus' `default-network` replaces `first`. When the
/// default route of a family goes elsewhere, `first` keeps the cluster's own prefixes, and answers
/// by itself whoever reaches it from outside of them.
pub fn pod_networks(
    pod: &PodFacts,
    first: (Network, Reference),
    runtime: &Runtime,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<PodNetworks, ResolveError> {
    let lookup = Lookup {
        pod,
        settings,
        objects,
    };
    let request = request::of(pod)?;
    if request.len() > MAX_NETWORKS {
        return Err(ResolveError::TooMany(request.len()));
    }
    let mut all = All::default();
    let (network, reference) = match request::default_network(pod)? {
        Some(request) => replaced(&lookup, &request, runtime, &mut all.warnings)?,
        None => first,
    };
    unheeded(runtime, &network, &mut all.warnings);
    all.references.push(ResolvedReference {
        reference,
        networks: Networks::One(network),
    });
    for (index, request) in (1..).zip(&request) {
        let found = lookup
            .find(request)
            .map_err(|error| error.within(request, index))?;
        all.push(found, request, index)?;
    }
    all.answer_where_asked();
    let total = u32::try_from(all.references.len()).unwrap_or(u32::MAX);
    for (index, one) in (0..).zip(&mut all.references) {
        (one.reference.index, one.reference.total) = (index, total);
    }
    let default_gw = default_gw::choose(pod, &mut all, &request, settings)?;
    Ok(PodNetworks {
        references: all.references,
        default_gw: Some(default_gw),
        warnings: all.warnings,
    })
}

/// What is known of the pod's networks so far.
#[derive(Default)]
struct All {
    references: Vec<ResolvedReference>,
    warnings: Vec<String>,
}

impl All {
    fn push(
        &mut self,
        found: ResolvedNetwork,
        request: &NetworkRequest,
        index: usize,
    ) -> Result<(), ResolveError> {
        let mut networks = found.networks;
        for network in networks.all_mut() {
            network.interface = Some(request.ifname(index)?);
            if network.backend.executed().is_some() {
                // What the runtime sent is for the first interface alone.
                network.runtime.get_or_insert_default();
            }
        }
        self.references.push(ResolvedReference {
            reference: found.reference,
            networks,
        });
        self.warnings.extend(found.warnings);
        Ok(())
    }

    /// A pod answers by the interface that was asked, since another one may not send from its address:
    /// if it is on one routed network more than once, and on networks of the fabric, which nodes and
    /// other networks reach.
    fn answer_where_asked(&mut self) {
        let references = self.references.iter();
        let uuids: Vec<String> = references.map(|one| one.reference.uuid.clone()).collect();
        for (index, one) in self.references.iter_mut().enumerate() {
            let same = uuids.iter().filter(|uuid| **uuid == one.reference.uuid);
            let repeated = same.count() > 1;
            for network in one.networks.all_mut() {
                network.source_routing |= is_routed(network) && repeated;
                network.source_routing |= index > 0 && is_of_fabric(network);
            }
        }
    }
}

/// Whether its addresses are known to the nodes.
fn is_of_fabric(network: &Network) -> bool {
    matches!(&network.backend, NetworkBackend::Native(native) if native.provider.kind().routing == Routing::Node)
}

/// Whether the network is natively routed: then a pod's source addresses may be checked.
fn is_routed(network: &Network) -> bool {
    matches!(&network.backend, NetworkBackend::Native(native) if native.provider.is_routed())
}

/// Multus' `default-network`: a NAD instead of the cluster-wide default network. What the runtime
/// sent goes there, too.
fn replaced(
    lookup: &Lookup<'_>,
    request: &NetworkRequest,
    runtime: &Runtime,
    warnings: &mut Vec<String>,
) -> Result<(Network, Reference), ResolveError> {
    if request.selection.interface.is_some() {
        return Err(ResolveError::OfFirst("another name"));
    }
    if request.selection.default_route.is_some() {
        return Err(ResolveError::OfFirst("`default-route`"));
    }
    let found = lookup
        .find(request)
        .map_err(|error| error.within(request, 0))?;
    let Networks::One(mut network) = found.networks else {
        return Err(ResolveError::OfFirst("a multi-NIC network"));
    };
    network.interface = None;
    if network.backend.executed().is_some() {
        let mut raw = runtime.raw.clone();
        raw.extend(network.runtime.take().unwrap_or_default());
        network.runtime = Some(raw);
    }
    warnings.extend(found.warnings);
    Ok((network, found.reference))
}

/// What the runtime asks of the first interface and nobody does.
fn unheeded(runtime: &Runtime, first: &Network, warnings: &mut Vec<String>) {
    let key = |(key, value): &(&String, &Value)| go_folds("bandwidth", key) && !value.is_null();
    if matches!(first.backend, NetworkBackend::Native(_))
        && runtime.raw.iter().any(|entry| key(&entry))
    {
        let text = "the pod's bandwidth limits have no effect on the first interface: only executed plugins (`bandwidth`) limit it";
        warnings.push(text.to_owned());
    }
}
