//! The node's side of the Kubernetes API. Owns the watches, the cache that is also kept on disk,
//! the claiming of blocks and the one writer of records, statuses and Events.
//!
//! Everything async is behind [`Cluster`], on one thread of its own: callers are blocking threads and
//! get values from memory, or an answer within a bound. Never touches the kernel or the journal;
//! what it must know of them it asks through [`Hooks`].

mod error;
mod report;

pub use error::ClusterError;
pub(crate) use error::{AskError, ClaimError};
pub(crate) use report::{
    Attached, BlockUse, CLUSTER_NETWORK, Change, ClusterOptions, Fabric, Hooks, NodeFacts, PodMeta,
    PodName, Subject,
};

use ipnet::IpNet;
use plexus_api::cni::BlockSubnet;
use plexus_core::resolve::{NadObject, NetworkObject, Objects};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// A block that is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimRequest<'a> {
    /// Of which network.
    pub(crate) network: &'a NetworkObject,
    /// Of which subnet.
    pub(crate) subnet: &'a BlockSubnet,
    /// The one with this address.
    pub(crate) containing: Option<IpAddr>,
    /// What the caller has tried: a block of this node that is not among them is as good as a new
    /// one.
    pub(crate) have: &'a [IpNet],
}

/// A block that this node thought its own, and that is another's in the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostBlock {
    /// The network's UID.
    pub(crate) network_uid: String,
    /// The block.
    pub(crate) cidr: IpNet,
    /// Whose it is.
    pub(crate) owner: String,
}

/// The API side.
pub(crate) struct Cluster {}

impl Cluster {
    /// Starts it; does not wait for the API.
    pub(crate) fn start(
        options: ClusterOptions,
        hooks: Arc<dyn Hooks>,
    ) -> Result<Self, ClusterError> {
        let _ = (options, hooks);
        Ok(Self {})
    }

    /// Whether networks can be resolved: everything was listed, or, with the API away, is known
    /// from the disk.
    pub(crate) fn synced(&self) -> bool {
        false
    }

    /// Waits for [`synced`](Self::synced), at most so long.
    pub(crate) fn wait_synced(&self, patience: Duration) -> bool {
        let _ = patience;
        false
    }

    /// Whether the networks are as the API has them, not as the disk remembers them: only then may
    /// something be concluded from a network's absence.
    pub(crate) fn is_live(&self) -> bool {
        false
    }

    /// A network by the UID of its object.
    pub(crate) fn network_by_uid(&self, uid: &str) -> Option<Arc<NetworkObject>> {
        let _ = uid;
        None
    }

    /// A pod by its name and the UID that CNI has (none: not compared). From the cache, else by
    /// one GET of at most 3 s; `None`: there is no such pod.
    pub(crate) fn pod(
        &self,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Result<Option<PodMeta>, AskError> {
        let _ = (namespace, name, uid);
        Ok(None)
    }

    /// Makes a block this node's. One at a time per network and family: whoever asks meanwhile gets
    /// the same answer. At most 10 s.
    pub(crate) fn claim(&self, request: ClaimRequest<'_>) -> Result<IpNet, ClaimError> {
        Err(ClaimError::NotDivided(request.subnet.cidr))
    }

    /// This node's Node object, once known.
    pub(crate) fn own_node(&self) -> Option<NodeFacts> {
        None
    }

    /// Who is where, as known now.
    pub(crate) fn fabric(&self) -> Fabric {
        Fabric::default()
    }

    /// Blocks from which nothing may be issued any more.
    pub(crate) fn lost_blocks(&self) -> Vec<LostBlock> {
        Vec::new()
    }

    /// All networks, for reconciliation.
    pub(crate) fn networks(&self) -> Vec<Arc<NetworkObject>> {
        Vec::new()
    }

    /// A pod has its attachments: its record and annotation are written. Never waits.
    pub(crate) fn attached(&self, report: Attached) {
        let _ = report;
    }

    /// A sandbox has none any more: the pod's record is released, unless a newer sandbox owns it.
    pub(crate) fn detached(&self, pod: &PodName, sandbox: &str) {
        let _ = (pod, sandbox);
    }

    /// An ADD failed: an Event on the pod, with the text of the CNI error.
    pub(crate) fn failed(&self, pod: &PodName, text: &str) {
        let _ = (pod, text);
    }

    /// A warning on any object.
    pub(crate) fn event(&self, subject: Subject, reason: &'static str, text: &str) {
        let _ = (subject, reason, text);
    }
}

impl Objects for Cluster {
    fn network(&self, namespace: &str, name: &str) -> Option<Arc<NetworkObject>> {
        let _ = (namespace, name);
        None
    }

    fn nad(&self, namespace: &str, name: &str) -> Option<Arc<NadObject>> {
        let _ = (namespace, name);
        None
    }

    fn namespace(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let _ = name;
        None
    }

    fn blocks(&self, network_uid: &str) -> Vec<IpNet> {
        let _ = network_uid;
        Vec::new()
    }

    fn on_disk(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
}
