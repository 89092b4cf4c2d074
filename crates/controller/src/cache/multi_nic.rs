//! What multi-NIC networks are decided from, and which change concerns which of them. There are few such networks:
//! a change of hosts or namespaces concerns all.

use super::{
    BlockView, Cache, Change, HostNicsView, MultiNicView, NadView, Name, NamespaceView,
    NetworkView, Work, enqueue_now,
};
use crate::decide::conflict::{AddressOwner, Age, Precedence, precedes};
use crate::queue::Key;
use ipnet::IpNet;
use plexus_api::objects::{BlockSpec, MultiNic, NetworkRef};
use plexus_core::multinic::{ExistingBlock, Host};
use std::time::Duration;

/// So long the controller waits after a change of hosts or blocks, so that one look covers many.
pub(crate) const GATHER: Duration = Duration::from_millis(100);

impl Cache {
    pub(super) fn multi_nic_changed(&mut self, change: Change<MultiNicView>, work: &mut Work) {
        let Change { name, old, new } = change;
        if let Some(old) = &old {
            self.multi_nic_by_uid.remove(&old.id.uid);
        }
        if let Some(new) = &new {
            self.multi_nic_by_uid
                .insert(new.id.uid.clone(), name.clone());
        }
        let (was, is) = (subnets(old.as_ref()), subnets(new.as_ref()));
        if was != is {
            self.move_prefixes(AddressOwner::MultiNic(name.clone()), &was, &is, work);
        }
        if let Some(old) = old.filter(|old| new.as_ref().is_none_or(|new| new.id.uid != old.id.uid))
        {
            enqueue_now(work, Key::MultiNicOrphans(old.id.uid));
        }
        enqueue_now(work, Key::MultiNic(name));
        // Whoever overlaps with it.
        self.all_multi_nics(GATHER, work);
    }

    pub(super) fn host_nics_changed(&self, change: &Change<HostNicsView>, work: &mut Work) {
        let nics = |view: &Option<HostNicsView>| view.as_ref().map(|view| view.nics.clone());
        if nics(&change.old) != nics(&change.new) {
            self.all_multi_nics(GATHER, work);
        }
    }

    pub(super) fn namespace_changed(&self, _: &Change<NamespaceView>, work: &mut Work) {
        self.all_multi_nics(GATHER, work);
    }

    /// A definition that was made from a multi-NIC network, or has the name of one.
    pub(super) fn definition_changed(&self, change: &Change<NadView>, work: &mut Work) {
        let name = Name::new("", &change.name.name);
        if self.multi_nics.get(&name).is_some() {
            work.push((Key::MultiNic(name), GATHER));
        }
    }

    /// A block that is for a NIC.
    pub(super) fn nic_block_changed(&self, block: &BlockView, work: &mut Work) {
        match self.multi_nic_by_uid.get(&block.network) {
            Some(name) => work.push((Key::MultiNic(name.clone()), GATHER)),
            None => enqueue_now(work, Key::MultiNicOrphans(block.network.clone())),
        }
    }

    pub(super) fn all_multi_nics(&self, delay: Duration, work: &mut Work) {
        let all = self.multi_nics.iter();
        work.extend(all.map(|(name, _)| (Key::MultiNic(name.clone()), delay)));
    }

    /// The hosts whose Node is there and whose NICs are known. `going`: as if none had a NIC, and all Nodes.
    pub(crate) fn hosts(&self, going: bool) -> Vec<Host> {
        let hosts = self.nodes.iter().filter_map(|(name, node)| {
            let nics = match self.host_nics.get(name) {
                Some(view) if !going => view.nics.clone(),
                Some(_) => Vec::new(),
                None if going => Vec::new(),
                None => return None,
            };
            Some(Host {
                created: node.id.created.clone(),
                name: name.name.clone(),
                uid: node.id.uid.clone(),
                nics,
            })
        });
        hosts.collect()
    }

    /// Of how many hosts there is a HostInterface, and how many of these have a NIC.
    pub(crate) fn count_hosts(&self) -> (u64, u64) {
        let with_nics = self
            .host_nics
            .iter()
            .filter(|(_, host)| !host.nics.is_empty());
        (self.host_nics.len() as u64, with_nics.count() as u64)
    }

    /// The Blocks of a multi-NIC network. One without a NIC is somebody's mistake, or worse, and nobody's.
    pub(crate) fn nic_blocks(&self, name: &str, uid: &str) -> Vec<ExistingBlock> {
        let blocks = self.blocks_of(uid).filter_map(|(_, block)| {
            Some(ExistingBlock {
                spec: BlockSpec {
                    network: NetworkRef {
                        namespace: String::new(),
                        name: name.to_owned(),
                        uuid: uid.to_owned(),
                    },
                    cidr: block.cidr?,
                    node: block.node.clone(),
                    node_uid: block.node_uid.clone(),
                    nic: Some(block.nic.clone()?),
                },
                allocated: block.allocated,
                closed: block.closed,
                untouched: block.untouched,
            })
        });
        blocks.collect()
    }

    /// Who had addresses of this network's subnets before it, sorted.
    pub(crate) fn multi_nic_rivals(
        &self,
        name: &Name,
        view: &MultiNicView,
        meaning: &MultiNic,
    ) -> Vec<String> {
        let own = (&view.id.created, &view.id.uid);
        let meets = |one: &IpNet| {
            let mut ours = meaning.subnets.iter();
            ours.any(|net| net.contains(one) || one.contains(net))
        };
        let mut rivals: Vec<String> = Vec::new();
        for (other, rival) in self.multi_nics.iter().filter(|(other, _)| *other != name) {
            let theirs = rival
                .spec
                .as_ref()
                .ok()
                .and_then(|spec| spec.meaning().ok());
            let overlap = theirs.and_then(|theirs| theirs.subnets.into_iter().find(&meets));
            if let Some(net) = overlap.filter(|_| (&rival.id.created, &rival.id.uid) < own) {
                rivals.push(format!("{net} of MultiNicNetwork {other}"));
            }
        }
        for subnet in &meaning.subnets {
            for (net, owner) in self.prefixes.overlapping(*subnet) {
                let common = if subnet.contains(&net) { net } else { *subnet };
                let is_rival = match &owner {
                    // Where Plexus is the cluster's own network, Nodes' podCIDRs mean nothing.
                    AddressOwner::Pods(_) => self.default_network.is_none(),
                    // They were asked above.
                    AddressOwner::MultiNic(_) => false,
                    AddressOwner::Network(name) => {
                        let rival = self.networks.get(name);
                        rival.is_none_or(|rival| self.has_addresses_before(rival, view, common))
                    }
                    _ => true,
                };
                if is_rival {
                    rivals.push(format!("{net} ({owner})"));
                }
            }
        }
        rivals.sort();
        rivals.dedup();
        rivals
    }

    /// Where a multi-NIC network stands among its rivals, and whether nodes have blocks of these addresses.
    pub(super) fn multi_nic_precedence(
        &self,
        view: &MultiNicView,
        within: IpNet,
    ) -> (Precedence, bool) {
        let blocks = || {
            let all = self.blocks_of(&view.id.uid);
            all.filter(|(_, block)| block.nic.is_some())
        };
        let newcomer = blocks().next().is_none();
        let precedence = Precedence {
            unsettled: newcomer,
            age: Age {
                created: view.id.created.clone(),
                newcomer,
                uid: view.id.uid.clone(),
            },
        };
        let meets = |cidr: IpNet| within.contains(&cidr) || cidr.contains(&within);
        let has = blocks().any(|(_, block)| block.cidr.is_some_and(meets));
        (precedence, has)
    }

    /// Whether these addresses are the Network's. [`Cache::rivals`] decides the same from the other side.
    fn has_addresses_before(
        &self,
        rival: &NetworkView,
        view: &MultiNicView,
        within: IpNet,
    ) -> bool {
        let (own, has) = self.multi_nic_precedence(view, within);
        let theirs = self.precedence(rival);
        let rival = (&theirs, self.has_blocks_in(rival, within));
        precedes(Some(rival), (&own, has))
    }

    /// The namespaces where a network can be used and its definitions are: those that it names and that are there, else
    /// all.
    pub(crate) fn namespaces_of(&self, view: &MultiNicView) -> Vec<String> {
        let named = view.spec.as_ref().map(|spec| spec.namespaces.as_slice());
        let named = named.unwrap_or_default();
        let there = self.namespaces.iter().filter(|(name, namespace)| {
            !namespace.id.deleting && (named.is_empty() || named.contains(&name.name))
        });
        there.map(|(name, _)| name.name.clone()).collect()
    }
}

/// The subnets of a network that can be made.
fn subnets(view: Option<&MultiNicView>) -> Vec<IpNet> {
    let spec = view.and_then(|view| view.spec.as_ref().ok());
    let meaning = spec.and_then(|spec| spec.meaning().ok());
    meaning.map(|meaning| meaning.subnets).unwrap_or_default()
}

#[cfg(test)]
#[path = "multi_nic_tests.rs"]
mod tests;
