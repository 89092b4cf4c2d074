//! The blocks that are this node's: kept on disk too, so that they can be told from those that
//! somebody else made after the API was restored from a backup.
//!
//! Nothing is issued from one that the API does not say is this very Node's, nor from one that is not
//! settled: that very object was looked at, and what is around and inside it, since it was made. Keeping
//! them true in the API is [`restore`](super::restore)'s.

use super::cached::CachedBlock;
use super::disk::Disk;
use super::kinds::Edit;
use super::report::{Change, Subject};
use super::shared::Shared;
use super::state::State;
use ipnet::IpNet;
use plexus_api::objects::BlockSpec;
use plexus_faults::effect;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The rows of our own blocks on disk.
const OWN: &str = "own-block";
/// Which of them are settled: the UIDs of their objects.
const SETTLED: &str = "settled-block";
/// An ADD that found its network before that was deleted has its address by then.
const CLOSING_DELAY: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct OwnBlocks {
    known: Mutex<Known>,
    pub(super) look: Notify,
    pub(super) used: AtomicBool,
    /// Somebody waits for what is to be said of how full they are.
    pub(super) urgent: AtomicBool,
}

#[derive(Default)]
pub(super) struct Known {
    pub(super) own: BTreeMap<String, BlockSpec>,
    /// UIDs of those objects that are settled.
    settled: BTreeMap<String, String>,
    /// Those that are being made and settled right now.
    making: BTreeSet<String>,
    pub(super) claimed: BTreeMap<String, Instant>,
    /// Since when we know that the API does not have it and nobody uses it.
    pub(super) unused: BTreeMap<String, Instant>,
    /// Those that are another's in the API, though pods here use them, with their owners there.
    pub(super) lost: BTreeMap<String, String>,
    /// Since when we know that a network is being deleted, by its UID, or that a block is retired, by its name.
    closing: BTreeMap<String, Instant>,
}

/// How far the end of a deleted network is on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    No,
    /// Addresses of it may still be issued by ADDs that are on their way.
    Soon,
    /// Nothing is issued from its blocks any more.
    Closed,
}

impl OwnBlocks {
    pub(super) fn load(disk: &Disk) -> Self {
        let rows = disk.rows(OWN).into_iter();
        let own = rows.filter_map(|(name, body)| Some((name, serde_json::from_str(&body).ok()?)));
        let known = Known {
            own: own.collect(),
            settled: disk.rows(SETTLED).into_iter().collect(),
            ..Known::default()
        };
        Self {
            known: Mutex::new(known),
            ..Self::default()
        }
    }

    /// Those of a network from which addresses may be issued: the API, or with the API away the
    /// disk, says that they belong to this node and to no earlier Node of its name. One that is
    /// missing there may be another's any moment.
    pub(super) fn of(&self, state: &State, node: &str, network_uid: &str) -> Vec<IpNet> {
        let Some(here) = state.nodes.get(node) else {
            return Vec::new();
        };
        let known = self.known();
        let of_network = known.own.iter().filter(|(name, spec)| {
            spec.network.uuid == network_uid && !known.lost.contains_key(*name)
        });
        let own = of_network.filter(|(name, _)| {
            let there = state.blocks.objects.get(*name);
            there.is_some_and(|block| {
                !block.is_retired()
                    && !block.is_new_on_nic()
                    && block.spec.node == node
                    && block.spec.node_uid == here.uid
                    && !block.unreadable
                    && known.settled.get(*name) == Some(&block.uid)
                    && state.is_legal(&block.spec)
            })
        });
        own.map(|(_, spec)| spec.cidr).collect()
    }

    /// Parts of ours that are blocks of their own, or will be. What others merely say is in ours is not.
    pub(super) fn apart(&self, state: &State, network_uid: &str) -> Vec<IpNet> {
        let known = self.known();
        let own = known.own.iter();
        let own = own.filter(|(_, spec)| spec.network.uuid == network_uid);
        let mut apart = BTreeSet::new();
        for (name, spec) in own {
            let there = state.blocks.objects.get(name).into_iter();
            apart.extend(there.flat_map(|block| block.given.iter().map(|donated| donated.cidr)));
            let inside = state.inside(network_uid, &spec.cidr);
            let inside = inside.filter(|block| state.is_legal(&block.spec));
            apart.extend(inside.map(|block| block.spec.cidr));
        }
        apart.into_iter().collect()
    }

    /// All that are or were ours, whoever has them in the API, by their network's UID.
    pub(super) fn all(&self, state: &State, node: &str) -> BTreeSet<(String, IpNet)> {
        let there = state.blocks.objects.values().map(|block| &block.spec);
        let there = there.filter(|spec| spec.node == node);
        let known = self.known();
        let all = known.own.values().chain(there);
        all.map(|spec| (spec.network.uuid.clone(), spec.cidr))
            .collect()
    }

    /// Something may have to be made again.
    pub(super) fn look(&self) {
        self.look.notify_one();
    }

    /// Addresses were taken or freed.
    pub(super) fn touched(&self) {
        self.used.store(true, SeqCst);
    }

    /// How far the end of a block is, whose network may have been deleted.
    pub(super) fn closing(&self, state: &State, name: &str, block: &CachedBlock) -> Closing {
        let network_uid = &block.spec.network.uuid;
        let (deleted, what) = match block.is_retired() {
            true => (true, name),
            false => (state.is_closing(network_uid), network_uid.as_str()),
        };
        let mut known = self.known();
        if !deleted {
            known.closing.remove(network_uid);
            known.closing.remove(name);
            return Closing::No;
        }
        let since = known.closing.entry(what.to_owned());
        match since.or_insert_with(Instant::now).elapsed() >= CLOSING_DELAY {
            true => Closing::Closed,
            false => Closing::Soon,
        }
    }

    /// A block was claimed: it is on disk before an address of it is used.
    pub(super) fn claimed(&self, shared: &Shared, name: &str, spec: &BlockSpec) {
        self.known().claimed.insert(name.to_owned(), Instant::now());
        self.add(shared, name, spec);
        effect("cache.block<");
        shared.disk.flush();
        effect("cache.block>");
        // If its network is being deleted by now, that waits until it is said that nothing is issued from it.
        self.touched();
    }

    /// Whoever makes a block of that name settles it too, as long as this is there.
    pub(super) fn making(&self, name: &str) -> Making<'_> {
        self.known().making.insert(name.to_owned());
        Making {
            blocks: self,
            name: name.to_owned(),
        }
    }

    pub(super) fn is_making(&self, name: &str) -> bool {
        self.known().making.contains(name)
    }

    /// What is around and inside that very object is known, and nobody can be robbed by using it.
    pub(super) fn settled(&self, shared: &Shared, name: &str, uid: &str) {
        let mut known = self.known();
        known.settled.insert(name.to_owned(), uid.to_owned());
        shared.disk.put(SETTLED, name, Some(uid.to_owned()));
    }

    pub(super) fn is_settled(&self, name: &str, uid: &str) -> bool {
        self.known().settled.get(name).is_some_and(|one| one == uid)
    }

    pub(super) fn seen(&self, shared: &Shared, edit: &Edit<'_, CachedBlock>) {
        let is_own = self.known().own.contains_key(edit.key);
        match edit.after {
            Some(block) if block.spec.node == shared.options.node => {
                self.known().lost.remove(edit.key);
                let changed = edit.before.is_none_or(|before| before.spec != block.spec);
                if block.spec.nic.is_some() {
                    // Pods wait for it, and the controller for what is said of it.
                    shared.changes.note();
                    self.touched();
                    self.urgent.store(true, SeqCst);
                    self.look();
                }
                if changed && (!is_own || block.spec.nic.is_some()) {
                    self.adopt(shared);
                    // If nobody is about to settle it, somebody must.
                    self.look();
                }
            }
            // It is gone, or another node's: whether anybody here uses it is asked there.
            _ if is_own => self.look(),
            _ => {}
        }
    }

    /// Blocks that the API says are ours are.
    pub(super) fn adopt(&self, shared: &Shared) {
        let state = shared.state();
        let Some(here) = state.nodes.get(&shared.options.node) else {
            return;
        };
        for (name, block) in &state.blocks.objects {
            let spec = &block.spec;
            if spec.node == shared.options.node && spec.node_uid == here.uid {
                self.add(shared, name, spec);
                if spec.nic.is_some() {
                    // The controller assigned it, and knows what is around it.
                    self.settled(shared, name, &block.uid);
                }
            }
        }
    }

    pub(super) fn add(&self, shared: &Shared, name: &str, spec: &BlockSpec) {
        let before = self.known().own.insert(name.to_owned(), spec.clone());
        if before.as_ref() != Some(spec) {
            shared.disk.put(OWN, name, serde_json::to_string(spec).ok());
        }
    }

    pub(super) fn drop(&self, shared: &Shared, name: &str) {
        let mut known = self.known();
        known.own.remove(name);
        known.lost.remove(name);
        known.claimed.remove(name);
        known.unused.remove(name);
        known.settled.remove(name);
        known.closing.remove(name);
        shared.disk.put(OWN, name, None);
        shared.disk.put(SETTLED, name, None);
    }

    pub(super) fn lose(&self, shared: &Shared, name: &str, theirs: &BlockSpec) {
        let (key, owner) = (name.to_owned(), theirs.node.clone());
        let before = self.known().lost.insert(key, owner);
        if before.is_some() {
            return;
        }
        let text = format!(
            "block {} of network {}/{} belongs to node {} in the API, but pods of node {} use it: nothing more is issued from it there; was the API server restored from a backup? restart those pods",
            theirs.cidr,
            theirs.network.namespace,
            theirs.network.name,
            theirs.node,
            shared.options.node
        );
        tracing::error!(block = name, "{text}");
        let network = shared.state().network_by_uid(&theirs.network.uuid);
        if let Some(network) = network {
            let subject = Subject::network(&network);
            shared.events.push(subject, "BlockLost", &text);
        }
        shared.notify(&[Change::Fabric]);
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`OwnBlocks::making`].
pub(super) struct Making<'a> {
    blocks: &'a OwnBlocks,
    name: String,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.blocks.known().making.remove(&self.name);
        // It may have been cut short.
        self.blocks.look();
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
