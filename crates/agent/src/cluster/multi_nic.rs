//! MultiNicNetworks, as far as a node needs them to reach other nodes' blocks: which there are, what their subnets are, and
//! whether nodes route to each other. Of both groups; one that is in both is two networks.

use super::cached;
use super::kinds::Kind;
use super::report::Change;
use super::shared::Shared;
use super::state::{State, Store};
use super::wire::{MultiNicWire, SuccessorWire};
use ipnet::IpNet;
use kube::Resource;
use kube::api::{ListParams, ObjectMeta};
use plexus_core::nic_routes::{L3Network, NicBlock};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What is kept of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedMultiNic {
    pub(super) uid: String,
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

/// Keeps of a spec what [`read`] reads: users may have written much more.
fn trim(meta: &mut ObjectMeta, spec: &mut Value) {
    cached::trim(meta, false);
    meta.finalizers = None;
    meta.owner_references = None;
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
    let ipam: Value = serde_json::from_str(text("ipam")).unwrap_or_default();
    let mode = ipam.get("vlanMode").and_then(Value::as_str);
    let ipam = json!({"vlanMode": mode}).to_string();
    *spec = json!({"subnet": text("subnet"), "ipam": ipam});
}

/// One that cannot be read has no routes; the controller says why.
fn read(meta: &ObjectMeta, spec: &Value) -> Option<CachedMultiNic> {
    let text = |key: &str| spec.get(key).and_then(Value::as_str).unwrap_or_default();
    let ipam: Value = serde_json::from_str(text("ipam")).ok()?;
    let subnets = text("subnet").split(',').map(str::trim);
    let subnets = subnets.filter(|subnet| !subnet.is_empty());
    let subnets: Result<Vec<IpNet>, _> = subnets.map(str::parse).collect();
    Some(CachedMultiNic {
        uid: meta.uid.clone()?,
        subnets: subnets.ok()?,
        routed: matches!(ipam["vlanMode"].as_str(), Some("l3" | "l3s")),
    })
}

impl State {
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
    use std::sync::Arc;

    fn spec(subnet: &str, ipam: &str) -> Value {
        json!({"subnet": subnet, "ipam": ipam, "masterNets": ["10.0.1.0/24"], "plugin": {"type": "ipvlan"}})
    }

    fn kept(subnet: &str, ipam: &str) -> Option<CachedMultiNic> {
        let wire = json!({"metadata": {"name": "a", "uid": "u1", "finalizers": ["x"]},
            "spec": spec(subnet, ipam)});
        let mut wire: MultiNicWire = serde_json::from_value(wire).unwrap();
        let before = MultiNics::cache(&wire);
        MultiNics::trim(&mut wire);
        let text = serde_json::to_string(&wire).unwrap();
        assert!(!text.contains("masterNets") && text.len() < 200, "{text}");
        let after = MultiNics::cache(&wire);
        if before.is_some() {
            assert_eq!(before, after);
        }
        after
    }

    #[test]
    fn what_routes_need_is_kept_and_nothing_else() {
        let long = format!(
            r#"{{"vlanMode": "l3s", "routes": "{}"}}"#,
            "x".repeat(60_000)
        );
        let network = kept("192.168.0.0/16, fd00:192::/48", &long).unwrap();
        assert!(network.routed && network.subnets.len() == 2, "{network:?}");
        for (ipam, routed) in [
            (r#"{"vlanMode": "l3"}"#, true),
            (r#"{"vlanMode": "l2"}"#, false),
            (r#"{"vlanMode": 3}"#, false),
            ("{}", false),
            ("not JSON", false),
        ] {
            let network = kept("192.168.0.0/16", ipam).unwrap();
            assert_eq!(network.routed, routed, "{ipam}");
        }
        assert_eq!(kept("192.168.0.0/99", "{}"), None);
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
