//! What follows from one change: the indexes are moved along, and the keys that it concerns named.

use super::{
    Change, GATHER, Index, Machine, Name, Net, Owned, Record, Request, Work, World, routed, soon,
    subnets_of,
};
use crate::decide::conflict::Whose;
use crate::queue::Key;
use ipnet::IpNet;
use plexus_api::cni::Routing;
use std::collections::BTreeSet;
use std::time::Duration;

impl World {
    pub(super) fn network_changed(&mut self, change: Change<Net>, work: &mut Work) {
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
                soon(work, Key::Network(other.clone()));
            }
        }
        let was = old.as_ref().map(routed).unwrap_or_default();
        let is = new.as_ref().map(routed).unwrap_or_default();
        let weight = |net: &Option<Net>| {
            net.as_ref()
                .map(|net| (net.status.phase, net.id.created.clone()))
        };
        if was != is || weight(&old) != weight(&new) {
            self.move_prefixes(Whose::Network(name.clone()), &was, &is, work);
        }
        for (net, add) in [(&old, false), (&new, true)] {
            let nets = net.as_ref().map(|net| subnets_of(net, Routing::Router));
            for prefix in nets.into_iter().flatten() {
                match add {
                    true => self.apart.insert(prefix, name.clone()),
                    false => self.apart.remove(prefix, &name),
                }
            }
        }
        if let Some(old) = old.filter(|old| new.as_ref().is_none_or(|new| new.id.uid != old.id.uid))
        {
            soon(work, Key::Orphans(old.id.uid));
        }
        soon(work, Key::ClusterDefault);
        soon(work, Key::Nad(name.clone()));
        soon(work, Key::Network(name));
        work.push((Key::Cluster, GATHER));
    }

    pub(super) fn block_changed(&mut self, change: &Change<Owned>, work: &mut Work) {
        for (block, add) in both(change) {
            if block.network.is_empty() {
                continue;
            }
            let edit = if add { link } else { unlink };
            edit(&mut self.blocks_of, &block.network, &change.name);
            edit(&mut self.blocks_on, &block.node, &change.name);
        }
        for (block, _) in both(change) {
            match self.by_uid.get(&block.network) {
                Some(network) => work.push((Key::Network(network.clone()), GATHER)),
                None => soon(work, Key::Orphans(block.network.clone())),
            }
            let there = self.nodes.get(&Name::new("", &block.node));
            if there.is_none_or(|node| node.id.uid != block.node_uid) {
                soon(work, Key::Node(block.node.clone()));
            }
        }
    }

    /// Requests go with their Node, and with their network.
    pub(super) fn request_changed(&mut self, change: &Change<Request>, work: &mut Work) {
        let Some(request) = change.new.as_ref().filter(|new| !new.node.is_empty()) else {
            return;
        };
        if self.nodes.get(&Name::new("", &request.node)).is_none() {
            soon(work, Key::Node(request.node.clone()));
        }
        if !self.by_uid.contains_key(&request.network) {
            soon(work, Key::Orphans(request.network.clone()));
        }
    }

    pub(super) fn record_changed(&mut self, change: &Change<Record>, work: &mut Work) {
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
                        soon(work, Key::Network(name.clone()));
                    } else if going {
                        work.push((Key::Network(name.clone()), GATHER));
                    }
                }
                if few && !self.by_uuid.contains_key(network) {
                    soon(work, Key::Orphans(network.clone()));
                }
            }
            if !record.node.is_empty() {
                edit(&mut self.records_on, &record.node, &change.name);
            }
        }
        let node = change.new.as_ref().map(|record| &record.node);
        if let Some(node) = node.filter(|node| self.nodes.get(&Name::new("", *node)).is_none()) {
            soon(work, Key::Node(node.clone()));
        }
    }

    pub(super) fn node_changed(&mut self, change: &Change<Machine>, work: &mut Work) {
        let node = &change.name.name;
        let pods = |machine: &Option<Machine>| {
            machine
                .as_ref()
                .map(|m| m.pod_cidrs.clone())
                .unwrap_or_default()
        };
        let own = |machine: &Option<Machine>| -> Vec<IpNet> {
            machine
                .iter()
                .flat_map(|m| m.addresses.iter().copied().map(IpNet::from))
                .collect()
        };
        let (old, new) = (&change.old, &change.new);
        self.move_prefixes(Whose::Pods(node.clone()), &pods(old), &pods(new), work);
        self.move_prefixes(Whose::Node(node.clone()), &own(old), &own(new), work);
        soon(work, Key::Node(node.clone()));
    }

    /// Replaces somebody's prefixes; the networks that overlap the old or the new are looked at.
    pub(super) fn move_prefixes(
        &mut self,
        whose: Whose,
        old: &[IpNet],
        new: &[IpNet],
        work: &mut Work,
    ) {
        for net in old {
            self.prefixes.remove(*net, &whose);
        }
        for net in new {
            self.prefixes.insert(*net, whose.clone());
        }
        let affected: BTreeSet<Whose> = old
            .iter()
            .chain(new)
            .flat_map(|net| self.prefixes.overlapping(*net))
            .map(|(_, whose)| whose)
            .collect();
        for affected in affected {
            if let Whose::Network(name) = affected {
                soon(work, Key::Network(name));
            }
        }
        // Overlay networks care for what belongs to the cluster alone.
        if matches!(&whose, Whose::Network(name) if self.own.as_ref() != Some(name)) {
            return;
        }
        let apart = old.iter().chain(new);
        let apart: BTreeSet<Name> = apart
            .flat_map(|net| self.apart.overlapping(*net))
            .map(|(_, name)| name)
            .collect();
        work.extend(
            apart
                .into_iter()
                .map(|name| (Key::Network(name), Duration::ZERO)),
        );
    }

    fn number(&mut self, net: &Net, add: bool) {
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
