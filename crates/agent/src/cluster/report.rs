//! What the agent and its API side tell each other: plain values, and [`Hooks`], the questions that
//! the API side asks back.

use ipnet::IpNet;
use plexus_api::cni::BlockIpam;
use plexus_api::objects::AttachmentStatus;
use plexus_client::Server;
use plexus_core::fabric::{FabricNode, OwnedBlock};
use plexus_core::ipam::{Donation, NodeBlocks};
use plexus_core::resolve::{NadObject, NetworkObject, PodFacts};
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub(crate) struct ClusterOptions {
    pub(crate) server: Server,
    pub(crate) node: String,
    pub(crate) state_dir: PathBuf,
    /// Where CNI configurations are, for NADs that have none.
    pub(crate) cni_conf_dir: PathBuf,
    /// Where the host's files are seen, if not where they are.
    pub(crate) host_root: Option<PathBuf>,
    /// Whether the podCIDRs of Nodes are blocks of the cluster-wide default network.
    pub(crate) pod_cidrs: bool,
    /// Records are those of containers that are no pods.
    pub(crate) containers: bool,
}

/// A pod, as the API knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodMeta {
    pub(crate) facts: PodFacts,
    /// Its UID in the API; a static pod has another one for CNI.
    pub(crate) api_uid: String,
    /// It has no namespace of its own: nothing is attached.
    pub(crate) host_network: bool,
}

/// This node, as the API knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub(crate) uid: String,
    /// What the cluster gave it for its pods.
    pub(crate) pod_cidrs: Vec<IpNet>,
    /// Its addresses on the underlay, in order.
    pub(crate) addresses: Vec<IpAddr>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Fabric {
    pub(crate) nodes: Vec<FabricNode>,
    /// Blocks of `routed` networks, and other nodes' podCIDRs if they count; all nodes'.
    pub(crate) routed: Vec<OwnedBlock>,
    /// Blocks of `overlay` networks by the network's UID; all nodes'.
    pub(crate) overlay: BTreeMap<String, Vec<OwnedBlock>>,
}

/// What became of this node's HostInterface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    Written,
    /// It says the same already.
    Unchanged,
    /// It is a user's.
    Unmanaged,
    /// The API server has no such kind.
    NotDefined,
}

/// A pod, as CNI names it; or a container that is no pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodName {
    /// Its namespace; of a container, that of its networks.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Its UID, as CNI has it; of a container, the name of its record.
    pub(crate) uid: String,
    /// It is no pod, so that the API has nothing of it but the record.
    pub(crate) container: bool,
}

impl PodName {
    /// What tells it from all others. A container has a record in each namespace that it has
    /// networks of.
    pub(crate) fn key(&self) -> String {
        match self.container {
            true => format!("{}/{}", self.namespace, self.uid),
            false => self.uid.clone(),
        }
    }
}

/// What a pod has, for its record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attached {
    pub(crate) pod: PodName,
    pub(crate) sandbox: String,
    pub(crate) attachments: Vec<AttachmentStatus>,
    /// The annotation `network-status`; none: somebody else writes it.
    pub(crate) network_status: Option<serde_json::Value>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Journaled {
    pub(crate) done: Vec<Attached>,
    /// [Keys](PodName::key) of all pods and containers that it has anything of: also what is being
    /// made, and what could not be removed yet.
    pub(crate) uids: BTreeSet<String>,
    /// Rows of others cannot be read: who is not named here may be there all the same.
    pub(crate) is_partial: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockUse {
    pub(crate) network_uid: String,
    pub(crate) cidr: IpNet,
    pub(crate) allocated: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PartRequest<'a> {
    pub(crate) node: &'a str,
    pub(crate) family: Family,
    /// How many addresses it would like.
    pub(crate) addresses: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordOutcome {
    /// It is on disk, and nothing is issued from it.
    OnDisk,
    /// Addresses of it are in use here: it was never given.
    InUse,
    /// What is in use is not known, or it could not be written.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Nodes or blocks: routes and tunnels may differ.
    Fabric,
    /// Networks or NADs.
    Networks,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    /// `v1`, `k8s.cni.cncf.io/v1`, …
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// Empty for what is in no namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Its UID; a static pod's is the one that CNI has, as kubectl expects.
    pub(crate) uid: String,
}

impl Subject {
    pub(crate) fn nad(nad: &NadObject) -> Self {
        let (api_version, kind) = ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition");
        Self::of(api_version, kind, [&nad.namespace, &nad.name, &nad.uid])
    }

    pub(crate) fn network(network: &NetworkObject) -> Self {
        let names = [&network.namespace, &network.name, &network.uid];
        Self::of("plexus.dev/v1alpha1", "Network", names)
    }

    pub(crate) fn pod(pod: &PodName) -> Self {
        Self::of("v1", "Pod", [&pod.namespace, &pod.name, &pod.uid])
    }

    /// By its namespace, name and UID.
    fn of(api_version: &'static str, kind: &'static str, names: [&String; 3]) -> Self {
        let [namespace, name, uid] = names.map(String::clone);
        Self {
            api_version,
            kind,
            namespace,
            name,
            uid,
        }
    }
}

/// What the API side asks of the agent. Called on the API side's own thread: answers come from
/// memory or the journal, and nothing waits for the kernel or for a container's lock.
pub(crate) trait Hooks: Send + Sync {
    /// Something changed; only a notice, whoever acts on it does so elsewhere.
    fn changed(&self, what: Change);
    /// All pods of the journal. None if it cannot be read: then nothing is concluded from a pod's
    /// absence.
    fn pods(&self) -> Option<Journaled>;
    /// How full this node's blocks are, also those that are no longer in the API or that another
    /// node has there. None if unknown: then any may be in use.
    fn usage(&self) -> Option<Vec<BlockUse>>;
    /// Whether pods hold addresses of a network (by its UID) in that block. None if unknown: then it
    /// counts as used.
    fn in_use(&self, network_uid: &str, cidr: IpNet) -> Option<bool>;
    /// Gives up a part of this node's blocks, which are in `config`. When it returns, that is on
    /// disk, and nothing is issued from the part any more. None: there is nothing to give, or what is
    /// in use is not known.
    fn donate(
        &self,
        config: &BlockIpam,
        own: &NodeBlocks,
        request: &PartRequest<'_>,
    ) -> Option<Donation>;
    /// All parts of this node's blocks that were given away. None if unknown.
    fn donations(&self) -> Option<Vec<Donation>>;
    /// Records a donation that is not known yet, or its new owner. `given_back` is what this node has of the
    /// part by its owner's word: its use does not count.
    fn record_donation(&self, donation: &Donation, given_back: &[IpNet]) -> RecordOutcome;
    /// The block that it is a part of is no longer this node's.
    fn delete_donation(&self, donation: &Donation);
}
