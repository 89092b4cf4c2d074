//! What is kept of an object, and how it is made of what the API sends. Pure.

use super::report::PodMeta;
use super::wire::{BlockWire, NadWire, NetworkWire, NodeWire, PodWire, RecordWire};
use ipnet::IpNet;
use kube::api::ObjectMeta;
use plexus_api::objects::{
    BlockSpec, BlockStatus, FINALIZER, NetworkSpec, NetworkStatus, Phase, PodAttachmentsStatus,
};
use plexus_core::resolve::{ANNOTATIONS, NadObject, NetworkObject, PodFacts};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

/// The kubelet's name for a static pod, which CNI has as its UID.
pub(super) const CONFIG_HASH: &str = "kubernetes.io/config.hash";
/// What pods have, for people and programs that ask the API.
pub(super) const NETWORK_STATUS: &str = "k8s.v1.cni.cncf.io/network-status";
/// How a network that must not get new pods because it goes away says so.
const TERMINATING: &str = "Terminating";
/// Annotations of a NAD that mean something to us.
const NAD_ANNOTATIONS: [&str; 3] = [
    "opencontrail.org/",
    "k8s.v1.cni.cncf.io/",
    "cni.soracom.io/",
];

/// A pod of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodSeen {
    pub(super) meta: PodMeta,
    /// The UID that CNI has, if that is another.
    pub(super) config_hash: Option<String>,
    /// It has run to its end: its sandbox is gone for good.
    pub(super) ended: bool,
    /// Digest of the annotation that it has.
    pub(super) network_status: Option<u64>,
}

impl PodSeen {
    /// Whether CNI means this pod.
    pub(super) fn is(&self, uid: Option<&str>) -> bool {
        uid.is_none_or(|uid| self.meta.api_uid == uid || self.config_hash.as_deref() == Some(uid))
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeSeen {
    pub(super) uid: String,
    pub(super) pod_cidrs: Vec<IpNet>,
    pub(super) addresses: Vec<IpAddr>,
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockSeen {
    pub(super) spec: BlockSpec,
    pub(super) allocated: u64,
}

/// A record of a pod of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordSeen {
    pub(super) namespace: String,
    /// The API's UID of the pod.
    pub(super) uid: String,
    /// Where our finalizer is among its finalizers.
    pub(super) finalizer: Option<usize>,
    /// Digest of its status.
    pub(super) status: u64,
}

pub(super) fn pod(wire: &PodWire) -> PodSeen {
    let has = wire.metadata.annotations.as_ref();
    let annotation = |key: &str| has.and_then(|all| all.get(key));
    let named = |key: &&str| annotation(key).map(|value| (key.to_string(), value.clone()));
    PodSeen {
        meta: PodMeta {
            facts: PodFacts {
                namespace: text(wire.metadata.namespace.as_ref()),
                name: text(wire.metadata.name.as_ref()),
                annotations: ANNOTATIONS.iter().filter_map(named).collect(),
            },
            api_uid: text(wire.metadata.uid.as_ref()),
            host_network: wire.spec.host_network,
        },
        config_hash: annotation(CONFIG_HASH).cloned(),
        ended: matches!(wire.status.phase.as_str(), "Succeeded" | "Failed"),
        network_status: annotation(NETWORK_STATUS).map(|value| digest(value)),
    }
}

pub(super) fn node(wire: &NodeWire) -> NodeSeen {
    let mut cidrs: Vec<&String> = wire.spec.pod_cidrs.iter().collect();
    if cidrs.is_empty() && !wire.spec.pod_cidr.is_empty() {
        cidrs.push(&wire.spec.pod_cidr);
    }
    let internal = wire.status.addresses.iter();
    let internal = internal.filter(|address| address.kind == "InternalIP");
    NodeSeen {
        uid: text(wire.metadata.uid.as_ref()),
        pod_cidrs: cidrs
            .into_iter()
            .filter_map(|cidr| cidr.parse::<IpNet>().ok())
            .map(|cidr| cidr.trunc())
            .collect(),
        addresses: internal
            .filter_map(|address| address.address.parse().ok())
            .collect(),
    }
}

/// A network whose spec cannot be read is there, but of no use.
pub(super) fn network(wire: &NetworkWire) -> NetworkObject {
    let status: NetworkStatus = serde_json::from_value(wire.status.clone()).unwrap_or_default();
    let (spec, unreadable) = match serde_json::from_value::<NetworkSpec>(wire.spec.clone()) {
        Ok(spec) => (spec, None),
        Err(error) => (
            NetworkSpec::default(),
            Some(format!("its spec cannot be read: {error}")),
        ),
    };
    NetworkObject {
        namespace: text(wire.metadata.namespace.as_ref()),
        name: text(wire.metadata.name.as_ref()),
        uid: text(wire.metadata.uid.as_ref()),
        spec,
        vni: status.vni,
        unusable: unreadable.or_else(|| unusable(&wire.metadata, &status)),
    }
}

pub(super) fn nad(wire: &NadWire) -> NadObject {
    let annotations = wire.metadata.annotations.iter().flatten();
    let matters = |key: &str| NAD_ANNOTATIONS.iter().any(|start| key.starts_with(start));
    NadObject {
        namespace: text(wire.metadata.namespace.as_ref()),
        name: text(wire.metadata.name.as_ref()),
        uid: text(wire.metadata.uid.as_ref()),
        annotations: annotations
            .filter(|(key, _)| matters(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        config: wire
            .spec
            .get("config")
            .and_then(Value::as_str)
            .map(str::to_owned),
    }
}

/// None if it cannot be read: then it is nobody's that we know.
pub(super) fn block(wire: &BlockWire) -> Option<BlockSeen> {
    let mut spec: BlockSpec = serde_json::from_value(wire.spec.clone()).ok()?;
    spec.cidr = spec.cidr.trunc();
    let status: BlockStatus = serde_json::from_value(wire.status.clone()).unwrap_or_default();
    Some(BlockSeen {
        spec,
        allocated: status.allocated,
    })
}

pub(super) fn record(wire: &RecordWire) -> RecordSeen {
    let status = serde_json::from_value::<PodAttachmentsStatus>(wire.status.clone());
    let finalizers = wire.metadata.finalizers.as_deref().unwrap_or_default();
    RecordSeen {
        namespace: text(wire.metadata.namespace.as_ref()),
        uid: text(wire.metadata.name.as_ref()),
        finalizer: finalizers.iter().position(|one| one == FINALIZER),
        status: status.map_or(0, |status| status_digest(&status)),
    }
}

/// For comparing a record with what it should say.
pub(super) fn status_digest(status: &PodAttachmentsStatus) -> u64 {
    serde_json::to_string(status).map_or(0, |text| digest(&text))
}

/// Within this process only.
pub(super) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Drops what nobody reads; the rest is kept on disk. Labels matter only of namespaces.
pub(super) fn trim(meta: &mut ObjectMeta, labels: bool) {
    let annotations = meta.annotations.take().into_iter().flatten();
    let read = |key: &str| {
        ANNOTATIONS.contains(&key)
            || key == CONFIG_HASH
            || key == NETWORK_STATUS
            || NAD_ANNOTATIONS.iter().any(|start| key.starts_with(start))
    };
    let annotations: BTreeMap<_, _> = annotations.filter(|(key, _)| read(key)).collect();
    *meta = ObjectMeta {
        annotations: (!annotations.is_empty()).then_some(annotations),
        labels: meta.labels.take().filter(|_| labels),
        name: meta.name.take(),
        namespace: meta.namespace.take(),
        uid: meta.uid.take(),
        resource_version: meta.resource_version.take(),
        deletion_timestamp: meta.deletion_timestamp.take(),
        finalizers: meta.finalizers.take(),
        ..ObjectMeta::default()
    };
}

fn unusable(meta: &ObjectMeta, status: &NetworkStatus) -> Option<String> {
    let phase = match status.phase {
        _ if meta.deletion_timestamp.is_some() => TERMINATING,
        Some(Phase::Active) => return None,
        Some(Phase::Pending) => "Pending",
        Some(Phase::Failed) => "Failed",
        Some(Phase::Terminating) => TERMINATING,
        Some(Phase::Initializing) | None => {
            return Some("Initializing: the controller has not looked at it yet".to_owned());
        }
    };
    let mut conditions = status.conditions.iter();
    let why = conditions.find(|condition| condition.kind == "Ready" && condition.status != "True");
    Some(match why {
        Some(condition) if !condition.message.is_empty() => {
            format!("{phase}: {}", condition.message)
        }
        _ => phase.to_owned(),
    })
}

fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}
