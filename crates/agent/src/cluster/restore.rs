//! Keeps this node's blocks true in the API: one that vanished while it is in use is made again, one that
//! is another node's now is lost, one whose claim was cut short is settled before it is used. Says how
//! full they are.

use super::api::{self, code, error_text, within};
use super::blocks::Closing;
use super::cached::CachedBlock;
use super::create::{self, Created};
use super::kinds::Blocks;
use super::shared::Shared;
use super::watch;
use super::wire::BlockWire;
use crate::background::async_task::{Woken, Work};
use crate::background::progress::{Next, Reason};
use plexus_api::objects::BlockSpec;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// What was claimed so recently is in use, though no address may be journaled yet.
pub(super) const YOUNG: Duration = Duration::from_secs(60);
/// How often something that failed is tried again, and how often usage is written.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Keeps our blocks in the API, and says how full they are.
pub(super) struct Restore {
    shared: Arc<Shared>,
    /// Something was left to do.
    again: bool,
    written: Option<Instant>,
}

impl Restore {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            again: true,
            written: None,
        }
    }
}

impl Work for Restore {
    async fn woken(&self) -> Woken {
        Woken::by(&self.shared.blocks.look).await
    }

    async fn pass(&mut self, reason: Reason) -> Result<Next, String> {
        let shared = &self.shared;
        if reason == Reason::Woken || self.again {
            self.again = !restore(shared).await;
        }
        let rested = self.written.is_none_or(|at| at.elapsed() >= RETRY_INTERVAL);
        let rested = rested || shared.blocks.urgent.swap(false, SeqCst);
        if rested && shared.blocks.used.swap(false, SeqCst) {
            self.written = Some(Instant::now());
            if !write_usage(shared).await {
                shared.blocks.touched();
            }
        }
        Ok(Next::After(RETRY_INTERVAL))
    }
}

/// Whether nothing is left to do.
pub(super) async fn restore(shared: &Shared) -> bool {
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
    let own = shared.blocks.known().own.clone();
    let mut done = true;
    for (name, spec) in own {
        shared.tasks.blocks.step(format!("restoring block {name}"));
        let there = shared.state().blocks.get(&name);
        let result = match there {
            Some(block) if block.spec.node != spec.node => {
                theirs(shared, &name, &spec, &block.spec);
                Ok(true)
            }
            // The controller gives the new Node blocks of its own.
            Some(block) if block.spec.node_uid != uid && spec.nic.is_some() => Ok(true),
            // This machine's, by its disk, and of an earlier Node of its name: it was registered
            // again. Nothing is issued from it until the API says that it is the new Node's.
            Some(block) if block.spec.node_uid != uid => {
                take_over(shared, &name, &block.uid, &uid).await
            }
            Some(block) => {
                shared.blocks.known().unused.remove(&name);
                settle(shared, &name, &block).await
            }
            None => missing(shared, &name, &spec, &uid).await,
        };
        match result {
            Ok(settled) => done &= settled,
            Err(error) => {
                tracing::warn!(
                    block = name,
                    error = error_text(&error),
                    "cannot restore a block"
                );
                shared.tasks.blocks.failed();
                done = false;
            }
        }
    }
    done
}

/// A block of ours gets the UID that our Node has now. If the controller was faster in returning it, it
/// is missing the next time.
async fn take_over(
    shared: &Shared,
    name: &str,
    object: &str,
    node_uid: &str,
) -> kube::Result<bool> {
    let blocks = api::all::<BlockWire>(&shared.client);
    let patch = json!({"metadata": {"uid": object}, "spec": {"nodeUID": node_uid}});
    match within(api::merge(&blocks, name, patch)).await {
        Ok(block) => {
            tracing::info!(
                block = name,
                node_uid,
                "a block of this machine's earlier Node is taken over"
            );
            watch::take::<Blocks>(shared, block);
            Ok(true)
        }
        // Gone, or another of its name.
        Err(error) if matches!(code(&error), Some(404 | 409)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Looks at what is around and inside a block of ours, if whoever made it did not get to it. A part that
/// is not given is left alone: whether it is settled.
async fn settle(shared: &Shared, name: &str, block: &CachedBlock) -> kube::Result<bool> {
    if shared.blocks.is_settled(name, &block.uid) {
        return Ok(true);
    }
    let spec = &block.spec;
    if spec.nic.is_some() {
        // The controller assigned it, and knows what is around it.
        shared.blocks.settled(shared, name, &block.uid);
        return Ok(true);
    }
    let offered = {
        let (state, uid) = (shared.state(), &spec.network.uuid);
        let whole = state.whole_block(uid, &spec.cidr);
        let enclosing_block = state.enclosing_block(uid, &spec.cidr);
        whole == Some(spec.cidr) || enclosing_block.is_some_and(|a| a.gives(&spec.cidr, &spec.node))
    };
    if !offered || shared.blocks.is_making(name) {
        return Ok(false);
    }
    let settled = create::settle(shared, spec, &block.uid).await?;
    Ok(matches!(settled, Created::Ours))
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
        tracing::warn!(block = name, cidr = %spec.cidr, "pods use a block that is no longer in the API, and nor is a Network of it");
        return Ok(true);
    }
    let again = BlockSpec {
        node_uid: node_uid.to_owned(),
        ..spec.clone()
    };
    match create::create(shared, &again).await? {
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

pub(super) async fn write_usage(shared: &Shared) -> bool {
    let Some(usage) = shared.hooks.usage() else {
        return false;
    };
    let blocks = api::all::<BlockWire>(&shared.client);
    let mut done = true;
    for used in usage {
        let name = BlockSpec::name(&used.network_uid, &used.cidr);
        let there = shared.state().blocks.get(&name);
        let Some(block) = there.filter(|block| block.spec.node == shared.options.node) else {
            continue;
        };
        let closing = shared.blocks.closing(&shared.state(), &name, &block);
        done &= closing != Closing::Soon;
        let closed = closing == Closing::Closed;
        let is_said = (block.allocated, block.closed) == (used.allocated, closed);
        if is_said && !block.is_new_on_nic() {
            continue;
        }
        let step = format!("saying how full block {name} is");
        shared.tasks.blocks.step(step);
        let status = json!({"allocated": used.allocated, "closed": closed});
        let patch = json!({"metadata": {"uid": block.uid}, "status": status});
        match within(api::merge_status(&blocks, &name, patch)).await {
            Ok(block) => watch::take::<Blocks>(shared, block),
            // Gone, or another of its name: the watch will say so.
            Err(error) if matches!(code(&error), Some(404 | 409)) => {}
            Err(error) => {
                tracing::debug!(
                    block = name,
                    error = error_text(&error),
                    "cannot say how full a block is"
                );
                shared.tasks.blocks.failed();
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
