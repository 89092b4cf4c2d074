//! The objects of the API server, cached and indexed for the engine. The watches feed the cache, and so do the
//! answers to our own writes; the cache sends no request.
//!
//! Each change returns the keys that the engine must look at because of it, and no others.

mod changed;
mod later;
mod multi_nic;
mod table;
mod views;

pub(crate) use later::{Later, Waiting};
pub(crate) use table::{Change, Table};
pub(crate) use views::{
    AnyNad, ApiServerView, BlockView, HostNicsView, Identity, MultiNicView, NadView, Name,
    NamespaceView, NetworkView, NodeView, PolicyView, RecordView, RequestView, ServiceCidrView,
    View, name_of,
};

use crate::decide::conflict::{AddressOwner, Age, Precedence, Rival, precedes};
use crate::decide::network::is_settled;
use crate::decide::prefixes::Prefixes;
use crate::decide::usage::{AddressesInUse, Users};
use crate::queue::Key;
use ipnet::IpNet;
use kube::runtime::watcher::Event;
use plexus_api::cni::Routing;
use plexus_api::later::LaterKind;
use plexus_api::objects::{BlockSpec, DonatedPart, NetworkSpec, Phase};
use plexus_core::ipam::is_legal;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// What a watch reports about one kind.
pub(crate) enum Update {
    Nad(Event<(Name, NadView)>),
    Network(Event<(Name, NetworkView)>),
    Block(Event<(Name, BlockView)>),
    Request(Event<(Name, RequestView)>),
    Record(Event<(Name, RecordView)>),
    Node(Event<(Name, NodeView)>),
    Services(Event<(Name, ServiceCidrView)>),
    ApiServers(Event<(Name, ApiServerView)>),
    Policy(Event<(Name, PolicyView)>),
    MultiNic(Event<(Name, MultiNicView)>),
    HostNics(Event<(Name, HostNicsView)>),
    Namespace(Event<(Name, NamespaceView)>),
    Later(&'static LaterKind, Event<Waiting>),
}

/// The controller waits this long before it writes how full a network is, so that one write covers many changes.
pub(crate) const USAGE_DELAY: Duration = Duration::from_secs(2);

type Index<V> = BTreeMap<String, BTreeSet<V>>;

/// The objects that the watches have reported, and indexes over them.
#[derive(Default)]
pub(crate) struct Cache {
    pub(crate) nads: Table<NadView>,
    pub(crate) networks: Table<NetworkView>,
    pub(crate) blocks: Table<BlockView>,
    pub(crate) requests: Table<RequestView>,
    pub(crate) records: Table<RecordView>,
    pub(crate) nodes: Table<NodeView>,
    pub(crate) services: Table<ServiceCidrView>,
    pub(crate) api_servers: Table<ApiServerView>,
    pub(crate) policies: Table<PolicyView>,
    pub(crate) multi_nics: Table<MultiNicView>,
    pub(crate) host_nics: Table<HostNicsView>,
    pub(crate) namespaces: Table<NamespaceView>,
    pub(crate) later: Later,
    multi_nic_by_uid: BTreeMap<String, Name>,
    by_uid: BTreeMap<String, Name>,
    by_uuid: Index<Name>,
    blocks_of: Index<Name>,
    blocks_on: Index<Name>,
    records_of: Index<Name>,
    records_on: Index<Name>,
    prefixes: Prefixes<AddressOwner>,
    /// Prefixes of overlay networks, which have routing tables of their own.
    overlay_prefixes: Prefixes<Name>,
    /// The network of index 0, if that has blocks: every pod's first interface is there.
    pub(crate) default_network: Option<Name>,
    /// Number → (created, UID) of the networks that say it is theirs.
    numbers: BTreeMap<u32, BTreeSet<(String, String)>>,
}

/// What must be looked at, and after how long.
pub(crate) type Work = Vec<(Key, Duration)>;

impl Cache {
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
            ("MultiNicNetworks", self.multi_nics.is_complete()),
            ("HostInterfaces", self.host_nics.is_complete()),
            ("Namespaces", self.namespaces.is_complete()),
            ("EndpointSlices", self.api_servers.is_complete()),
            ("NetworkPolicies", !policies || self.policies.is_complete()),
        ]
        .into_iter()
        .filter(|(_, complete)| !complete)
        .map(|(kind, _)| kind)
        .collect()
    }

    /// Stores the update and returns the keys that must be looked at because of it.
    pub(crate) fn feed(&mut self, updates: Update) -> Work {
        let mut work = Vec::new();
        match updates {
            Update::Nad(event) => {
                for change in self.nads.feed(event) {
                    self.definition_changed(&change, &mut work);
                    enqueue_now(&mut work, Key::Nad(change.name.clone()));
                    enqueue_now(&mut work, Key::Network(change.name));
                }
            }
            Update::Network(event) => {
                for change in self.networks.feed(event) {
                    self.network_changed(change, &mut work);
                }
            }
            Update::Block(event) => {
                for change in self.blocks.feed(event) {
                    self.block_changed(&change, &mut work);
                }
            }
            Update::Request(event) => {
                for change in self.requests.feed(event) {
                    self.request_changed(&change, &mut work);
                }
            }
            Update::Record(event) => {
                for change in self.records.feed(event) {
                    self.record_changed(&change, &mut work);
                }
            }
            Update::Node(event) => {
                for change in self.nodes.feed(event) {
                    self.node_changed(&change, &mut work);
                }
            }
            Update::Services(event) => {
                for change in self.services.feed(event) {
                    self.services_changed(change, &mut work);
                }
            }
            Update::ApiServers(event) => {
                for change in self.api_servers.feed(event) {
                    self.api_server_changed(change, &mut work);
                }
            }
            Update::MultiNic(event) => {
                for change in self.multi_nics.feed(event) {
                    self.multi_nic_changed(change, &mut work);
                }
            }
            Update::HostNics(event) => {
                for change in self.host_nics.feed(event) {
                    self.host_nics_changed(&change, &mut work);
                }
            }
            Update::Namespace(event) => {
                for change in self.namespaces.feed(event) {
                    self.namespace_changed(&change, &mut work);
                }
            }
            Update::Later(kind, event) => {
                for (kind, name) in self.later.feed(kind, event) {
                    enqueue_now(&mut work, Key::Later(kind, name));
                }
            }
            Update::Policy(event) => {
                for change in self.policies.feed(event) {
                    enqueue_now(&mut work, Key::Policy(change.name));
                    enqueue_now(&mut work, Key::Cluster);
                }
            }
        }
        work
    }

    /// Where this process reaches the API server: no network may take that.
    pub(crate) fn set_api_server(&mut self, addresses: &[IpAddr]) {
        for address in addresses {
            let owner = AddressOwner::ApiServer(None);
            self.prefixes.insert((*address).into(), owner);
        }
    }

    /// The network with this UID.
    pub(crate) fn network_by_uid(&self, uid: &str) -> Option<&NetworkView> {
        self.networks.get(self.by_uid.get(uid)?)
    }

    /// Namespace and name of the network with this UID.
    pub(crate) fn name_by_uid(&self, uid: &str) -> Option<&Name> {
        self.by_uid.get(uid)
    }

    /// The Blocks of a network, by its UID.
    pub(crate) fn blocks_of(&self, uid: &str) -> impl Iterator<Item = (&Name, &BlockView)> {
        rows(&self.blocks, self.blocks_of.get(uid))
    }

    /// The Blocks of a Node, by its name.
    pub(crate) fn blocks_on(&self, node: &str) -> impl Iterator<Item = (&Name, &BlockView)> {
        rows(&self.blocks, self.blocks_on.get(node))
    }

    /// Whether a part of a block contains parts that its owner has donated in turn: they are legal only while
    /// this part is there. Parts of a whole block stay legal without it: whoever claims that block leaves room.
    pub(crate) fn has_parts_of_others(&self, block: &BlockView) -> bool {
        let net = self.network_by_uid(&block.network);
        let (Some(net), Some(cidr)) = (net, block.cidr) else {
            return false;
        };
        if net.whole_block(&cidr).is_none_or(|whole| whole == cidr) {
            return false;
        }
        let mut others = self.blocks_of(&block.network).map(|(_, other)| other);
        let has = |other: &BlockView| {
            block.contains_block(other)
                && other.node != block.node
                && self.is_legal_part(net, other)
        };
        let open = |donation: &DonatedPart| {
            let name = BlockSpec::name(&block.network, &donation.cidr);
            let there = self.nodes.get(&Name::new("", &donation.node)).is_some();
            there && donation.node != block.node && self.blocks.get(&Name::new("", name)).is_none()
        };
        others.any(has) || block.given.iter().any(open)
    }

    /// Parts of another node's block that this node did not donate, sorted.
    pub(crate) fn undonated_parts(&self, net: &NetworkView) -> Vec<(Name, BlockView)> {
        let blocks = self.blocks_of(&net.id.uid);
        let wrong = blocks.filter(|(_, block)| !self.is_legal_part(net, block));
        wrong
            .map(|(name, block)| (name.clone(), block.clone()))
            .collect()
    }

    /// Whether the owner of the block around it has donated this part. True of whole blocks, and of blocks
    /// outside of the network.
    fn is_legal_part(&self, net: &NetworkView, block: &BlockView) -> bool {
        let Some(cidr) = block.cidr else { return true };
        if net.whole_block(&cidr).is_none_or(|whole| whole == cidr) {
            return true;
        }
        is_legal(cidr, &block.node, |prefix| {
            net.whole_block(prefix)?;
            let name = Name::new("", BlockSpec::name(&net.id.uid, prefix));
            let block = self.blocks.get(&name)?;
            Some((&*block.node, &*block.given))
        })
    }

    /// The requests of a Node, by its name.
    pub(crate) fn requests_on(&self, node: &str) -> impl Iterator<Item = (&Name, &RequestView)> {
        let all = self.requests.iter();
        all.filter(move |(_, request)| request.node == node && !request.node.is_empty())
    }

    /// The records of a Node's pods.
    pub(crate) fn records_on(&self, node: &str) -> impl Iterator<Item = (&Name, &RecordView)> {
        rows(&self.records, self.records_on.get(node))
    }

    /// Who uses a network, by the identity that records have of it.
    pub(crate) fn users(&self, uuid: &str) -> Users {
        let records = self.records_of.get(uuid);
        let first = rows(&self.records, records).take(Users::MAX_NAMED);
        Users {
            count: records.map_or(0, BTreeSet::len),
            first: first
                .map(|(name, record)| format!("{}/{}", name.namespace, record.pod))
                .collect(),
        }
    }

    /// The oldest other network with the same identity, if it is older than this one.
    pub(crate) fn older_with_same_uuid(&self, net: &NetworkView) -> Option<&Name> {
        let same = self.by_uuid.get(net.uuid()).into_iter().flatten();
        let own = self.age(net);
        let same = same.filter_map(|name| Some((name, self.age(self.networks.get(name)?))));
        let older = same.filter(|(_, other)| *other < own);
        let oldest = older.min_by(|(_, one), (_, other)| one.cmp(other));
        oldest.map(|(name, _)| name)
    }

    fn age(&self, net: &NetworkView) -> Age {
        let reported = matches!(net.status.phase, Some(Phase::Active | Phase::Terminating));
        Age {
            created: net.id.created.clone(),
            newcomer: !reported && self.blocks_of(&net.id.uid).next().is_none(),
            uid: net.id.uid.clone(),
        }
    }

    /// Who says that a number is theirs.
    pub(crate) fn claims(&self, number: u32) -> Option<&BTreeSet<(String, String)>> {
        self.numbers.get(&number)
    }

    /// Where a network stands among its rivals.
    pub(crate) fn precedence(&self, net: &NetworkView) -> Precedence {
        let users = self.records_of.get(net.uuid()).map_or(0, BTreeSet::len);
        let blocks = self.blocks_of.get(&net.id.uid).map_or(0, BTreeSet::len);
        Precedence {
            unsettled: !is_settled(&net.status, users, blocks),
            age: self.age(net),
        }
    }

    /// Everybody whose addresses collide with this network's, sorted. `ignore_pods`: the Nodes'
    /// podCIDRs are not used in this cluster.
    pub(crate) fn rivals(&self, name: &Name, net: &NetworkView, ignore_pods: bool) -> Vec<Rival> {
        let me = self.precedence(net);
        let mut rivals = Vec::new();
        for ours in routed(net) {
            for (theirs, owner) in self.prefixes.overlapping(ours) {
                let common = if ours.contains(&theirs) { theirs } else { ours };
                let other = match &owner {
                    AddressOwner::Network(other) if other == name => continue,
                    AddressOwner::Pods(_) if ignore_pods => continue,
                    AddressOwner::Network(other) => self
                        .networks
                        .get(other)
                        .map(|other| (self.precedence(other), self.has_blocks_in(other, common))),
                    AddressOwner::MultiNic(other) => self
                        .multi_nics
                        .get(other)
                        .map(|other| self.multi_nic_precedence(other, common)),
                    _ => None,
                };
                let other = other.as_ref().map(|(precedence, has)| (precedence, *has));
                let has = other.is_some() && self.has_blocks_in(net, common);
                rivals.push(Rival {
                    precedes: precedes(other, (&me, has)),
                    nets: (ours, theirs),
                    owner,
                });
            }
        }
        rivals.extend(self.shadowed(net));
        rivals.sort();
        rivals.dedup();
        rivals
    }

    /// What the pods of an overlay network could not reach through their first interface any more, because
    /// their interface in this network leads there too. The cluster's pods and Services come first; a
    /// hidden address of a Node is only reported.
    fn shadowed(&self, net: &NetworkView) -> Vec<Rival> {
        let each = subnets_of(net, Routing::Router)
            .into_iter()
            .flat_map(|ours| {
                let found = self.prefixes.overlapping(ours).into_iter();
                found.map(move |(theirs, owner)| (ours, theirs, owner))
            });
        let rivals = each.filter_map(|(ours, theirs, owner)| {
            let precedes = match &owner {
                AddressOwner::Pods(_) if self.default_network.is_some() => return None,
                AddressOwner::Network(other) if self.default_network.as_ref() != Some(other) => {
                    return None;
                }
                AddressOwner::Pods(_) | AddressOwner::Services(_) | AddressOwner::Network(_) => {
                    true
                }
                AddressOwner::Node(_) => false,
                // Its pods reach the API server by its Service; MultiNicNetworks are apart, too.
                AddressOwner::ApiServer(_) | AddressOwner::MultiNic(_) => return None,
            };
            Some(Rival {
                owner,
                nets: (ours, theirs),
                precedes,
            })
        });
        rivals.collect()
    }
}

impl Cache {
    fn has_blocks_in(&self, net: &NetworkView, within: IpNet) -> bool {
        let overlaps = |cidr: IpNet| within.contains(&cidr) || cidr.contains(&within);
        self.blocks_of(&net.id.uid)
            .any(|(_, block)| block.cidr.is_some_and(overlaps))
    }

    /// What the nodes that are there say of a network's blocks.
    pub(crate) fn in_use_addresses(&self, uid: &str) -> AddressesInUse {
        let there = |node: &str| self.nodes.get(&Name::new("", node)).is_some();
        let blocks = self.blocks_of(uid).filter(|(_, block)| there(&block.node));
        AddressesInUse::of(
            blocks.map(|(_, block)| (block.node.as_str(), block.allocated, block.closed)),
        )
    }
}

/// The prefixes that a network puts into the nodes' own routing tables.
pub(crate) fn routed(net: &NetworkView) -> Vec<IpNet> {
    subnets_of(net, Routing::Node)
}

/// The prefixes of a network that can be made, if that is how its addresses are led to.
fn subnets_of(net: &NetworkView, routing: Routing) -> Vec<IpNet> {
    let is_it = |spec: &&NetworkSpec| {
        let kind = spec.provider_kind();
        kind.is_some_and(|kind| kind.routing == routing) && spec.problems().0.is_empty()
    };
    let spec = net.spec.as_ref().ok().filter(is_it);
    let subnets = spec.into_iter().flat_map(|spec| spec.subnets.values());
    subnets.map(|subnet| subnet.cidr.trunc()).collect()
}

fn enqueue_now(work: &mut Work, key: Key) {
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
