//! What follows from one change: the indexes are moved along, and the keys that it concerns named.

use super::multi_nic::GATHER;
use super::{
    ApiServerView, BlockView, Cache, Change, Index, Name, NetworkView, NodeView, RecordView,
    RequestView, ServiceCidrView, USAGE_DELAY, Work, enqueue_now, routed, subnets_of,
};
use crate::decide::conflict::AddressOwner;
use crate::queue::Key;
use ipnet::IpNet;
use plexus_api::cni::Routing;
use std::collections::BTreeSet;
use std::time::Duration;

impl Cache {
    pub(super) fn network_changed(&mut self, change: Change<NetworkView>, work: &mut Work) {
        let Change { name, old, new } = change;
        if let Some(old) = &old {
            self.by_uid.remove(&old.id.uid);
            unlink(&mut self.by_uuid, old.uuid(), &name);
            self.number(old, false);
        }
        if let Some(new) = &new {
            self.by_uid.insert(new.id.uid.clone(), name.clone());
            link(&mut self.by_uuid, new.uuid(), &name);
            self.number(new, true);
        }
        // Those that wait for this one's identity or number to become free.
        for net in [&old, &new].into_iter().flatten() {
            for other in self.by_uuid.get(net.uuid()).into_iter().flatten() {
                enqueue_now(work, Key::Network(other.clone()));
            }
        }
        let was = old.as_ref().map(routed).unwrap_or_default();
        let is = new.as_ref().map(routed).unwrap_or_default();
        let weight = |net: &Option<NetworkView>| {
            net.as_ref()
                .map(|net| (net.status.phase, net.id.created.clone()))
        };
        if was != is || weight(&old) != weight(&new) {
            self.move_prefixes(AddressOwner::Network(name.clone()), &was, &is, work);
        }
        for (net, add) in [(&old, false), (&new, true)] {
            let nets = net.as_ref().map(|net| subnets_of(net, Routing::Router));
            for prefix in nets.into_iter().flatten() {
                match add {
                    true => self.overlay_prefixes.insert(prefix, name.clone()),
                    false => self.overlay_prefixes.remove(prefix, &name),
                }
            }
        }
        if let Some(old) = old.filter(|old| new.as_ref().is_none_or(|new| new.id.uid != old.id.uid))
        {
            enqueue_now(work, Key::Orphans(old.id.uid));
        }
        enqueue_now(work, Key::ClusterDefault);
        enqueue_now(work, Key::Nad(name.clone()));
        enqueue_now(work, Key::Network(name));
        work.push((Key::Cluster, USAGE_DELAY));
    }

    pub(super) fn block_changed(&mut self, change: &Change<BlockView>, work: &mut Work) {
        for (block, add) in both(change) {
            if block.network.is_empty() {
                continue;
            }
            let edit = if add { link } else { unlink };
            edit(&mut self.blocks_of, &block.network, &change.name);
            edit(&mut self.blocks_on, &block.node, &change.name);
        }
        for (block, _) in both(change) {
            if block.nic.is_some() {
                self.nic_block_changed(block, work);
            } else {
                self.network_block_changed(block, work);
            }
            let there = self.nodes.get(&Name::new("", &block.node));
            if there.is_none_or(|node| node.id.uid != block.node_uid) {
                enqueue_now(work, Key::Node(block.node.clone()));
            }
        }
    }

    fn network_block_changed(&self, block: &BlockView, work: &mut Work) {
        match self.by_uid.get(&block.network) {
            Some(network) => work.push((Key::Network(network.clone()), USAGE_DELAY)),
            None => enqueue_now(work, Key::Orphans(block.network.clone())),
        }
    }

    /// Requests go with their Node, and with their network.
    pub(super) fn request_changed(&mut self, change: &Change<RequestView>, work: &mut Work) {
        let Some(request) = change.new.as_ref().filter(|new| !new.node.is_empty()) else {
            return;
        };
        if self.nodes.get(&Name::new("", &request.node)).is_none() {
            enqueue_now(work, Key::Node(request.node.clone()));
        }
        if !self.by_uid.contains_key(&request.network) {
            enqueue_now(work, Key::Orphans(request.network.clone()));
        }
    }

    pub(super) fn record_changed(&mut self, change: &Change<RecordView>, work: &mut Work) {
        for (record, add) in both(change) {
            let edit = if add { link } else { unlink };
            for network in &record.networks {
                edit(&mut self.records_of, network, &change.name);
                // One that is going says by whom it is used; others only care for the first and
                // the last.
                let few = self
                    .records_of
                    .get(network)
                    .is_none_or(|records| records.len() <= 1);
                for name in self.by_uuid.get(network).into_iter().flatten() {
                    let going = self.networks.get(name).is_some_and(|net| net.id.deleting);
                    if few {
                        enqueue_now(work, Key::Network(name.clone()));
                    } else if going {
                        work.push((Key::Network(name.clone()), USAGE_DELAY));
                    }
                }
                if few && !self.by_uuid.contains_key(network) {
                    enqueue_now(work, Key::Orphans(network.clone()));
                }
            }
            if !record.node.is_empty() {
                edit(&mut self.records_on, &record.node, &change.name);
            }
        }
        let node = change.new.as_ref().map(|record| &record.node);
        if let Some(node) = node.filter(|node| self.nodes.get(&Name::new("", *node)).is_none()) {
            enqueue_now(work, Key::Node(node.clone()));
        }
    }

    pub(super) fn node_changed(&mut self, change: &Change<NodeView>, work: &mut Work) {
        let node = &change.name.name;
        let pods = |view: &Option<NodeView>| {
            view.as_ref()
                .map(|m| m.pod_cidrs.clone())
                .unwrap_or_default()
        };
        let own = |view: &Option<NodeView>| -> Vec<IpNet> {
            view.iter()
                .flat_map(|m| m.addresses.iter().copied().map(IpNet::from))
                .collect()
        };
        let (old, new) = (&change.old, &change.new);
        self.move_prefixes(
            AddressOwner::Pods(node.clone()),
            &pods(old),
            &pods(new),
            work,
        );
        self.move_prefixes(AddressOwner::Node(node.clone()), &own(old), &own(new), work);
        enqueue_now(work, Key::Node(node.clone()));
        let uid = |view: &Option<NodeView>| view.as_ref().map(|view| view.id.uid.clone());
        if uid(old) != uid(new) {
            self.all_multi_nics(GATHER, work);
        }
    }

    pub(super) fn services_changed(&mut self, change: Change<ServiceCidrView>, work: &mut Work) {
        let nets = |view: Option<ServiceCidrView>| view.map(|one| one.cidrs).unwrap_or_default();
        let owner = AddressOwner::Services(change.name.name);
        self.move_prefixes(owner, &nets(change.old), &nets(change.new), work);
    }

    pub(super) fn api_server_changed(&mut self, change: Change<ApiServerView>, work: &mut Work) {
        let nets = |view: Option<ApiServerView>| view.map(|one| one.addresses).unwrap_or_default();
        let owner = AddressOwner::ApiServer(Some(change.name.name));
        self.move_prefixes(owner, &nets(change.old), &nets(change.new), work);
    }

    /// Replaces somebody's prefixes; the networks that overlap the old or the new are looked at.
    pub(super) fn move_prefixes(
        &mut self,
        owner: AddressOwner,
        old: &[IpNet],
        new: &[IpNet],
        work: &mut Work,
    ) {
        for net in old {
            self.prefixes.remove(*net, &owner);
        }
        for net in new {
            self.prefixes.insert(*net, owner.clone());
        }
        let affected: BTreeSet<AddressOwner> = old
            .iter()
            .chain(new)
            .flat_map(|net| self.prefixes.overlapping(*net))
            .map(|(_, owner)| owner)
            .collect();
        for affected in affected {
            match affected {
                AddressOwner::Network(name) => enqueue_now(work, Key::Network(name)),
                AddressOwner::MultiNic(name) => work.push((Key::MultiNic(name), GATHER)),
                _ => {}
            }
        }
        // Overlay networks care for what belongs to the cluster alone.
        let of_cluster = match &owner {
            AddressOwner::Network(name) => self.default_network.as_ref() == Some(name),
            AddressOwner::MultiNic(_) => false,
            _ => true,
        };
        if !of_cluster {
            return;
        }
        let moved = old.iter().chain(new);
        let overlays: BTreeSet<Name> = moved
            .flat_map(|net| self.overlay_prefixes.overlapping(*net))
            .map(|(_, name)| name)
            .collect();
        work.extend(
            overlays
                .into_iter()
                .map(|name| (Key::Network(name), Duration::ZERO)),
        );
    }

    fn number(&mut self, net: &NetworkView, add: bool) {
        let Some(number) = net.status.vni else { return };
        let claim = (net.id.created.clone(), net.id.uid.clone());
        let claims = self.numbers.entry(number).or_default();
        if add {
            claims.insert(claim);
        } else {
            claims.remove(&claim);
            if claims.is_empty() {
                self.numbers.remove(&number);
            }
        }
    }
}

/// What goes, then what comes.
fn both<V>(change: &Change<V>) -> impl Iterator<Item = (&V, bool)> {
    let old = change.old.iter().map(|old| (old, false));
    old.chain(change.new.iter().map(|new| (new, true)))
}

fn link(index: &mut Index<Name>, key: &str, name: &Name) {
    index
        .entry(key.to_owned())
        .or_default()
        .insert(name.clone());
}

fn unlink(index: &mut Index<Name>, key: &str, name: &Name) {
    if let Some(names) = index.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            index.remove(key);
        }
    }
}
