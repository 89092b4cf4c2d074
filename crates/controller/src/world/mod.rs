//! What the API server says, cached and indexed for the questions that we ask. Fed by the watches
//! alone (and by the answers to our own writes); never asks anybody.
//!
//! Each change names the keys that must be looked at because of it: nothing else is.

mod table;
mod views;

pub(crate) use table::{Change, Table};
pub(crate) use views::{
    AnyNad, Identity, Machine, Nad, Name, Net, Owned, Policy, Record, Services, View, name_of,
};

use crate::decide::conflict::{Rival, Standing, Whose, precedes};
use crate::decide::network::is_settled;
use crate::decide::prefixes::Prefixes;
use crate::decide::usage::Users;
use crate::queue::Key;
use ipnet::IpNet;
use kube::runtime::watcher::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// News of one kind.
pub(crate) enum News {
    Nad(Event<(Name, Nad)>),
    Network(Event<(Name, Net)>),
    Block(Event<(Name, Owned)>),
    Record(Event<(Name, Record)>),
    Node(Event<(Name, Machine)>),
    Services(Event<(Name, Services)>),
    Policy(Event<(Name, Policy)>),
}

/// How long changes of how full a network is are gathered before it is said.
pub(crate) const GATHER: Duration = Duration::from_secs(2);

type Index<V> = BTreeMap<String, BTreeSet<V>>;

/// Everything that we know.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) nads: Table<Nad>,
    pub(crate) networks: Table<Net>,
    pub(crate) blocks: Table<Owned>,
    pub(crate) records: Table<Record>,
    pub(crate) nodes: Table<Machine>,
    pub(crate) services: Table<Services>,
    pub(crate) policies: Table<Policy>,
    by_uid: BTreeMap<String, Name>,
    by_uuid: Index<Name>,
    blocks_of: Index<Name>,
    blocks_on: Index<Name>,
    records_of: Index<Name>,
    records_on: Index<Name>,
    prefixes: Prefixes<Whose>,
    /// Number → (created, UID) of the networks that say it is theirs.
    numbers: BTreeMap<u32, BTreeSet<(String, String)>>,
}

/// What must be looked at, and after how long.
pub(crate) type Work = Vec<(Key, Duration)>;

impl World {
    /// The kinds of which no complete list was seen yet.
    pub(crate) fn incomplete(&self, policies: bool) -> Vec<&'static str> {
        [
            ("NetworkAttachmentDefinitions", self.nads.is_complete()),
            ("Networks", self.networks.is_complete()),
            ("Blocks", self.blocks.is_complete()),
            ("PodAttachments", self.records.is_complete()),
            ("Nodes", self.nodes.is_complete()),
            ("ServiceCIDRs", self.services.is_complete()),
            ("NetworkPolicies", !policies || self.policies.is_complete()),
        ]
        .into_iter()
        .filter(|(_, complete)| !complete)
        .map(|(kind, _)| kind)
        .collect()
    }

    /// Takes the news; gives what must be looked at because of them.
    pub(crate) fn feed(&mut self, news: News) -> Work {
        let mut work = Vec::new();
        match news {
            News::Nad(event) => {
                for change in self.nads.feed(event) {
                    soon(&mut work, Key::Nad(change.name.clone()));
                    soon(&mut work, Key::Network(change.name));
                }
            }
            News::Network(event) => {
                for change in self.networks.feed(event) {
                    self.network_changed(change, &mut work);
                }
            }
            News::Block(event) => {
                for change in self.blocks.feed(event) {
                    self.block_changed(&change, &mut work);
                }
            }
            News::Record(event) => {
                for change in self.records.feed(event) {
                    self.record_changed(&change, &mut work);
                }
            }
            News::Node(event) => {
                for change in self.nodes.feed(event) {
                    self.node_changed(&change, &mut work);
                }
            }
            News::Services(event) => {
                for change in self.services.feed(event) {
                    let whose = Whose::Services(change.name.name);
                    let nets = |services: Option<&Services>| {
                        services.map(|s| s.cidrs.clone()).unwrap_or_default()
                    };
                    self.move_prefixes(
                        whose,
                        &nets(change.old.as_ref()),
                        &nets(change.new.as_ref()),
                        &mut work,
                    );
                }
            }
            News::Policy(event) => {
                for change in self.policies.feed(event) {
                    soon(&mut work, Key::Policy(change.name));
                    soon(&mut work, Key::Cluster);
                }
            }
        }
        work
    }

    /// The network with this UID.
    pub(crate) fn network_by_uid(&self, uid: &str) -> Option<&Net> {
        self.networks.get(self.by_uid.get(uid)?)
    }

    /// Namespace and name of the network with this UID.
    pub(crate) fn name_by_uid(&self, uid: &str) -> Option<&Name> {
        self.by_uid.get(uid)
    }

    /// The Blocks of a network, by its UID.
    pub(crate) fn blocks_of(&self, uid: &str) -> impl Iterator<Item = (&Name, &Owned)> {
        rows(&self.blocks, self.blocks_of.get(uid))
    }

    /// The Blocks of a Node, by its name.
    pub(crate) fn blocks_on(&self, node: &str) -> impl Iterator<Item = (&Name, &Owned)> {
        rows(&self.blocks, self.blocks_on.get(node))
    }

    /// The records of a Node's pods.
    pub(crate) fn records_on(&self, node: &str) -> impl Iterator<Item = (&Name, &Record)> {
        rows(&self.records, self.records_on.get(node))
    }

    /// Who uses a network, by the identity that records have of it.
    pub(crate) fn users(&self, uuid: &str) -> Users {
        let records = self.records_of.get(uuid);
        let first = rows(&self.records, records).take(Users::NAMED);
        Users {
            count: records.map_or(0, BTreeSet::len),
            first: first
                .map(|(name, record)| format!("{}/{}", name.namespace, record.pod))
                .collect(),
        }
    }

    /// The oldest other network with the same identity, if it is older than this one.
    pub(crate) fn older_namesake(&self, net: &Net) -> Option<&Name> {
        let same = self.by_uuid.get(net.uuid()).into_iter().flatten();
        same.filter_map(|name| Some((name, self.networks.get(name)?)))
            .filter(|(_, other)| other.id.uid != net.id.uid)
            .filter(|(_, other)| {
                (&other.id.created, &other.id.uid) < (&net.id.created, &net.id.uid)
            })
            .map(|(name, _)| name)
            .next()
    }

    /// Who says that a number is theirs.
    pub(crate) fn claims(&self, number: u32) -> Option<&BTreeSet<(String, String)>> {
        self.numbers.get(&number)
    }

    /// Where a network stands among its rivals.
    pub(crate) fn standing(&self, net: &Net) -> Standing {
        let users = self.records_of.get(net.uuid()).map_or(0, BTreeSet::len);
        let blocks = self.blocks_of.get(&net.id.uid).map_or(0, BTreeSet::len);
        Standing {
            unsettled: !is_settled(&net.status, users, blocks),
            created: net.id.created.clone(),
            uid: net.id.uid.clone(),
        }
    }

    /// Everybody whose addresses collide with this network's, sorted. `ignore_pods`: the Nodes'
    /// podCIDRs are not used in this cluster.
    pub(crate) fn rivals(&self, name: &Name, net: &Net, ignore_pods: bool) -> Vec<Rival> {
        let me = self.standing(net);
        let mut rivals = Vec::new();
        for ours in routed(net) {
            for (theirs, whose) in self.prefixes.overlapping(ours) {
                let other = match &whose {
                    Whose::Network(other) if other == name => continue,
                    Whose::Pods(_) if ignore_pods => continue,
                    Whose::Network(other) => {
                        self.networks.get(other).map(|other| self.standing(other))
                    }
                    _ => None,
                };
                rivals.push(Rival {
                    precedes: precedes(other.as_ref(), &me),
                    nets: (ours, theirs),
                    whose,
                });
            }
        }
        rivals.sort();
        rivals.dedup();
        rivals
    }

    fn network_changed(&mut self, change: Change<Net>, work: &mut Work) {
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
        if let Some(old) = old.filter(|old| new.as_ref().is_none_or(|new| new.id.uid != old.id.uid))
        {
            soon(work, Key::Orphans(old.id.uid));
        }
        soon(work, Key::ClusterDefault);
        soon(work, Key::Nad(name.clone()));
        soon(work, Key::Network(name));
        work.push((Key::Cluster, GATHER));
    }

    fn block_changed(&mut self, change: &Change<Owned>, work: &mut Work) {
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

    fn record_changed(&mut self, change: &Change<Record>, work: &mut Work) {
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

    fn node_changed(&mut self, change: &Change<Machine>, work: &mut Work) {
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
    fn move_prefixes(&mut self, whose: Whose, old: &[IpNet], new: &[IpNet], work: &mut Work) {
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
        for whose in affected {
            if let Whose::Network(name) = whose {
                soon(work, Key::Network(name));
            }
        }
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

/// The prefixes that a network puts into the nodes' own routing tables.
fn routed(net: &Net) -> Vec<IpNet> {
    match &net.spec {
        Ok(spec) if spec.provider_name() == "routed" && spec.problems().0.is_empty() => spec
            .subnets
            .values()
            .map(|subnet| subnet.cidr.trunc())
            .collect(),
        _ => Vec::new(),
    }
}

fn soon(work: &mut Work, key: Key) {
    work.push((key, Duration::ZERO));
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

fn rows<'a, V: View>(
    table: &'a Table<V>,
    names: Option<&'a BTreeSet<Name>>,
) -> impl Iterator<Item = (&'a Name, &'a V)> {
    names
        .into_iter()
        .flatten()
        .filter_map(|name| Some((name, table.get(name)?)))
}

#[cfg(test)]
mod tests;
