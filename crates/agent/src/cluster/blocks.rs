//! The blocks that are this node's: kept on disk too, so that they can be told from those that
//! somebody else made after the API was restored from a backup.
//!
//! One that vanished from the API while it is in use is made again; one that is another node's now
//! is lost. Nothing is issued from one that the API does not say is this very Node's.

use super::create::{Created, create};
use super::disk::Disk;
use super::kept;
use super::kept::BlockSeen;
use super::kinds::Blocks;
use super::report::{Change, LostBlock, Subject};
use super::shared::{MANAGER, Shared, code, said};
use super::state::State;
use super::watch;
use super::wire::BlockWire;
use ipnet::IpNet;
use kube::Api;
use kube::api::{Patch, PatchParams};
use plexus_api::objects::BlockSpec;
use plexus_faults::effect;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The rows of our own blocks on disk.
const OWN: &str = "own-block";
/// What was claimed so recently is in use, though no address may be journaled yet.
const YOUNG: Duration = Duration::from_secs(60);
/// An ADD that found its network before that was deleted has its address by then.
const CLOSING: Duration = Duration::from_secs(2);
/// How often something that failed is tried again, and how often usage is written.
const AGAIN: Duration = Duration::from_secs(5);

/// This node's blocks.
#[derive(Default)]
pub(super) struct OwnBlocks {
    known: Mutex<Known>,
    look: Notify,
    used: AtomicBool,
}

#[derive(Default)]
struct Known {
    own: BTreeMap<String, BlockSpec>,
    claimed: BTreeMap<String, Instant>,
    /// Since when we know that the API does not have it and nobody uses it.
    unused: BTreeMap<String, Instant>,
    lost: BTreeMap<String, LostBlock>,
    /// Since when we know that a network is being deleted, by its UID.
    closing: BTreeMap<String, Instant>,
}

impl OwnBlocks {
    pub(super) fn load(disk: &Disk) -> Self {
        let rows = disk.rows(OWN).into_iter();
        let own = rows.filter_map(|(name, body)| Some((name, serde_json::from_str(&body).ok()?)));
        let known = Known {
            own: own.collect(),
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
        let issues = |name: &String| {
            let there = state.blocks.objects.get(name);
            there.is_some_and(|block| {
                block.spec.node == node
                    && block.spec.node_uid == here.uid
                    && !block.unreadable
                    && (!block.is_part || state.is_granted(&block.spec))
            })
        };
        let known = self.known();
        let own = known.own.iter();
        own.filter(|(name, spec)| {
            spec.network.uuid == network_uid && !known.lost.contains_key(*name) && issues(name)
        })
        .map(|(_, spec)| spec.cidr)
        .collect()
    }

    /// Parts of ours that are blocks of their own, or will be.
    pub(super) fn apart(&self, state: &State, network_uid: &str) -> Vec<IpNet> {
        let known = self.known();
        let own = known.own.iter();
        let own = own.filter(|(_, spec)| spec.network.uuid == network_uid);
        let mut apart = BTreeSet::new();
        for (name, spec) in own {
            let there = state.blocks.objects.get(name).into_iter();
            apart.extend(there.flat_map(|block| block.given.iter().map(|gift| gift.cidr)));
            let inside = state.inside(network_uid, &spec.cidr);
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

    pub(super) fn lost(&self) -> Vec<LostBlock> {
        self.known().lost.values().cloned().collect()
    }

    /// Something may have to be made again.
    pub(super) fn look(&self) {
        self.look.notify_one();
    }

    /// Addresses were taken or freed.
    pub(super) fn touched(&self) {
        self.used.store(true, SeqCst);
    }

    /// Whether nothing is issued from a network's blocks any more, for good; and whether that is about to
    /// be so.
    fn closes(&self, state: &State, network_uid: &str) -> (bool, bool) {
        let network = state.network_by_uid(network_uid);
        let deleted = network.is_none_or(|network| kept::is_terminating(&network));
        let mut known = self.known();
        if !deleted {
            known.closing.remove(network_uid);
            return (false, false);
        }
        let since = known.closing.entry(network_uid.to_owned());
        let over = since.or_insert_with(Instant::now).elapsed() >= CLOSING;
        (over, !over)
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

    /// What the watch saw.
    pub(super) fn seen(
        &self,
        shared: &Shared,
        name: &str,
        before: Option<&Arc<BlockSeen>>,
        after: Option<&Arc<BlockSeen>>,
    ) {
        let is_own = self.known().own.contains_key(name);
        match after {
            Some(block) if is_own && block.spec.node != shared.options.node => {
                // Whether anybody here uses it is asked there.
                self.look();
            }
            Some(block) if block.spec.node == shared.options.node => {
                self.known().lost.remove(name);
                let changed = before.is_none_or(|before| before.spec != block.spec);
                if changed && !is_own {
                    self.adopt(shared);
                }
            }
            None if is_own => self.look(),
            _ => {}
        }
    }

    /// Blocks that the API says are ours are.
    pub(super) fn adopt(&self, shared: &Shared) {
        let mine: Vec<(String, BlockSpec)> = {
            let state = shared.state();
            let Some(node) = state.nodes.get(&shared.options.node) else {
                return;
            };
            let blocks = state.blocks.objects.iter();
            let mine = blocks.filter(|(_, block)| {
                block.spec.node == shared.options.node && block.spec.node_uid == node.uid
            });
            mine.map(|(name, block)| (name.clone(), block.spec.clone()))
                .collect()
        };
        for (name, spec) in mine {
            self.add(shared, &name, &spec);
        }
    }

    fn add(&self, shared: &Shared, name: &str, spec: &BlockSpec) {
        let before = self.known().own.insert(name.to_owned(), spec.clone());
        if before.as_ref() != Some(spec) {
            shared.disk.put(OWN, name, serde_json::to_string(spec).ok());
        }
    }

    fn drop(&self, shared: &Shared, name: &str) {
        let mut known = self.known();
        known.own.remove(name);
        known.lost.remove(name);
        known.claimed.remove(name);
        known.unused.remove(name);
        shared.disk.put(OWN, name, None);
    }

    fn lose(&self, shared: &Shared, name: &str, theirs: &BlockSpec) {
        let lost = LostBlock {
            network_uid: theirs.network.uuid.clone(),
            cidr: theirs.cidr,
            owner: theirs.node.clone(),
        };
        if self.known().lost.insert(name.to_owned(), lost).is_some() {
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

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps our blocks in the API, and says how full they are. Never ends.
pub(super) async fn keep(shared: Arc<Shared>) {
    let mut again = true;
    let mut written: Option<Instant> = None;
    loop {
        let looked = tokio::time::timeout(AGAIN, shared.blocks.look.notified()).await;
        if looked.is_ok() || again {
            again = !restore(&shared).await;
        }
        let rested = written.is_none_or(|at| at.elapsed() >= AGAIN);
        if rested && shared.blocks.used.swap(false, SeqCst) {
            written = Some(Instant::now());
            if !write_usage(&shared).await {
                shared.blocks.touched();
            }
        }
    }
}

/// Whether nothing is left to do.
async fn restore(shared: &Shared) -> bool {
    let (uid, live) = {
        let state = shared.state();
        let node = state.nodes.get(&shared.options.node);
        let live = state.blocks.live && state.networks.live && state.nodes.live;
        (node.map(|node| node.uid.clone()), live)
    };
    let (Some(uid), true) = (uid, live) else {
        return false;
    };
    shared.blocks.adopt(shared);
    let own: Vec<_> = {
        let known = shared.blocks.known();
        let kept = known.own.iter();
        kept.map(|(name, spec)| (name.clone(), spec.clone()))
            .collect()
    };
    let mut done = true;
    for (name, spec) in own {
        let there = shared.state().blocks.get(&name);
        let result = match there {
            Some(block) if block.spec.node != spec.node => {
                theirs(shared, &name, &spec, &block.spec);
                Ok(true)
            }
            // This machine's, by its disk, and of an earlier Node of its name: it was registered
            // again. Nothing is issued from it until the API says that it is the new Node's.
            Some(block) if block.spec.node_uid != uid => take_over(shared, &name, &uid).await,
            Some(_) => {
                shared.blocks.known().unused.remove(&name);
                Ok(true)
            }
            None => missing(shared, &name, &spec, &uid).await,
        };
        match result {
            Ok(settled) => done &= settled,
            Err(error) => {
                tracing::warn!(block = name, error = said(&error), "cannot restore a block");
                done = false;
            }
        }
    }
    done
}

/// A block of ours gets the UID that our Node has now. If the controller was faster in returning it, it
/// is missing the next time.
async fn take_over(shared: &Shared, name: &str, uid: &str) -> kube::Result<bool> {
    let api: Api<BlockWire> = Api::all(shared.client.clone());
    let how = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patch = json!({"spec": {"nodeUID": uid}});
    match api.patch(name, &how, &Patch::Merge(patch)).await {
        Ok(block) => {
            tracing::info!(
                block = name,
                uid,
                "a block of this machine's earlier Node is taken over"
            );
            watch::take::<Blocks>(shared, block);
            Ok(true)
        }
        Err(error) if code(&error) == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A block of ours is another node's in the API.
fn theirs(shared: &Shared, name: &str, spec: &BlockSpec, theirs: &BlockSpec) {
    if is_used(shared, name, spec) {
        shared.blocks.lose(shared, name, theirs);
    } else {
        tracing::info!(block = name, cidr = %spec.cidr, owner = theirs.node, "a block that nobody here uses is another node's: forgotten");
        shared.blocks.drop(shared, name);
    }
}

/// A block of ours is not in the API. Whether it is settled.
async fn missing(
    shared: &Shared,
    name: &str,
    spec: &BlockSpec,
    node_uid: &str,
) -> kube::Result<bool> {
    let network = shared.state().network_by_uid(&spec.network.uuid);
    if !is_used(shared, name, spec) {
        return Ok(forget_later(shared, name, spec));
    }
    shared.blocks.known().unused.remove(name);
    if network.is_none() {
        tracing::warn!(block = name, cidr = %spec.cidr, "pods use a block of a network that is no longer in the API");
        return Ok(true);
    }
    let again = BlockSpec {
        node_uid: node_uid.to_owned(),
        ..spec.clone()
    };
    match create(shared, &again).await? {
        Created::Ours => {
            tracing::warn!(block = name, cidr = %spec.cidr, "a block was missing in the API: it is there again");
            shared.blocks.add(shared, name, &again);
            shared.blocks.touched();
        }
        // The watch will bring it, and what is around it.
        Created::Unclear => return Ok(false),
        Created::Theirs(_) => {
            let found = shared.state().blocks.get(name);
            if let Some(found) = found.filter(|found| found.spec.node != spec.node) {
                shared.blocks.lose(shared, name, &found.spec);
            }
        }
    }
    Ok(true)
}

/// Forgets a block that stayed unused for a while after nothing was issued from it any more: an ADD
/// that had chosen it before has its address by then. Whether it is forgotten.
fn forget_later(shared: &Shared, name: &str, spec: &BlockSpec) -> bool {
    let since = {
        let mut known = shared.blocks.known();
        let since = known.unused.entry(name.to_owned());
        *since.or_insert_with(Instant::now)
    };
    let over = since.elapsed() >= YOUNG;
    if over {
        tracing::info!(block = name, cidr = %spec.cidr, "a block that nobody uses is gone from the API: forgotten");
        shared.blocks.drop(shared, name);
    }
    over
}

/// Whether everything was written.
async fn write_usage(shared: &Shared) -> bool {
    let Some(usage) = shared.hooks.usage() else {
        return false;
    };
    let api: Api<BlockWire> = Api::all(shared.client.clone());
    let how = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let mut done = true;
    for used in usage {
        let name = BlockSpec::name(&used.network_uid, &used.cidr);
        let there = shared.state().blocks.get(&name);
        let Some(block) = there.filter(|block| block.spec.node == shared.options.node) else {
            continue;
        };
        let (closed, closing) = shared.blocks.closes(&shared.state(), &used.network_uid);
        done &= !closing;
        if (block.allocated, block.closed) == (used.allocated, closed) {
            continue;
        }
        let patch = json!({"status": {"allocated": used.allocated, "closed": closed}});
        match api.patch_status(&name, &how, &Patch::Merge(patch)).await {
            Ok(block) => watch::take::<Blocks>(shared, block),
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => {
                tracing::debug!(
                    block = name,
                    error = said(&error),
                    "cannot say how full a block is"
                );
                done = false;
            }
        }
    }
    done
}

/// As it is now; not knowing counts as use.
fn is_used(shared: &Shared, name: &str, spec: &BlockSpec) -> bool {
    let claimed = shared.blocks.known().claimed.get(name).copied();
    let young = claimed.is_some_and(|at| at.elapsed() < YOUNG);
    young || shared.hooks.in_use(&spec.network.uuid, spec.cidr) != Some(false)
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
