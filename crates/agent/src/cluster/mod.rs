//! The node's side of the Kubernetes API. Owns the watches, the cache that is also kept on disk,
//! the claiming of blocks, the asking for and giving of parts of them, and the one writer of records,
//! statuses and Events.
//!
//! Everything async is behind [`Cluster`], on one thread of its own: callers are blocking threads and
//! get values from memory, or an answer within a bound. Never touches the kernel or the journal;
//! what it must know of them it asks through [`Hooks`].

mod api;
mod ask;
mod blocks;
mod cached;
mod changes;
mod claim;
mod create;
mod disk;
mod donations;
mod edits;
mod error;
mod events;
mod host_interface;
mod kinds;
mod lenient;
mod multi_nic;
mod record_name;
mod records;
mod register;
mod report;
mod restore;
mod resync;
mod shared;
mod start;
mod state;
mod tasks;
mod watch;
mod wire;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use claim::{ClaimRequest, network_ref};
pub use error::ClusterError;
pub(crate) use error::{AskError, ClaimError};
pub(crate) use report::{
    Attached, BlockUse, Change, ClusterOptions, Fabric, Hooks, Journaled, NodeFacts, PartRequest,
    PodMeta, PodName, Published, RecordOutcome, Subject,
};

use crate::background::progress::Progress;
use claim::Claims;
use ipnet::IpNet;
use plexus_api::cni::Error;
use plexus_api::objects::HostNic;
use plexus_core::ipam::{BlockSource, NodeBlocks};
use plexus_core::nic_routes::{L3Network, NicBlock};
use plexus_core::resolve::{MultiNicObject, NadObject, NetworkObject, Objects};
use shared::Shared;
use start::Side;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tracing::Instrument as _;
use wire::PodWire;

const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) struct Cluster {
    shared: Arc<Shared>,
    side: Side,
    claims: Claims,
}

impl Cluster {
    /// Starts it; does not wait for the API.
    pub(crate) fn start(
        options: ClusterOptions,
        hooks: Arc<dyn Hooks>,
    ) -> Result<Self, ClusterError> {
        let (shared, side) = start::start(options, hooks)?;
        Ok(Self {
            shared,
            side,
            claims: Claims::default(),
        })
    }

    /// What is known of its background work.
    pub(crate) fn progress(&self) -> [&Progress; 7] {
        self.shared.tasks.all()
    }

    /// Whether networks can be resolved: everything was listed, or, with the API away, is known
    /// from the disk.
    pub(crate) fn synced(&self) -> bool {
        self.shared.is_synced()
    }

    /// Waits for [`synced`](Self::synced), at most so long.
    pub(crate) fn wait_synced(&self, timeout: Duration) -> bool {
        self.shared.wait_synced(timeout)
    }

    /// Calls `resolve`, and once more after each change of what it may have read, as long as it answers "try
    /// again later"; not after `timeout`.
    pub(crate) fn retry_on_change<T>(
        &self,
        timeout: Duration,
        resolve: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.shared.changes.retry(timeout, resolve)
    }

    /// Configurations in the CNI directory may be others: networks are resolved by them, too.
    pub(crate) fn files_changed(&self) {
        self.shared.changes.note();
    }

    /// Whether the networks are as the API has them, not as the disk remembers them: only then may
    /// something be concluded from a network's absence.
    pub(crate) fn is_live(&self) -> bool {
        self.shared.state().networks.live
    }

    pub(crate) fn network_by_uid(&self, uid: &str) -> Option<Arc<NetworkObject>> {
        self.shared.state().network_by_uid(uid)
    }

    pub(crate) fn is_closing(&self, uid: &str) -> bool {
        self.shared.state().is_closing(uid)
    }

    /// A pod by its name and the UID that CNI has (none: not compared). From the cache, else by
    /// one GET of at most 3 s; `None`: there is no such pod.
    pub(crate) fn pod(
        &self,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Result<Option<PodMeta>, AskError> {
        let seen = self.shared.state().pod(namespace, name, uid);
        if let Some(seen) = seen {
            return Ok(Some(seen.meta.clone()));
        }
        let api = api::namespaced::<PodWire>(&self.shared.client, namespace);
        let asked = name.to_owned();
        let found = self.query(format!("pod {namespace}/{name}"), async move {
            api.get_opt(&asked).await
        })?;
        let found = found.map(|wire| cached::pod(&wire));
        Ok(found.filter(|pod| pod.is(uid)).map(|pod| pod.meta))
    }

    /// Asks the API for `what` and waits for the answer.
    fn query<T: Send + 'static>(
        &self,
        what: String,
        request: impl Future<Output = kube::Result<T>> + Send + 'static,
    ) -> Result<T, AskError> {
        match self.side.run(QUERY_TIMEOUT, request) {
            Some(answer) => answer.map_err(|source| AskError::Api { what, source }),
            None => Err(AskError::Late {
                what,
                seconds: QUERY_TIMEOUT.as_secs(),
            }),
        }
    }

    /// Makes a block this node's, or a part of one. One at a time per network and family: whoever asks
    /// meanwhile gets the same answer. When it is its turn at most 10 s, and 10 s more if other nodes are
    /// asked; never beyond the request's `until`.
    pub(crate) fn claim(&self, request: &ClaimRequest) -> Result<IpNet, ClaimError> {
        let ours = || request.among(&self.blocks(&request.network.uuid).own);
        self.claims.share(request, ours, || {
            let claim = claim::claim(Arc::clone(&self.shared), request.clone());
            let left = request.until.saturating_duration_since(Instant::now());
            let timeout = claim::CLAIM_TIMEOUT.min(left);
            let answer = self.side.run(timeout, claim.in_current_span());
            answer.unwrap_or_else(|| Err(claim::late(request)))
        })
    }

    /// Makes this host's Node, or corrects its addresses; says whether anything was written. At
    /// most 3 s.
    pub(crate) fn register(&self, addresses: &[IpAddr]) -> Result<bool, AskError> {
        let what = format!("Node {}", self.shared.options.node);
        self.query(
            what,
            register::run(Arc::clone(&self.shared), addresses.to_vec()),
        )
    }

    /// NICs of this node that are up: no pod gets an interface on another one.
    pub(crate) fn set_nics_up(&self, up: BTreeSet<String>) {
        let nics = self.shared.nics_up.write();
        let mut nics = nics.unwrap_or_else(PoisonError::into_inner);
        if nics.as_ref() != Some(&up) {
            *nics = Some(up);
            self.shared.changes.note();
        }
    }

    /// Tells of this node's NICs in its HostInterface, which goes with the Node that has this UID. At most 3 s.
    pub(crate) fn publish_nics(
        &self,
        node_uid: &str,
        interfaces: &[HostNic],
    ) -> Result<Published, AskError> {
        let what = format!("HostInterface {}", self.shared.options.node);
        let shared = Arc::clone(&self.shared);
        let (uid, interfaces) = (node_uid.to_owned(), interfaces.to_vec());
        self.query(what, host_interface::publish(shared, uid, interfaces))
    }

    /// Of networks with an interface per NIC that this node has blocks of and whose nodes route to each other: they, and
    /// all nodes' blocks of them. None if they are not known.
    pub(crate) fn nic_blocks(&self) -> Option<(Vec<L3Network>, Vec<NicBlock>)> {
        self.shared.state().nic_blocks(&self.shared.options.node)
    }

    /// This node's Node object, once known.
    pub(crate) fn own_node(&self) -> Option<Arc<NodeFacts>> {
        self.shared.state().nodes.get(&self.shared.options.node)
    }

    /// Who is where, as known now.
    pub(crate) fn fabric(&self) -> Fabric {
        let options = &self.shared.options;
        let state = self.shared.state();
        state.fabric(options.pod_cidrs, &options.allowed_subnets)
    }

    /// Blocks from which nothing may be issued any more, with their owners. [`blocks`](BlockSource::blocks) leaves them out.
    #[cfg(all(test, feature = "e2e"))]
    pub(crate) fn lost_blocks(&self) -> BTreeMap<String, String> {
        self.shared.blocks.known().lost.clone()
    }

    /// Blocks that are or were this node's, by their network's UID: pods may hold addresses of any.
    pub(crate) fn own_blocks(&self) -> BTreeSet<(String, IpNet)> {
        let shared = &self.shared;
        shared.blocks.all(&shared.state(), &shared.options.node)
    }

    /// All networks, for reconciliation.
    pub(crate) fn networks(&self) -> Vec<Arc<NetworkObject>> {
        let state = self.shared.state();
        state.networks.objects.values().cloned().collect()
    }

    /// A pod has its attachments: its record and annotation are written. Never waits.
    pub(crate) fn attached(&self, report: Attached) {
        self.shared.records.attached(report);
        self.shared.blocks.touched();
    }

    /// A sandbox has none any more: the pod's record is released, unless a newer sandbox owns it.
    pub(crate) fn detached(&self, pod: &PodName, sandbox: &str) {
        self.shared.records.detached(pod, sandbox);
        self.shared.blocks.touched();
    }

    /// A warning on any object. Never waits.
    pub(crate) fn event(&self, subject: Subject, reason: &'static str, text: &str) {
        self.shared.events.push(subject, reason, text);
    }
}

impl Objects for Cluster {
    fn network(&self, namespace: &str, name: &str) -> Option<Arc<NetworkObject>> {
        let state = self.shared.state();
        state.networks.get(&state::key(namespace, name))
    }

    fn nad(&self, namespace: &str, name: &str) -> Option<Arc<NadObject>> {
        let state = self.shared.state();
        state.nads.get(&state::key(namespace, name))
    }

    fn namespace(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let labels = self.shared.state().namespaces.get(name);
        labels.map(|labels| labels.as_ref().clone())
    }

    fn on_disk(&self, name: &str) -> Option<String> {
        let options = &self.shared.options;
        let root = options.host_root.as_deref();
        crate::host::cluster_network::on_disk(&options.cni_conf_dir, root, name)
    }

    fn multi_nic(&self, name: &str) -> Option<Arc<MultiNicObject>> {
        let up = self.shared.nics_up.read();
        let up = up.unwrap_or_else(PoisonError::into_inner);
        let here = &self.shared.options.node;
        let state = self.shared.state();
        state.multi_nic(here, name, |nic| {
            up.as_ref().is_none_or(|up| up.contains(nic))
        })
    }

    fn taken_within(&self, net: &IpNet) -> Option<String> {
        self.shared.state().taken_within(net)
    }
}

impl BlockSource for Cluster {
    fn blocks(&self, network_uid: &str) -> NodeBlocks {
        self.shared.node_blocks(network_uid)
    }
}
