//! The kinds that are watched: which objects of each, what is kept, and what follows from a change.

use super::cached::{self, CachedBlock, CachedNode, CachedPod, CachedRecord, CachedRequest};
use super::edits;
use super::report::Change;
use super::shared::Shared;
use super::state::{State, Store, key};
use super::wire::{BlockWire, NadWire, NetworkWire, NodeWire, PodWire, RecordWire, RequestWire};
use k8s_openapi::api::core::v1::Namespace;
use kube::Resource;
use kube::api::{ListParams, PartialObjectMeta};
use plexus_api::objects::NODE_LABEL;
use plexus_core::resolve::{NadObject, NetworkObject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// A kind.
pub(super) trait Kind: Send + Sync + 'static {
    /// Its name on disk and in the log.
    const NAME: &'static str;
    /// Whether it outlives the process.
    const ON_DISK: bool = true;
    /// Whether its definition may be absent: then there are none.
    const OPTIONAL: bool = false;
    /// Whether its objects are in namespaces.
    const NAMESPACED: bool = true;
    /// Whether the networks of pods are resolved by it.
    const RESOLVED: bool = false;
    /// As it comes.
    type Wire: Resource<DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static;
    /// What is kept.
    type Cached: PartialEq + Send + Sync + 'static;

    /// Selects the objects that concern this node.
    fn select(node: &str) -> ListParams {
        let _ = node;
        ListParams::default()
    }
    /// None if it cannot be read.
    fn cache(wire: &Self::Wire) -> Option<Self::Cached>;
    /// What is kept of one that cannot be read, given what was; none: nothing.
    fn cache_unreadable(wire: &Self::Wire, before: Option<&Self::Cached>) -> Option<Self::Cached> {
        let _ = (wire, before);
        None
    }
    fn store(state: &State) -> &Store<Self::Cached>;
    fn store_mut(state: &mut State) -> &mut Store<Self::Cached>;
    /// One object is another now. Called without the state's lock.
    fn changed(
        shared: &Shared,
        key: &str,
        before: Option<&Arc<Self::Cached>>,
        after: Option<&Arc<Self::Cached>>,
    ) {
        let _ = (shared, key, before, after);
    }
    /// All were listed.
    fn listed(shared: &Shared) {
        let _ = shared;
    }
    /// What the agent is told when something changed.
    fn notices() -> &'static [Change] {
        &[]
    }
    /// Drops what is not needed.
    fn trim(wire: &mut Self::Wire) {
        cached::trim(wire.meta_mut(), false);
    }
    /// How many bytes users have written that are kept; 0 where that is bounded anyway.
    fn size(wire: &Self::Wire) -> usize {
        let _ = wire;
        0
    }
    /// Drops these bytes, and says why in their place.
    fn leave_out(wire: &mut Self::Wire, why: &str) {
        let _ = (wire, why);
    }
}

/// Objects whose users may write a megabyte into each: a page of so many is read at once.
fn large() -> ListParams {
    ListParams::default().limit(10)
}

/// Where an object is kept.
pub(super) fn key_of<K: Kind>(wire: &K::Wire) -> String {
    let meta = wire.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    match K::NAMESPACED {
        true => key(meta.namespace.as_deref().unwrap_or_default(), name),
        false => name.to_owned(),
    }
}

pub(super) struct Pods;
pub(super) struct Networks;
pub(super) struct Nads;
pub(super) struct Blocks;
pub(super) struct Requests;
pub(super) struct Nodes;
pub(super) struct Namespaces;
pub(super) struct Records;

impl Kind for Pods {
    const NAME: &'static str = "pod";
    type Wire = PodWire;
    type Cached = CachedPod;

    fn select(node: &str) -> ListParams {
        ListParams::default().fields(&format!("spec.nodeName={node}"))
    }
    fn cache(wire: &PodWire) -> Option<CachedPod> {
        Some(cached::pod(wire))
    }
    fn store(state: &State) -> &Store<CachedPod> {
        &state.pods
    }
    fn store_mut(state: &mut State) -> &mut Store<CachedPod> {
        &mut state.pods
    }
    fn changed(
        shared: &Shared,
        _: &str,
        before: Option<&Arc<CachedPod>>,
        after: Option<&Arc<CachedPod>>,
    ) {
        if let (Some(before), Some(after)) = (before, after) {
            edits::pod(shared, before, after);
        }
        if before.is_none() && after.is_some_and(|pod| pod.config_hash.is_some()) {
            shared.records.hurry();
        }
        if after.is_none_or(|pod| pod.ended) {
            shared.orphans.notify_one();
        }
    }
    fn listed(shared: &Shared) {
        shared.resync.notify_one();
    }
}

impl Kind for Networks {
    const NAME: &'static str = "network";
    const RESOLVED: bool = true;
    type Wire = NetworkWire;
    type Cached = NetworkObject;

    fn select(_: &str) -> ListParams {
        large()
    }
    fn size(wire: &NetworkWire) -> usize {
        cached::network_size(wire)
    }
    fn leave_out(wire: &mut NetworkWire, why: &str) {
        wire.spec = cached::spec_left_out(why);
    }

    fn cache(wire: &NetworkWire) -> Option<NetworkObject> {
        cached::network(wire)
    }
    fn cache_unreadable(
        wire: &NetworkWire,
        before: Option<&NetworkObject>,
    ) -> Option<NetworkObject> {
        Some(cached::unreadable_network(wire, before))
    }
    fn store(state: &State) -> &Store<NetworkObject> {
        &state.networks
    }
    fn store_mut(state: &mut State) -> &mut Store<NetworkObject> {
        &mut state.networks
    }
    fn changed(
        shared: &Shared,
        _: &str,
        before: Option<&Arc<NetworkObject>>,
        after: Option<&Arc<NetworkObject>>,
    ) {
        if before.is_none() || after.is_none() {
            shared.blocks.look();
        }
        if after.is_some_and(|after| after.going) {
            shared.blocks.touched();
        }
    }
    fn listed(shared: &Shared) {
        shared.blocks.look();
    }
    fn notices() -> &'static [Change] {
        &[Change::Networks, Change::Fabric]
    }
}

impl Kind for Nads {
    const NAME: &'static str = "nad";
    const OPTIONAL: bool = true;
    const RESOLVED: bool = true;
    type Wire = NadWire;
    type Cached = NadObject;

    fn select(_: &str) -> ListParams {
        large()
    }
    fn size(wire: &NadWire) -> usize {
        cached::nad_size(wire)
    }
    fn leave_out(wire: &mut NadWire, why: &str) {
        wire.metadata.annotations = None;
        wire.spec = cached::spec_left_out(why);
    }

    fn cache(wire: &NadWire) -> Option<NadObject> {
        Some(cached::nad(wire))
    }
    fn store(state: &State) -> &Store<NadObject> {
        &state.nads
    }
    fn store_mut(state: &mut State) -> &mut Store<NadObject> {
        &mut state.nads
    }
    fn changed(
        shared: &Shared,
        _: &str,
        before: Option<&Arc<NadObject>>,
        after: Option<&Arc<NadObject>>,
    ) {
        if let Some(before) = before {
            edits::nad(shared, before, after.map(Arc::as_ref));
        }
    }
    fn notices() -> &'static [Change] {
        &[Change::Networks]
    }
}

impl Kind for Blocks {
    const NAME: &'static str = "block";
    const NAMESPACED: bool = false;
    type Wire = BlockWire;
    type Cached = CachedBlock;

    fn cache(wire: &BlockWire) -> Option<CachedBlock> {
        cached::block(wire)
    }
    fn cache_unreadable(_: &BlockWire, before: Option<&CachedBlock>) -> Option<CachedBlock> {
        cached::unreadable_block(before)
    }
    fn store(state: &State) -> &Store<CachedBlock> {
        &state.blocks
    }
    fn store_mut(state: &mut State) -> &mut Store<CachedBlock> {
        &mut state.blocks
    }
    fn changed(
        shared: &Shared,
        name: &str,
        before: Option<&Arc<CachedBlock>>,
        after: Option<&Arc<CachedBlock>>,
    ) {
        shared.blocks.seen(shared, name, before, after);
        let gives = match (before, after) {
            (Some(before), Some(after)) => before.given != after.given || before.spec != after.spec,
            (one, other) => one
                .or(other)
                .is_some_and(|b| b.is_part || !b.given.is_empty()),
        };
        if gives {
            shared.donations.changed();
        }
    }
    fn listed(shared: &Shared) {
        shared.blocks.look();
        // A server that was restored says what was true then.
        shared.blocks.touched();
        shared.donations.changed();
    }
    fn notices() -> &'static [Change] {
        &[Change::Fabric]
    }
    fn trim(wire: &mut BlockWire) {
        cached::trim(wire.meta_mut(), true);
    }
}

impl Kind for Requests {
    const NAME: &'static str = "request";
    const ON_DISK: bool = false;
    const OPTIONAL: bool = true;
    const NAMESPACED: bool = false;
    type Wire = RequestWire;
    type Cached = CachedRequest;

    fn cache(wire: &RequestWire) -> Option<CachedRequest> {
        cached::request(wire)
    }
    fn store(state: &State) -> &Store<CachedRequest> {
        &state.requests
    }
    fn store_mut(state: &mut State) -> &mut Store<CachedRequest> {
        &mut state.requests
    }
    fn changed(
        shared: &Shared,
        _: &str,
        _: Option<&Arc<CachedRequest>>,
        _: Option<&Arc<CachedRequest>>,
    ) {
        shared.donations.changed();
    }
}

impl Kind for Nodes {
    const NAME: &'static str = "node";
    const NAMESPACED: bool = false;
    const RESOLVED: bool = true;
    type Wire = NodeWire;
    type Cached = CachedNode;

    fn cache(wire: &NodeWire) -> Option<CachedNode> {
        Some(cached::node(wire))
    }
    fn store(state: &State) -> &Store<CachedNode> {
        &state.nodes
    }
    fn store_mut(state: &mut State) -> &mut Store<CachedNode> {
        &mut state.nodes
    }
    fn changed(
        shared: &Shared,
        name: &str,
        before: Option<&Arc<CachedNode>>,
        after: Option<&Arc<CachedNode>>,
    ) {
        let uid = |node: Option<&Arc<CachedNode>>| node.map(|node| node.uid.clone());
        if name == shared.options.node && uid(before) != uid(after) {
            shared.blocks.look();
        }
        if before.is_none() || after.is_none() {
            shared.donations.changed();
        }
    }
    fn notices() -> &'static [Change] {
        &[Change::Fabric]
    }
}

impl Kind for Namespaces {
    const NAME: &'static str = "namespace";
    const NAMESPACED: bool = false;
    const RESOLVED: bool = true;
    type Wire = PartialObjectMeta<Namespace>;
    type Cached = BTreeMap<String, String>;

    fn cache(wire: &Self::Wire) -> Option<Self::Cached> {
        Some(wire.metadata.labels.clone().unwrap_or_default())
    }
    fn store(state: &State) -> &Store<Self::Cached> {
        &state.namespaces
    }
    fn store_mut(state: &mut State) -> &mut Store<Self::Cached> {
        &mut state.namespaces
    }
    fn trim(wire: &mut Self::Wire) {
        cached::trim(wire.meta_mut(), true);
    }
}

impl Kind for Records {
    const NAME: &'static str = "record";
    const ON_DISK: bool = false;
    type Wire = RecordWire;
    type Cached = CachedRecord;

    fn select(node: &str) -> ListParams {
        ListParams::default().labels(&format!("{NODE_LABEL}={node}"))
    }
    fn cache(wire: &RecordWire) -> Option<CachedRecord> {
        Some(cached::record(wire))
    }
    fn store(state: &State) -> &Store<CachedRecord> {
        &state.records
    }
    fn store_mut(state: &mut State) -> &mut Store<CachedRecord> {
        &mut state.records
    }
    fn changed(
        shared: &Shared,
        _: &str,
        _: Option<&Arc<CachedRecord>>,
        after: Option<&Arc<CachedRecord>>,
    ) {
        if after.is_some() {
            shared.orphans.notify_one();
        }
    }
    fn listed(shared: &Shared) {
        shared.records.hurry();
        shared.resync.notify_one();
    }
}
