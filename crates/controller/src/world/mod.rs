//! What the API server says, cached and indexed for the questions that we ask. Fed by the watches
//! alone (and by the answers to our own writes); never asks anybody.
//!
//! Each change names the keys that must be looked at because of it: nothing else is.

mod changed;
mod later;
mod table;
mod views;

pub(crate) use later::{Later, Waiting};
pub(crate) use table::{Change, Table};
pub(crate) use views::{
    AnyNad, Identity, Machine, Nad, Name, Net, Owned, Policy, Record, Request, Services, View,
    name_of,
};

use crate::decide::conflict::{Age, Rival, Standing, Whose, precedes};
use crate::decide::network::is_settled;
use crate::decide::prefixes::Prefixes;
use crate::decide::usage::{Held, Users};
use crate::queue::Key;
use ipnet::IpNet;
use kube::runtime::watcher::Event;
use plexus_api::cni::Routing;
use plexus_api::later::LaterKind;
use plexus_api::objects::{BlockSpec, Gift, NetworkSpec, Phase};
use plexus_core::ipam::is_granted;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// News of one kind.
pub(crate) enum News {
    Nad(Event<(Name, Nad)>),
    Network(Event<(Name, Net)>),
    Block(Event<(Name, Owned)>),
    Request(Event<(Name, Request)>),
    Record(Event<(Name, Record)>),
    Node(Event<(Name, Machine)>),
    Services(Event<(Name, Services)>),
    Policy(Event<(Name, Policy)>),
    Later(&'static LaterKind, Event<Waiting>),
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
    pub(crate) requests: Table<Request>,
    pub(crate) records: Table<Record>,
    pub(crate) nodes: Table<Machine>,
    pub(crate) services: Table<Services>,
    pub(crate) policies: Table<Policy>,
    pub(crate) later: Later,
    by_uid: BTreeMap<String, Name>,
    by_uuid: Index<Name>,
    blocks_of: Index<Name>,
    blocks_on: Index<Name>,
    records_of: Index<Name>,
    records_on: Index<Name>,
    prefixes: Prefixes<Whose>,
    /// Those of networks with routing tables of their own.
    apart: Prefixes<Name>,
    /// The network of index 0, if that has blocks: every pod's first interface is there.
    pub(crate) own: Option<Name>,
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
            ("BlockRequests", self.requests.is_complete()),
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
            News::Request(event) => {
                for change in self.requests.feed(event) {
                    self.request_changed(&change, &mut work);
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
            News::Later(kind, event) => {
                for (kind, name) in self.later.feed(kind, event) {
                    soon(&mut work, Key::Later(kind, name));
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

    /// Whether a part of a block holds what it gave to others in turn: without it they would have
    /// nothing to show. What is in a whole block needs it not: whoever claims that leaves room.
    pub(crate) fn parts_of_others(&self, block: &Owned) -> bool {
        let net = self.network_by_uid(&block.network);
        let (Some(net), Some(cidr)) = (net, block.cidr) else {
            return false;
        };
        if net.whole_block(&cidr).is_none_or(|whole| whole == cidr) {
            return false;
        }
        let mut others = self.blocks_of(&block.network).map(|(_, other)| other);
        let has = |other: &Owned| {
            block.is_around(other) && other.node != block.node && self.is_granted(net, other)
        };
        let open = |gift: &Gift| {
            let name = BlockSpec::name(&block.network, &gift.cidr);
            let there = self.nodes.get(&Name::new("", &gift.node)).is_some();
            there && gift.node != block.node && self.blocks.get(&Name::new("", name)).is_none()
        };
        others.any(has) || block.given.iter().any(open)
    }

    /// Parts of another node's block, which did not give them: sorted.
    pub(crate) fn not_given(&self, net: &Net) -> Vec<(Name, Owned)> {
        let blocks = self.blocks_of(&net.id.uid);
        let wrong = blocks.filter(|(_, block)| !self.is_granted(net, block));
        wrong
            .map(|(name, block)| (name.clone(), block.clone()))
            .collect()
    }

    /// Whether a block is its owner's, though it is a part of one. Nothing is said of those that are not
    /// the network's at all.
    fn is_granted(&self, net: &Net, block: &Owned) -> bool {
        let Some(cidr) = block.cidr else { return true };
        if net.whole_block(&cidr).is_none_or(|whole| whole == cidr) {
            return true;
        }
        is_granted(cidr, &block.node, |prefix| {
            net.whole_block(prefix)?;
            let name = Name::new("", BlockSpec::name(&net.id.uid, prefix));
            let block = self.blocks.get(&name)?;
            Some((&*block.node, &*block.given))
        })
    }

    /// The requests of a Node, by its name.
    pub(crate) fn requests_on(&self, node: &str) -> impl Iterator<Item = (&Name, &Request)> {
        let all = self.requests.iter();
        all.filter(move |(_, request)| request.node == node && !request.node.is_empty())
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
        let own = self.age(net);
        let same = same.filter_map(|name| Some((name, self.age(self.networks.get(name)?))));
        let older = same.filter(|(_, other)| *other < own);
        let oldest = older.min_by(|(_, one), (_, other)| one.cmp(other));
        oldest.map(|(name, _)| name)
    }

    fn age(&self, net: &Net) -> Age {
        let told = matches!(net.status.phase, Some(Phase::Active | Phase::Terminating));
        Age {
            created: net.id.created.clone(),
            newcomer: !told && self.blocks_of(&net.id.uid).next().is_none(),
            uid: net.id.uid.clone(),
        }
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
            age: self.age(net),
        }
    }

    /// Everybody whose addresses collide with this network's, sorted. `ignore_pods`: the Nodes'
    /// podCIDRs are not used in this cluster.
    pub(crate) fn rivals(&self, name: &Name, net: &Net, ignore_pods: bool) -> Vec<Rival> {
        let me = self.standing(net);
        let mut rivals = Vec::new();
        for ours in routed(net) {
            for (theirs, whose) in self.prefixes.overlapping(ours) {
                let common = if ours.contains(&theirs) { theirs } else { ours };
                let other = match &whose {
                    Whose::Network(other) if other == name => continue,
                    Whose::Pods(_) if ignore_pods => continue,
                    Whose::Network(other) => self
                        .networks
                        .get(other)
                        .map(|other| (self.standing(other), self.has_blocks_in(other, common))),
                    _ => None,
                };
                let other = other.as_ref().map(|(standing, has)| (standing, *has));
                let has = other.is_some() && self.has_blocks_in(net, common);
                rivals.push(Rival {
                    precedes: precedes(other, (&me, has)),
                    nets: (ours, theirs),
                    whose,
                });
            }
        }
        rivals.extend(self.hidden(net));
        rivals.sort();
        rivals.dedup();
        rivals
    }

    /// What the pods of an overlay network could not reach through their first interface any more, because
    /// their interface in this network leads there too. The cluster's pods and Services come first; that a
    /// Node's address is hidden is said, no more.
    fn hidden(&self, net: &Net) -> Vec<Rival> {
        let each = subnets_of(net, Routing::Router)
            .into_iter()
            .flat_map(|ours| {
                let found = self.prefixes.overlapping(ours).into_iter();
                found.map(move |(theirs, whose)| (ours, theirs, whose))
            });
        let rivals = each.filter_map(|(ours, theirs, whose)| {
            let precedes = match &whose {
                Whose::Pods(_) if self.own.is_some() => return None,
                Whose::Network(other) if self.own.as_ref() != Some(other) => return None,
                Whose::Pods(_) | Whose::Services(_) | Whose::Network(_) => true,
                Whose::Node(_) => false,
            };
            Some(Rival {
                whose,
                nets: (ours, theirs),
                precedes,
            })
        });
        rivals.collect()
    }
}

impl World {
    fn has_blocks_in(&self, net: &Net, within: IpNet) -> bool {
        let overlaps = |cidr: IpNet| within.contains(&cidr) || cidr.contains(&within);
        self.blocks_of(&net.id.uid)
            .any(|(_, block)| block.cidr.is_some_and(overlaps))
    }

    /// What the nodes that are there say of a network's blocks.
    pub(crate) fn held(&self, uid: &str) -> Held {
        let there = |node: &str| self.nodes.get(&Name::new("", node)).is_some();
        let blocks = self.blocks_of(uid).filter(|(_, block)| there(&block.node));
        Held::of(blocks.map(|(_, block)| (block.node.as_str(), block.allocated, block.closed)))
    }
}

/// The prefixes that a network puts into the nodes' own routing tables.
fn routed(net: &Net) -> Vec<IpNet> {
    subnets_of(net, Routing::Node)
}

/// The prefixes of a network that can be made, if that is how its addresses are led to.
fn subnets_of(net: &Net, routing: Routing) -> Vec<IpNet> {
    let is_it = |spec: &&NetworkSpec| {
        let kind = spec.provider_kind();
        kind.is_some_and(|kind| kind.routing == routing) && spec.problems().0.is_empty()
    };
    let spec = net.spec.as_ref().ok().filter(is_it);
    let subnets = spec.into_iter().flat_map(|spec| spec.subnets.values());
    subnets.map(|subnet| subnet.cidr.trunc()).collect()
}

fn soon(work: &mut Work, key: Key) {
    work.push((key, Duration::ZERO));
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
