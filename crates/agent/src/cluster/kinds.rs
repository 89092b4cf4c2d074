//! The kinds that are watched: which objects of each, what is kept, and what follows from a change.

use super::edits;
use super::kept::{self, BlockSeen, NodeSeen, PodSeen, RecordSeen, RequestSeen};
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
    type Kept: PartialEq + Send + Sync + 'static;

    /// Selects the objects that concern this node.
    fn select(node: &str) -> ListParams {
        let _ = node;
        ListParams::default()
    }
    /// None if it cannot be read.
    fn keep(wire: &Self::Wire) -> Option<Self::Kept>;
    /// What is kept of one that cannot be read, given what was; none: nothing.
    fn keep_unreadable(wire: &Self::Wire, before: Option<&Self::Kept>) -> Option<Self::Kept> {
        let _ = (wire, before);
        None
    }
    fn store(state: &State) -> &Store<Self::Kept>;
    fn store_mut(state: &mut State) -> &mut Store<Self::Kept>;
    /// One object is another now. Called without the state's lock.
    fn changed(
        shared: &Shared,
        key: &str,
        before: Option<&Arc<Self::Kept>>,
        after: Option<&Arc<Self::Kept>>,
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
        kept::trim(wire.meta_mut(), false);
    }
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
    type Kept = PodSeen;

    fn select(node: &str) -> ListParams {
        ListParams::default().fields(&format!("spec.nodeName={node}"))
    }
    fn keep(wire: &PodWire) -> Option<PodSeen> {
        Some(kept::pod(wire))
    }
    fn store(state: &State) -> &Store<PodSeen> {
        &state.pods
    }
    fn store_mut(state: &mut State) -> &mut Store<PodSeen> {
        &mut state.pods
    }
    fn changed(
        shared: &Shared,
        _: &str,
        before: Option<&Arc<PodSeen>>,
        after: Option<&Arc<PodSeen>>,
    ) {
        if let (Some(before), Some(after)) = (before, after) {
            edits::pod(shared, before, after);
        }
        if before.is_none() && after.is_some_and(|pod| pod.config_hash.is_some()) {
            shared.records.hurry();
        }
    }
    fn listed(shared: &Shared) {
        shared.resync.notify_one();
    }
}

impl Kind for Networks {
    const NAME: &'static str = "network";
    type Wire = NetworkWire;
    type Kept = NetworkObject;

    fn keep(wire: &NetworkWire) -> Option<NetworkObject> {
        kept::network(wire)
    }
    fn keep_unreadable(
        wire: &NetworkWire,
        before: Option<&NetworkObject>,
    ) -> Option<NetworkObject> {
        Some(kept::unreadable_network(wire, before))
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
    type Wire = NadWire;
    type Kept = NadObject;

    fn keep(wire: &NadWire) -> Option<NadObject> {
        Some(kept::nad(wire))
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
    type Kept = BlockSeen;

    fn keep(wire: &BlockWire) -> Option<BlockSeen> {
        kept::block(wire)
    }
    fn keep_unreadable(_: &BlockWire, before: Option<&BlockSeen>) -> Option<BlockSeen> {
        kept::unreadable_block(before)
    }
    fn store(state: &State) -> &Store<BlockSeen> {
        &state.blocks
    }
    fn store_mut(state: &mut State) -> &mut Store<BlockSeen> {
        &mut state.blocks
    }
    fn changed(
        shared: &Shared,
        name: &str,
        before: Option<&Arc<BlockSeen>>,
        after: Option<&Arc<BlockSeen>>,
    ) {
        shared.blocks.seen(shared, name, before, after);
        let gives = match (before, after) {
            (Some(before), Some(after)) => before.given != after.given || before.spec != after.spec,
            (one, other) => one
                .or(other)
                .is_some_and(|b| b.is_part || !b.given.is_empty()),
        };
        if gives {
            shared.gifts.look();
        }
    }
    fn listed(shared: &Shared) {
        shared.blocks.look();
        // A server that was restored says what was true then.
        shared.blocks.touched();
        shared.gifts.look();
    }
    fn notices() -> &'static [Change] {
        &[Change::Fabric]
    }
    fn trim(wire: &mut BlockWire) {
        kept::trim(wire.meta_mut(), true);
    }
}

impl Kind for Requests {
    const NAME: &'static str = "request";
    const ON_DISK: bool = false;
    const OPTIONAL: bool = true;
    const NAMESPACED: bool = false;
    type Wire = RequestWire;
    type Kept = RequestSeen;

    fn keep(wire: &RequestWire) -> Option<RequestSeen> {
        kept::request(wire)
    }
    fn store(state: &State) -> &Store<RequestSeen> {
        &state.requests
    }
    fn store_mut(state: &mut State) -> &mut Store<RequestSeen> {
        &mut state.requests
    }
    fn changed(
        shared: &Shared,
        _: &str,
        _: Option<&Arc<RequestSeen>>,
        _: Option<&Arc<RequestSeen>>,
    ) {
        shared.gifts.look();
    }
}

impl Kind for Nodes {
    const NAME: &'static str = "node";
    const NAMESPACED: bool = false;
    type Wire = NodeWire;
    type Kept = NodeSeen;

    fn keep(wire: &NodeWire) -> Option<NodeSeen> {
        Some(kept::node(wire))
    }
    fn store(state: &State) -> &Store<NodeSeen> {
        &state.nodes
    }
    fn store_mut(state: &mut State) -> &mut Store<NodeSeen> {
        &mut state.nodes
    }
    fn changed(
        shared: &Shared,
        name: &str,
        before: Option<&Arc<NodeSeen>>,
        after: Option<&Arc<NodeSeen>>,
    ) {
        let uid = |node: Option<&Arc<NodeSeen>>| node.map(|node| node.uid.clone());
        if name == shared.options.node && uid(before) != uid(after) {
            shared.blocks.look();
        }
        if before.is_none() || after.is_none() {
            shared.gifts.look();
        }
    }
    fn notices() -> &'static [Change] {
        &[Change::Fabric]
    }
}

impl Kind for Namespaces {
    const NAME: &'static str = "namespace";
    const NAMESPACED: bool = false;
    type Wire = PartialObjectMeta<Namespace>;
    type Kept = BTreeMap<String, String>;

    fn keep(wire: &Self::Wire) -> Option<Self::Kept> {
        Some(wire.metadata.labels.clone().unwrap_or_default())
    }
    fn store(state: &State) -> &Store<Self::Kept> {
        &state.namespaces
    }
    fn store_mut(state: &mut State) -> &mut Store<Self::Kept> {
        &mut state.namespaces
    }
    fn trim(wire: &mut Self::Wire) {
        kept::trim(wire.meta_mut(), true);
    }
}

impl Kind for Records {
    const NAME: &'static str = "record";
    const ON_DISK: bool = false;
    type Wire = RecordWire;
    type Kept = RecordSeen;

    fn select(node: &str) -> ListParams {
        ListParams::default().labels(&format!("{NODE_LABEL}={node}"))
    }
    fn keep(wire: &RecordWire) -> Option<RecordSeen> {
        Some(kept::record(wire))
    }
    fn store(state: &State) -> &Store<RecordSeen> {
        &state.records
    }
    fn store_mut(state: &mut State) -> &mut Store<RecordSeen> {
        &mut state.records
    }
    fn listed(shared: &Shared) {
        shared.records.hurry();
        shared.resync.notify_one();
    }
}
