//! MultiNicNetworks: what this node's pods can have of them, and what the node needs to reach other nodes' blocks. Of both
//! groups; one that is in both is two networks, and a pod that names it gets that of the first.

use super::cached;
use super::kinds::Kind;
use super::report::Change;
use super::shared::Shared;
use super::state::{State, Store};
use super::wire::{MultiNicWire, SuccessorWire};
use ipnet::IpNet;
use kube::Resource;
use kube::api::{ListParams, ObjectMeta};
use plexus_api::Problems;
use plexus_api::objects::{MultiNic, MultiNicNetworkSpec};
use plexus_core::nic_routes::{L3Network, NicBlock};
use plexus_core::resolve::{MAX_KEPT_CONFIG, MultiNicObject, NodeNic};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is kept of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedMultiNic {
    pub(super) uid: String,
    /// What it is; none if that cannot be read, or is too large to be kept.
    pub(super) spec: Option<Arc<MultiNicNetworkSpec>>,
    /// What the spec means.
    pub(super) meaning: Arc<Result<MultiNic, Problems>>,
    pub(super) subnets: Vec<IpNet>,
    /// Mode l3 or l3s.
    pub(super) routed: bool,
}

/// Those of the first group.
pub(super) struct MultiNics;
/// Those of the successor's.
pub(super) struct Successors;

/// A page of so many is read at once: each may have much text.
fn pages() -> ListParams {
    ListParams::default().limit(50)
}

impl Kind for MultiNics {
    const NAME: &'static str = "multi-nic-network";
    const OPTIONAL: bool = true;
    const NAMESPACED: bool = false;
    const RESOLVED: bool = true;
    const NOTICES: &'static [Change] = &[Change::Fabric];
    type Wire = MultiNicWire;
    type Cached = CachedMultiNic;

    fn select(_: &str) -> ListParams {
        pages()
    }
    fn trim(wire: &mut MultiNicWire) {
        trim(&mut wire.metadata, &mut wire.spec);
    }
    fn cache(wire: &MultiNicWire) -> Option<CachedMultiNic> {
        read(wire.meta(), &wire.spec)
    }
    fn store(state: &mut State) -> &mut Store<CachedMultiNic> {
        &mut state.multi_nics
    }
    fn listed(shared: &Shared) {
        shared.notify(Self::NOTICES);
    }
}

impl Kind for Successors {
    const NAME: &'static str = "multi-nic-network-successor";
    const OPTIONAL: bool = true;
    const NAMESPACED: bool = false;
    const RESOLVED: bool = true;
    const NOTICES: &'static [Change] = &[Change::Fabric];
    type Wire = SuccessorWire;
    type Cached = CachedMultiNic;

    fn select(_: &str) -> ListParams {
        pages()
    }
    fn trim(wire: &mut SuccessorWire) {
        trim(&mut wire.metadata, &mut wire.spec);
    }
    fn cache(wire: &SuccessorWire) -> Option<CachedMultiNic> {
        read(wire.meta(), &wire.spec)
    }
    fn store(state: &mut State) -> &mut Store<CachedMultiNic> {
        &mut state.multi_nic_successors
    }
    fn listed(shared: &Shared) {
        shared.notify(Self::NOTICES);
    }
}

/// Keeps of a spec that is too large what routes need: users may have written much more.
fn trim(meta: &mut ObjectMeta, spec: &mut Value) {
    cached::trim(meta, false);
    meta.finalizers = None;
    meta.owner_references = None;
    if spec.to_string().len() <= MAX_KEPT_CONFIG {
        return;
    }
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
    let ipam: Value = serde_json::from_str(text("ipam")).unwrap_or_default();
    let mode = ipam.get("vlanMode").and_then(Value::as_str);
    let ipam = json!({"vlanMode": mode}).to_string();
    *spec = json!({"subnet": text("subnet"), "ipam": ipam, CUT: true});
}

/// One that cannot be read has no routes; the controller says why.
fn read(meta: &ObjectMeta, spec: &Value) -> Option<CachedMultiNic> {
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
    let ipam: Value = serde_json::from_str(text("ipam")).unwrap_or_default();
    let subnets = text("subnet").split(',').map(str::trim);
    let subnets = subnets.filter(|subnet| !subnet.is_empty());
    let subnets: Result<Vec<IpNet>, _> = subnets.map(str::parse).collect();
    let (kept, meaning) = understood(spec);
    Some(CachedMultiNic {
        uid: meta.uid.clone()?,
        spec: kept,
        meaning: Arc::new(meaning),
        subnets: subnets.ok()?,
        routed: matches!(ipam["vlanMode"].as_str(), Some("l3" | "l3s")),
    })
}

/// The spec and what it means, or why no pod can use it.
fn understood(spec: &Value) -> (Option<Arc<MultiNicNetworkSpec>>, Result<MultiNic, Problems>) {
    let wrong = |text: String| {
        let mut problems = Problems::default();
        problems.add("spec", text);
        (None, Err(problems))
    };
    let size = spec.to_string().len();
    if size > MAX_KEPT_CONFIG || is_cut(spec) {
        return wrong(format!(
            "has more than {MAX_KEPT_CONFIG} bytes: make it smaller"
        ));
    }
    match serde_json::from_value::<MultiNicNetworkSpec>(spec.clone()) {
        Ok(spec) => {
            let meaning = spec.meaning();
            (Some(Arc::new(spec)), meaning)
        }
        Err(error) => wrong(format!("cannot be read: {error}")),
    }
}

/// Whether [`trim`] left only what routes need.
fn is_cut(spec: &Value) -> bool {
    spec.get(CUT).is_some()
}

/// The mark of a spec that was too large.
const CUT: &str = "plexus.dev/cut";

impl State {
    /// Whether a network of that UID is there.
    pub(super) fn is_multi_nic(&self, uid: &str) -> bool {
        let all = self.multi_nics.objects.values();
        let mut all = all.chain(self.multi_nic_successors.objects.values());
        all.any(|network| network.uid == uid)
    }

    /// A network by its name, with the NICs that the node `here` has blocks on.
    pub(super) fn multi_nic(
        &self,
        here: &str,
        name: &str,
        is_up: impl Fn(&str) -> bool,
    ) -> Option<Arc<MultiNicObject>> {
        let network = self.multi_nics.get(name);
        let network = network.or_else(|| self.multi_nic_successors.get(name))?;
        let blocks = self.blocks.objects.values();
        let node = self.nodes.get(here)?;
        let own = blocks.filter(|block| {
            let spec = &block.spec;
            let is_own = spec.node == here && spec.node_uid == node.uid;
            is_own && spec.network.uuid == network.uid && !block.closed && !block.is_new_on_nic()
        });
        let blocks = own.filter_map(|block| Some((block.spec.nic.clone()?, block.spec.cidr)));
        Some(Arc::new(MultiNicObject {
            name: name.to_owned(),
            uid: network.uid.clone(),
            spec: network.spec.clone().unwrap_or_default(),
            meaning: Arc::clone(&network.meaning),
            nics: NodeNic::of_blocks(blocks, is_up),
        }))
    }

    /// Of networks that the node `here` has blocks of and whose nodes route to each other: they, and all nodes' blocks
    /// of them. None if they are not known.
    pub(super) fn nic_blocks(&self, here: &str) -> Option<(Vec<L3Network>, Vec<NicBlock>)> {
        let listed = self.multi_nics.listed && self.multi_nic_successors.listed;
        // With the API away they are known from the disk.
        if !(listed && self.blocks.listed) && self.is_reached() {
            return None;
        }
        let blocks = self.blocks.objects.values();
        let blocks = blocks.filter_map(|block| Some((&block.spec, block.spec.nic.as_ref()?)));
        let own = blocks.clone().filter(|(spec, _)| spec.node == here);
        let own: BTreeSet<&str> = own.map(|(spec, _)| spec.network.uuid.as_str()).collect();
        if own.is_empty() {
            return Some(Default::default());
        }
        let all = self.multi_nics.objects.values();
        let all = all.chain(self.multi_nic_successors.objects.values());
        let networks = all.filter(|network| network.routed && own.contains(network.uid.as_str()));
        let networks: Vec<L3Network> = networks
            .map(|network| L3Network {
                uid: network.uid.clone(),
                subnets: network.subnets.clone(),
            })
            .collect();
        let uids: BTreeSet<&str> = networks.iter().map(|one| one.uid.as_str()).collect();
        let blocks = blocks.filter(|(spec, _)| uids.contains(spec.network.uuid.as_str()));
        let blocks = blocks.map(|(spec, nic)| NicBlock {
            uid: spec.network.uuid.clone(),
            cidr: spec.cidr,
            node: spec.node.clone(),
            interface_index: nic.interface_index,
            interface: nic.interface.clone(),
            via: nic.via,
            retired: nic.retired,
        });
        let blocks = blocks.collect();
        Some((networks, blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::cached::CachedBlock;

    fn spec(subnet: &str, ipam: &str) -> Value {
        json!({"subnet": subnet, "ipam": ipam, "masterNets": ["10.0.1.0/24"], "plugin": {"type": "ipvlan"}})
    }

    fn cached_network(subnet: &str, ipam: &str) -> Option<CachedMultiNic> {
        let wire = json!({"metadata": {"name": "a", "uid": "u1", "finalizers": ["x"]},
            "spec": spec(subnet, ipam)});
        let mut wire: MultiNicWire = serde_json::from_value(wire).unwrap();
        let before = MultiNics::cache(&wire);
        MultiNics::trim(&mut wire);
        let text = serde_json::to_string(&wire).unwrap();
        assert!(text.len() < MAX_KEPT_CONFIG + 300, "{}", text.len());
        let after = MultiNics::cache(&wire);
        let routes = |one: &Option<CachedMultiNic>| {
            one.as_ref().map(|one| (one.subnets.clone(), one.routed))
        };
        if before.is_some() {
            assert_eq!(routes(&before), routes(&after));
        }
        after
    }

    #[test]
    fn what_routes_need_is_kept_also_of_what_is_too_large() {
        let long = format!(
            r#"{{"vlanMode": "l3s", "routes": "{}"}}"#,
            "x".repeat(70_000)
        );
        let network = cached_network("192.168.0.0/16, fd00:192::/48", &long).unwrap();
        assert!(network.routed && network.subnets.len() == 2, "{network:?}");
        let why = network.meaning.as_ref().as_ref().unwrap_err().to_string();
        assert!(
            network.spec.is_none() && why.contains("make it smaller"),
            "{why}"
        );
        let small =
            r#"{"type": "multi-nic-ipam", "hostBlock": 6, "interfaceBlock": 2, "vlanMode": "l3"}"#;
        let network = cached_network("192.168.0.0/16", small).unwrap();
        assert!(
            network.spec.is_some() && network.meaning.is_ok(),
            "{network:?}"
        );
        for (ipam, routed) in [
            (r#"{"vlanMode": "l3"}"#, true),
            (r#"{"vlanMode": "l2"}"#, false),
            (r#"{"vlanMode": 3}"#, false),
            ("{}", false),
            ("not JSON", false),
        ] {
            let network = cached_network("192.168.0.0/16", ipam).unwrap();
            assert_eq!(network.routed, routed, "{ipam}");
        }
        assert_eq!(cached_network("192.168.0.0/99", "{}"), None);
    }

    fn block(state: &mut State, name: &str, node: &str, uid: &str, nic: Value) {
        let spec = json!({"network": {"namespace": "", "name": "a", "uid": uid}, "cidr": "192.168.0.0/24",
            "node": node, "nodeUID": "x", "nic": nic});
        let block = CachedBlock {
            spec: serde_json::from_value(spec).unwrap(),
            uid: "b".into(),
            allocated: 0,
            given: Vec::new(),
            is_part: false,
            closed: false,
            untouched: false,
            made: None,
            unreadable: false,
        };
        state.blocks.put(name, Arc::new(block));
    }

    #[test]
    fn blocks_are_told_of_networks_that_this_node_is_in() {
        let mut state = State::default();
        let nic = json!({"interface": "eth1", "netAddress": "10.0.1.0/24", "interfaceIndex": 0,
            "hostIndex": 1, "via": "10.0.1.2"});
        block(&mut state, "1", "n1", "u1", nic.clone());
        block(&mut state, "2", "n2", "u1", nic.clone());
        block(&mut state, "3", "n2", "u2", nic.clone());
        block(&mut state, "4", "n1", "u3", nic);
        block(&mut state, "5", "n2", "u1", Value::Null);
        for (uid, routed) in [("u1", true), ("u2", true), ("u3", false)] {
            let network = CachedMultiNic {
                uid: uid.into(),
                spec: None,
                meaning: Arc::new(Err(Problems::default())),
                subnets: vec!["192.168.0.0/16".parse().unwrap()],
                routed,
            };
            let stores = [&mut state.multi_nics, &mut state.multi_nic_successors];
            let [one, other] = stores;
            let store = if uid == "u1" { other } else { one };
            store.put(uid, Arc::new(network));
        }
        let told = |state: &State, here: &str| {
            let (networks, blocks) = state.nic_blocks(here)?;
            let uids: Vec<_> = networks.into_iter().map(|one| one.uid).collect();
            Some((uids, blocks.len()))
        };
        assert_eq!(told(&state, "n1"), Some((vec!["u1".to_owned()], 2)));
        assert_eq!(told(&state, "n3"), Some((vec![], 0)));
        // What is being listed is not all yet.
        state.nodes.live = true;
        assert_eq!(told(&state, "n1"), None);
        state.blocks.listed = true;
        state.multi_nics.listed = true;
        assert_eq!(told(&state, "n1"), None);
        state.multi_nic_successors.listed = true;
        assert!(told(&state, "n1").is_some());
    }
}
