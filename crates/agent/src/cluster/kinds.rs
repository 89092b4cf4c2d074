//! The kinds that are watched: which objects of each, what is kept, and what follows from a change.

use super::api;
use super::cached::{self, CachedBlock, CachedPod, CachedRecord, CachedRequest};
use super::edits;
use super::report::{Change, NodeFacts};
use super::shared::Shared;
use super::state::{State, Store, key};
use super::wire::{BlockWire, NadWire, NetworkWire, NodeWire, PodWire, RecordWire, RequestWire};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, PartialObjectMeta};
use kube::{Client, Resource};
use plexus_api::objects::NODE_LABEL;
use plexus_core::resolve::{NadObject, NetworkObject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::IpAddr;

pub(super) trait Kind: Send + Sync + 'static {
    /// Its name on disk and in the log.
    const NAME: &'static str;
    /// Whether it outlives the process.
    const ON_DISK: bool = true;
    /// Whether its definition may be absent: then there are none.
    const OPTIONAL: bool = false;
    const NAMESPACED: bool = true;
    /// Whether the networks of pods are resolved by it.
    const RESOLVED: bool = false;
    /// What the agent is told when something changed.
    const NOTICES: &'static [Change] = &[];
    type Wire: Resource<DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static;
    type Cached: PartialEq + Send + Sync + 'static;

    /// Where they are.
    fn api(client: &Client) -> Api<Self::Wire> {
        api::all(client)
    }
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
    fn store(state: &mut State) -> &mut Store<Self::Cached>;

    /// Called without the state's lock.
    fn changed(shared: &Shared, edit: Edit<'_, Self::Cached>) {
        let _ = (shared, edit);
    }
    fn listed(shared: &Shared) {
        let _ = shared;
    }
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
    ListParams::default().limit(50)
}

/// One object is another now.
pub(super) struct Edit<'a, T> {
    pub(super) key: &'a str,
    pub(super) before: Option<&'a T>,
    pub(super) after: Option<&'a T>,
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
pub(super) struct ApiServers;
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
    fn store(state: &mut State) -> &mut Store<CachedPod> {
        &mut state.pods
    }
    fn changed(shared: &Shared, edit: Edit<'_, CachedPod>) {
        if let (Some(before), Some(after)) = (edit.before, edit.after) {
            edits::pod(shared, before, after);
        }
        if edit.before.is_none() && edit.after.is_some_and(|pod| pod.config_hash.is_some()) {
            shared.records.hurry();
        }
        if edit.after.is_none_or(|pod| pod.ended) {
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
    const NOTICES: &'static [Change] = &[Change::Networks, Change::Fabric];
    type Wire = NetworkWire;
    type Cached = NetworkObject;

    fn select(_: &str) -> ListParams {
        large()
    }
    fn trim(wire: &mut NetworkWire) {
        cached::trim(wire.meta_mut(), false);
        wire.metadata.finalizers = None;
    }
    fn size(wire: &NetworkWire) -> usize {
        cached::network_size(wire)
    }
    fn leave_out(wire: &mut NetworkWire, why: &str) {
        wire.metadata.owner_references = None;
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
    fn store(state: &mut State) -> &mut Store<NetworkObject> {
        &mut state.networks
    }
    fn changed(shared: &Shared, edit: Edit<'_, NetworkObject>) {
        if edit.before.is_none() || edit.after.is_none() {
            shared.blocks.look();
        }
        if edit.after.is_some_and(|after| after.going) {
            shared.blocks.touched();
        }
    }
    fn listed(shared: &Shared) {
        shared.blocks.look();
    }
}

impl Kind for Nads {
    const NAME: &'static str = "nad";
    const OPTIONAL: bool = true;
    const RESOLVED: bool = true;
    const NOTICES: &'static [Change] = &[Change::Networks];
    type Wire = NadWire;
    type Cached = NadObject;

    fn select(_: &str) -> ListParams {
        large()
    }
    fn trim(wire: &mut NadWire) {
        cached::trim(wire.meta_mut(), false);
        wire.metadata.finalizers = None;
    }
    fn size(wire: &NadWire) -> usize {
        cached::nad_size(wire)
    }
    fn leave_out(wire: &mut NadWire, why: &str) {
        wire.metadata.annotations = None;
        wire.metadata.owner_references = None;
        wire.spec = cached::spec_left_out(why);
    }

    fn cache(wire: &NadWire) -> Option<NadObject> {
        Some(cached::nad(wire))
    }
    fn store(state: &mut State) -> &mut Store<NadObject> {
        &mut state.nads
    }
    fn changed(shared: &Shared, edit: Edit<'_, NadObject>) {
        if let Some(before) = edit.before {
            edits::nad(shared, before, edit.after);
        }
    }
}

impl Kind for Blocks {
    const NAME: &'static str = "block";
    const NAMESPACED: bool = false;
    const NOTICES: &'static [Change] = &[Change::Fabric];
    type Wire = BlockWire;
    type Cached = CachedBlock;

    fn cache(wire: &BlockWire) -> Option<CachedBlock> {
        cached::block(wire)
    }
    fn cache_unreadable(_: &BlockWire, before: Option<&CachedBlock>) -> Option<CachedBlock> {
        cached::unreadable_block(before)
    }
    fn store(state: &mut State) -> &mut Store<CachedBlock> {
        &mut state.blocks
    }
    fn changed(shared: &Shared, edit: Edit<'_, CachedBlock>) {
        shared.blocks.seen(shared, &edit);
        let gives = match (edit.before, edit.after) {
            (Some(before), Some(after)) => before.given != after.given || before.spec != after.spec,
            (one, other) => {
                let block = one.or(other);
                block.is_some_and(|block| block.is_part || !block.given.is_empty())
            }
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
    fn trim(wire: &mut BlockWire) {
        let made = wire.metadata.creation_timestamp.take();
        cached::trim(wire.meta_mut(), true);
        wire.metadata.creation_timestamp = made;
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
    fn store(state: &mut State) -> &mut Store<CachedRequest> {
        &mut state.requests
    }
    fn changed(shared: &Shared, _: Edit<'_, CachedRequest>) {
        shared.donations.changed();
    }
}

impl Kind for Nodes {
    const NAME: &'static str = "node";
    const NAMESPACED: bool = false;
    const RESOLVED: bool = true;
    const NOTICES: &'static [Change] = &[Change::Fabric];
    type Wire = NodeWire;
    type Cached = NodeFacts;

    fn cache(wire: &NodeWire) -> Option<NodeFacts> {
        Some(cached::node(wire))
    }
    fn store(state: &mut State) -> &mut Store<NodeFacts> {
        &mut state.nodes
    }
    fn changed(shared: &Shared, edit: Edit<'_, NodeFacts>) {
        let uid = |node: &NodeFacts| node.uid.clone();
        if edit.key == shared.options.node && edit.before.map(uid) != edit.after.map(uid) {
            shared.blocks.look();
        }
        if edit.before.is_none() || edit.after.is_none() {
            shared.donations.changed();
        }
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
    fn store(state: &mut State) -> &mut Store<Self::Cached> {
        &mut state.namespaces
    }
    fn trim(wire: &mut Self::Wire) {
        cached::trim(wire.meta_mut(), true);
    }
}

/// Where the Service `default/kubernetes` leads. A server without it is known by how it is reached.
impl Kind for ApiServers {
    const NAME: &'static str = "api-server";
    const OPTIONAL: bool = true;
    const RESOLVED: bool = true;
    const NOTICES: &'static [Change] = &[Change::Fabric];
    type Wire = EndpointSlice;
    type Cached = Vec<IpAddr>;

    fn api(client: &Client) -> Api<EndpointSlice> {
        api::namespaced(client, "default")
    }
    fn select(_: &str) -> ListParams {
        ListParams::default().labels("kubernetes.io/service-name=kubernetes")
    }
    fn cache(wire: &EndpointSlice) -> Option<Vec<IpAddr>> {
        let addresses = wire.endpoints.iter().flat_map(|one| &one.addresses);
        Some(addresses.filter_map(|one| one.parse().ok()).collect())
    }
    fn store(state: &mut State) -> &mut Store<Vec<IpAddr>> {
        &mut state.api_servers
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
    fn store(state: &mut State) -> &mut Store<CachedRecord> {
        &mut state.records
    }
    fn changed(shared: &Shared, edit: Edit<'_, CachedRecord>) {
        if edit.after.is_some() {
            shared.orphans.notify_one();
        }
    }
    fn listed(shared: &Shared) {
        shared.records.hurry();
        shared.resync.notify_one();
    }
}
