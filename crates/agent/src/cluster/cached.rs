//! What the cache has of each object, and how that is made of what the API sends. Pure.

use super::lenient;
use super::report::{NodeFacts, PodMeta};
use super::wire::{BlockWire, NadWire, NetworkWire, NodeWire, PodWire, RecordWire, RequestWire};
use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use plexus_api::objects::{
    BlockRequestSpec, BlockSpec, BlockStatus, DonatedPart, FINALIZER, FROM_LABEL, NetworkSpec,
    NetworkStatus, Phase, PodAttachmentsStatus,
};
pub(super) use plexus_core::resolve::CONFIG_HASH;
use plexus_core::resolve::{
    self, ANNOTATIONS, NadObject, NetworkObject, PodFacts, ReadOnce, is_kept, matters_in_nad,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What pods have, for people and programs that ask the API.
pub(super) const NETWORK_STATUS: &str = "k8s.v1.cni.cncf.io/network-status";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedPod {
    pub(super) meta: PodMeta,
    /// The UID that CNI has, if that is another.
    pub(super) config_hash: Option<String>,
    /// It has run to its end: its sandbox is gone for good.
    pub(super) ended: bool,
    pub(super) network_status: Option<u64>,
}

impl CachedPod {
    /// Whether CNI means this pod.
    pub(super) fn is(&self, uid: Option<&str>) -> bool {
        uid.is_none_or(|uid| self.meta.api_uid == uid || self.config_hash.as_deref() == Some(uid))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedBlock {
    pub(super) spec: BlockSpec,
    /// The object's UID: one that was deleted and made again is another.
    pub(super) uid: String,
    pub(super) allocated: u64,
    /// What its owner gave away.
    pub(super) given: Vec<DonatedPart>,
    /// It is a part of another one.
    pub(super) is_part: bool,
    pub(super) closed: bool,
    /// Its node has written no status yet: nothing is issued from a block on a NIC before, so that the controller may take
    /// such a one back.
    pub(super) untouched: bool,
    /// When the API server made it, in seconds since 1970.
    pub(super) made: Option<i64>,
    /// The newest version of it, or what was given of it, cannot be read; this is an earlier one.
    pub(super) unreadable: bool,
}

impl CachedBlock {
    /// Whether nothing new is issued from it: its NIC is gone, or has another block.
    pub(super) fn is_retired(&self) -> bool {
        self.spec.nic.as_ref().is_some_and(|nic| nic.retired)
    }

    /// Whether it is on a NIC, and the API does not know yet that addresses of it may be in use.
    pub(super) fn is_new_on_nic(&self) -> bool {
        self.spec.nic.is_some() && self.untouched
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedRequest {
    pub(super) spec: BlockRequestSpec,
    /// The object's UID: a node that asks again makes another.
    pub(super) uid: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedRecord {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The UID of its pod, by which it is found; its name, unless another node has taken that.
    pub(super) uid: String,
    /// Where our finalizer is among its finalizers.
    pub(super) finalizer: Option<usize>,
    pub(super) status: u64,
}

pub(super) fn pod(wire: &PodWire) -> CachedPod {
    let has = wire.metadata.annotations.as_ref();
    let annotation = |key: &str| has.and_then(|all| all.get(key));
    let named = |key: &&str| annotation(key).map(|value| (key.to_string(), value.clone()));
    CachedPod {
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

pub(super) fn node(wire: &NodeWire) -> NodeFacts {
    let cidrs = match wire.spec.pod_cidrs.as_slice() {
        [] => std::slice::from_ref(&wire.spec.pod_cidr),
        all => all,
    };
    let cidrs = cidrs.iter().filter_map(|cidr| cidr.parse::<IpNet>().ok());
    let addresses = wire.status.addresses.iter();
    let internal = addresses.filter(|address| address.kind == "InternalIP");
    NodeFacts {
        uid: text(wire.metadata.uid.as_ref()),
        pod_cidrs: cidrs.map(|cidr| cidr.trunc()).collect(),
        addresses: internal
            .filter_map(|address| address.address.parse().ok())
            .collect(),
    }
}

/// None if its spec cannot be read.
pub(super) fn network(wire: &NetworkWire) -> Option<NetworkObject> {
    let (spec, not_known) = network_spec(wire).ok()?;
    let status = network_status(&wire.status);
    Some(network_with(wire, spec, &status, not_known))
}

/// A network whose spec cannot be read is there: what it has stays as it was `before`, and no new pod
/// may use it.
pub(super) fn unreadable_network(
    wire: &NetworkWire,
    before: Option<&NetworkObject>,
) -> NetworkObject {
    let same = before.filter(|before| wire.metadata.uid.as_deref() == Some(before.uid.as_str()));
    let spec = same.map(|before| before.spec.clone()).unwrap_or_default();
    let mut status = network_status(&wire.status);
    status.vni = status.vni.or(same.and_then(|before| before.vni));
    let why = network_spec(wire).err().map(|error| error.to_string());
    let why = format!("its spec cannot be read: {}", why.unwrap_or_default());
    network_with(wire, spec, &status, Some(why))
}

pub(super) fn nad(wire: &NadWire) -> NadObject {
    let annotations = wire.metadata.annotations.iter().flatten();
    NadObject {
        namespace: text(wire.metadata.namespace.as_ref()),
        name: text(wire.metadata.name.as_ref()),
        uid: text(wire.metadata.uid.as_ref()),
        annotations: annotations
            .filter(|(key, _)| matters_in_nad(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        config: wire
            .spec
            .get("config")
            .and_then(Value::as_str)
            .map(str::to_owned),
        unusable: left_out(&wire.spec).map(str::to_owned),
        parsed: ReadOnce::default(),
    }
}

/// What is kept of a NAD for its configuration, in bytes.
pub(super) fn nad_size(wire: &NadWire) -> usize {
    let config = wire.spec.get("config").and_then(Value::as_str);
    let annotations = wire.metadata.annotations.iter().flatten();
    resolve::nad_size(config, annotations, owners(&wire.metadata))
}

/// The same of a Network.
pub(super) fn network_size(wire: &NetworkWire) -> usize {
    resolve::network_size(&wire.spec, owners(&wire.metadata))
}

fn owners(meta: &ObjectMeta) -> impl Iterator<Item = [&str; 3]> {
    let owners = meta.owner_references.iter().flatten();
    owners.map(|one| [&one.api_version, &one.name, &one.uid].map(String::as_str))
}

/// What stands for a spec that is not kept.
pub(super) fn spec_left_out(why: &str) -> Value {
    Value::Object([(LEFT_OUT.to_owned(), why.into())].into_iter().collect())
}

/// Why a spec was not kept, if it was not. No spec of a NAD or Network has anything of that name.
fn left_out(spec: &Value) -> Option<&str> {
    spec.get(LEFT_OUT)?.as_str()
}

const LEFT_OUT: &str = "leftOut";

/// None if it cannot be read.
pub(super) fn block(wire: &BlockWire) -> Option<CachedBlock> {
    let (spec, dropped) = lenient::BLOCK.prune(&wire.spec);
    let mut spec: BlockSpec = serde_json::from_value(spec).ok()?;
    if !dropped.is_empty() {
        tracing::debug!(
            ?dropped,
            block = wire.metadata.name,
            "fields that this version does not know"
        );
    }
    spec.cidr = spec.cidr.trunc();
    // Of what was given nothing may be missed.
    let status: Option<BlockStatus> = match &wire.status {
        Value::Null => Some(BlockStatus::default()),
        status => serde_json::from_value(status.clone()).ok(),
    };
    let unreadable = status.is_none();
    let untouched = wire.status.is_null();
    let status = status.unwrap_or_default();
    let labels = wire.metadata.labels.as_ref();
    Some(CachedBlock {
        spec,
        uid: text(wire.metadata.uid.as_ref()),
        allocated: status.allocated,
        given: status.given,
        is_part: labels.is_some_and(|labels| labels.contains_key(FROM_LABEL)),
        closed: status.closed,
        untouched,
        made: wire.metadata.creation_timestamp.as_ref().map(seconds),
        unreadable,
    })
}

fn seconds(time: &Time) -> i64 {
    time.0.as_second()
}

/// None if it cannot be read.
pub(super) fn request(wire: &RequestWire) -> Option<CachedRequest> {
    let (spec, _) = lenient::REQUEST.prune(&wire.spec);
    Some(CachedRequest {
        spec: serde_json::from_value(spec).ok()?,
        uid: text(wire.metadata.uid.as_ref()),
    })
}

/// A block that cannot be read is whose it was, and nothing is issued from it; one that never could
/// is nobody's that we know.
pub(super) fn unreadable_block(before: Option<&CachedBlock>) -> Option<CachedBlock> {
    before.map(|before| CachedBlock {
        unreadable: true,
        ..before.clone()
    })
}

pub(super) fn record(wire: &RecordWire) -> CachedRecord {
    let status = serde_json::from_value::<PodAttachmentsStatus>(wire.status.clone());
    let finalizers = wire.metadata.finalizers.as_deref().unwrap_or_default();
    let name = text(wire.metadata.name.as_ref());
    let uid = wire.spec.pointer("/pod/uid").and_then(Value::as_str);
    CachedRecord {
        namespace: text(wire.metadata.namespace.as_ref()),
        uid: uid.map_or_else(|| name.clone(), str::to_owned),
        name,
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
    let annotations: BTreeMap<_, _> = annotations.filter(|(key, _)| is_kept(key)).collect();
    *meta = ObjectMeta {
        annotations: (!annotations.is_empty()).then_some(annotations),
        labels: meta.labels.take().filter(|_| labels),
        name: meta.name.take(),
        namespace: meta.namespace.take(),
        uid: meta.uid.take(),
        resource_version: meta.resource_version.take(),
        deletion_timestamp: meta.deletion_timestamp.take(),
        finalizers: meta.finalizers.take(),
        owner_references: meta.owner_references.take().map(|mut owners| {
            owners.retain(|owner| owner.kind == NAD);
            owners
        }),
        ..ObjectMeta::default()
    };
}

fn network_with(
    wire: &NetworkWire,
    spec: NetworkSpec,
    status: &NetworkStatus,
    unreadable: Option<String>,
) -> NetworkObject {
    let deleted = wire.metadata.deletion_timestamp.is_some();
    let going = deleted || status.phase == Some(Phase::Terminating);
    NetworkObject {
        namespace: text(wire.metadata.namespace.as_ref()),
        name: text(wire.metadata.name.as_ref()),
        uid: text(wire.metadata.uid.as_ref()),
        spec,
        vni: status.vni,
        earlier_subnets: status.subnets.clone(),
        made_from: made_from(&wire.metadata),
        unusable: unreadable.or_else(|| status.unusable(going)),
        going,
        parsed: ReadOnce::default(),
    }
}

/// And why no new pod may use it: whoever does not understand whose pods may cannot say that these may.
fn network_spec(wire: &NetworkWire) -> serde_json::Result<(NetworkSpec, Option<String>)> {
    if let Some(why) = left_out(&wire.spec) {
        return Err(serde::de::Error::custom(why));
    }
    let (spec, dropped) = lenient::NETWORK.prune(&wire.spec);
    let spec = serde_json::from_value(spec)?;
    let mut limits = dropped.iter().filter(|path| path.starts_with(LIMITS));
    let not_known = limits.next().map(|path| {
        format!("{path} is not known to this version, so it cannot tell whose pods may use it: is the agent older than the definitions?")
    });
    if !dropped.is_empty() {
        tracing::warn!(
            network = wire.metadata.name,
            fields = dropped.join(", "),
            "has fields that this version does not know: ignored; is the agent older than the definitions?"
        );
    }
    Ok((spec, not_known))
}

/// Where a spec says whose pods may use the network.
const LIMITS: &str = "spec.allowedNamespaces.";

/// Of a status with a phase or condition that is not known, the number still counts: tunnels have it.
fn network_status(status: &Value) -> NetworkStatus {
    serde_json::from_value(status.clone()).unwrap_or_else(|_| {
        let vni = status.get("vni").and_then(Value::as_u64);
        NetworkStatus {
            vni: vni.and_then(|vni| u32::try_from(vni).ok()),
            ..NetworkStatus::default()
        }
    })
}

const NAD: &str = "NetworkAttachmentDefinition";

fn made_from(meta: &ObjectMeta) -> Option<String> {
    let mut owners = meta.owner_references.iter().flatten();
    let nad = owners.find(|owner| owner.kind == NAD);
    nad.map(|owner| owner.uid.clone())
}

fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::IpAddr;

    fn wire<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_network_that_cannot_be_read_is_there_but_of_no_use() {
        for spec in [
            json!({"subnets": {"a": {"cidr": "not one"}}}),
            json!({"subnets": ["a"]}),
            json!({"mtu": "many"}),
            json!("text"),
        ] {
            let meta = json!({"name": "blue", "namespace": "a", "uid": "u"});
            let status = json!({"phase": "Active"});
            let read = wire(json!({"metadata": meta, "spec": spec, "status": status}));
            assert_eq!(network(&read), None);
            let seen = unreadable_network(&read, None);
            assert_eq!((seen.name.as_str(), seen.uid.as_str()), ("blue", "u"));
            assert!(
                seen.unusable
                    .unwrap()
                    .starts_with("its spec cannot be read")
            );
        }
        // Whether it goes is read all the same.
        let meta = json!({"name": "b", "namespace": "a", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let going = wire(json!({"metadata": meta, "spec": {"subnets": 7}, "status": {}}));
        assert!(unreadable_network(&going, None).going);
        // Not even a body.
        let bare = unreadable_network(&wire(json!({"metadata": {"name": "bare"}})), None);
        assert!(bare.unusable.is_some());
    }

    #[test]
    fn what_a_newer_version_writes_takes_nothing_down() {
        let meta = json!({"name": "blue", "namespace": "a", "uid": "u"});
        let seen = |spec: Value, status: Value| {
            network(&wire(
                json!({"metadata": meta, "spec": spec, "status": status}),
            ))
        };
        let active = json!({"phase": "Active", "vni": 5000, "later": 1});
        let plain = json!({"provider": "routed", "subnets": {"a": {"cidr": "10.1.0.0/16"}}});
        let before = seen(plain.clone(), active.clone()).unwrap();
        assert_eq!(before.unusable, None);
        let mut newer = plain.clone();
        newer["later"] = json!({"x": 1});
        newer["subnets"]["a"]["later"] = json!(true);
        assert_eq!(seen(newer, active.clone()).as_ref(), Some(&before));
        // Whose pods may use it is not understood: no new pods, and all else as it was.
        for allowed in [
            json!({"from": "All", "later": 1}),
            json!({"from": "Selector", "selector": {"matchLabels": {"a": "b"}, "later": 1}}),
            json!({"from": "Selector", "selector": {"matchExpressions":
                [{"key": "a", "operator": "Exists", "later": 1}]}}),
        ] {
            let mut newer = plain.clone();
            newer["allowedNamespaces"] = allowed.clone();
            let closed = seen(newer, active.clone()).unwrap();
            assert_eq!(
                (&closed.spec.subnets, closed.vni),
                (&before.spec.subnets, Some(5000))
            );
            let why = closed.unusable.unwrap_or_default();
            assert!(why.contains("later is not known"), "{allowed}: {why}");
        }
        let beyond = json!({"provider": "routed", "allowedNamespaces": {"from": "Later"}});
        assert_eq!(seen(beyond, active.clone()), None);
        // A phase that is not known: no new pods, and the same tunnels.
        let paused = seen(plain, json!({"phase": "Paused", "vni": 5000})).unwrap();
        assert_eq!((paused.vni, paused.unusable.is_some()), (Some(5000), true));

        let odd = wire(json!({"metadata": meta, "spec": {"subnets": 3}, "status": {}}));
        let after = unreadable_network(&odd, Some(&before));
        assert_eq!((&after.spec, after.vni), (&before.spec, before.vni));
        assert!(after.unusable.unwrap().starts_with("its spec cannot"));
        // Another one of that name has nothing of it.
        let other = wire(json!({"metadata": {"name": "blue", "uid": "v"}, "spec": {"subnets": 3}}));
        let after = unreadable_network(&other, Some(&before));
        assert_eq!((after.spec, after.vni), (NetworkSpec::default(), None));

        let spec = json!({"network": {"namespace": "a", "name": "blue", "uid": "u"}, "later": 1,
            "cidr": "10.1.0.64/26", "node": "n2", "nodeUID": "x"});
        let status = |status: Value| {
            let meta = json!({"name": "x", "labels": {"plexus.dev/from": "n1"}});
            block(&wire(
                json!({"metadata": meta, "spec": spec, "status": status}),
            ))
        };
        let given = json!([{"cidr": "10.1.0.65/32", "node": "n3", "later": 1}]);
        let seen = status(json!({"allocated": 3, "given": given})).unwrap();
        assert_eq!(
            (seen.allocated, seen.given.len(), seen.is_part),
            (3, 1, true)
        );
        // Its donations cannot be read: nothing may be issued from it.
        let odd = status(json!({"given": ["10.1.0.65/32"]})).unwrap();
        assert!(odd.unreadable && !seen.unreadable);
        let cached = block(&wire(json!({"metadata": {"name": "x"}, "spec": spec}))).unwrap();
        assert_eq!(
            (cached.spec.node.as_str(), cached.unreadable),
            ("n2", false)
        );
        let after = unreadable_block(Some(&cached)).unwrap();
        assert_eq!((after.spec, after.unreadable), (cached.spec, true));
        assert_eq!(unreadable_block(None), None);
    }

    #[test]
    fn a_network_is_usable_only_once_it_is_active() {
        let with = |status: Value, deleted: bool| {
            let deleted = deleted.then_some("2026-01-01T00:00:00Z");
            let meta = json!({"name": "blue", "deletionTimestamp": deleted});
            network(&wire(
                json!({"metadata": meta, "spec": {}, "status": status}),
            ))
            .unwrap()
            .unusable
        };
        assert_eq!(with(json!({"phase": "Active"}), false), None);
        assert_eq!(
            with(json!({"phase": "Active"}), true).unwrap(),
            "Terminating"
        );
        assert!(
            with(Value::Null, false)
                .unwrap()
                .starts_with("Initializing")
        );
        assert!(
            with(json!({"phase": "Unheard"}), false)
                .unwrap()
                .starts_with("Initializing")
        );
        let why = json!({"phase": "Failed", "conditions": [{"type": "Ready", "status": "False",
            "reason": "KernelFeature", "message": "no ipvlan here", "lastTransitionTime": ""}]});
        assert_eq!(with(why, false).unwrap(), "Failed: no ipvlan here");
    }

    #[test]
    fn of_a_node_only_what_makes_sense_is_kept() {
        let seen = node(&wire(json!({
            "metadata": {"name": "n1", "uid": "u"},
            "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.5/24", "fd00::/64", "junk"]},
            "status": {"addresses": [
                {"type": "InternalIP", "address": "192.0.2.1"},
                {"type": "InternalIP", "address": "nowhere"},
                {"type": "ExternalIP", "address": "198.51.100.1"}]},
        })));
        let cidrs: Vec<String> = seen.pod_cidrs.iter().map(ToString::to_string).collect();
        assert_eq!(cidrs, ["10.1.0.0/24", "fd00::/64"]);
        assert_eq!(seen.addresses, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        let old = node(&wire(json!({"spec": {"podCIDR": "10.1.0.0/24"}})));
        assert_eq!(old.pod_cidrs.len(), 1);
    }

    #[test]
    fn blocks_and_nads_may_be_anything() {
        assert!(
            block(&wire(
                json!({"metadata": {"name": "x"}, "spec": {"cidr": 7}})
            ))
            .is_none()
        );
        assert!(block(&wire(json!({"metadata": {"name": "x"}}))).is_none());
        let odd = nad(&wire(
            json!({"metadata": {"name": "x"}, "spec": {"config": {"a": 1}}}),
        ));
        assert_eq!(odd.config, None);
        assert_eq!(nad(&wire(json!({"spec": 3}))).config, None);
    }

    #[test]
    fn what_nobody_reads_is_not_kept() {
        let mut pod_wire: PodWire = wire(json!({
            "metadata": {"name": "p", "labels": {"a": "b"}, "managedFields": [{}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "long",
                    "plexus.dev/networks": "blue", "kubernetes.io/config.hash": "h",
                    "k8s.v1.cni.cncf.io/network-status": "[]"}},
            "spec": {"hostNetwork": true, "containers": [{}]}, "status": {"phase": "Failed"},
        }));
        trim(&mut pod_wire.metadata, false);
        let cached = serde_json::to_string(&pod_wire).unwrap();
        assert!(
            !cached.contains("long")
                && !cached.contains("managedFields")
                && !cached.contains("labels")
        );
        let seen = pod(&pod_wire);
        assert!(seen.ended && seen.meta.host_network && seen.is(Some("h")));
        assert!(!seen.is(Some("other")));
        assert_eq!(seen.network_status, Some(digest("[]")));
        assert_eq!(seen.meta.facts.annotations.len(), 1);
    }

    #[test]
    fn of_which_nad_a_network_was_made_is_kept() {
        let owner = |kind: &str, uid: &str| json!({"apiVersion": "v1", "kind": kind, "name": "n", "uid": uid});
        let owners = [
            owner("Other", "a"),
            owner("NetworkAttachmentDefinition", "b"),
        ];
        let mut made: NetworkWire =
            wire(json!({"metadata": {"name": "n", "ownerReferences": owners}, "spec": {}}));
        trim(&mut made.metadata, false);
        let cached: NetworkWire = wire(serde_json::to_value(&made).unwrap());
        assert_eq!(network(&cached).unwrap().made_from.as_deref(), Some("b"));
    }

    #[test]
    fn a_record_is_compared_by_what_it_says() {
        let status = PodAttachmentsStatus {
            sandbox: "s".into(),
            attachments: Vec::new(),
        };
        let meta = json!({"name": "u", "namespace": "a", "finalizers": ["other", FINALIZER]});
        let seen = record(&wire(json!({"metadata": meta, "status": status})));
        assert_eq!(
            (seen.status, seen.finalizer),
            (status_digest(&status), Some(1))
        );
        let none = record(&wire(
            json!({"metadata": {"name": "u"}, "status": {"attachments": 3}}),
        ));
        assert_eq!((none.status, none.finalizer), (0, None));
    }
}
