//! Makes a block: the object's name says which addresses it has, so that a conflict means that they are
//! somebody's. A part of a block has another name than the block: whoever makes one looks around
//! before using it, and so does whoever makes the other. One of the two sees the other.
//!
//! ```text
//!   a block:  create ──► list the parts in it ──► they are holes ──► settled: use it
//!   a part:   create ──► get the block around it ──► still given? ──► settled: use it
//! ```
//! A hole in which this node has addresses in use, other than those that the hole's owner gave it, was never
//! given: it stays nobody's. Where this is cut short, [`restore`](super::restore) does the rest before
//! anything is issued.

use super::api::{self, within};
use super::cached::{self, CachedBlock};
use super::donations;
use super::kinds::Blocks;
use super::report::RecordOutcome;
use super::shared::Shared;
use super::state::State;
use super::watch;
use super::wire::BlockWire;
use ipnet::IpNet;
use kube::api::ListParams;
use plexus_api::objects::{BlockSpec, FROM_LABEL, NETWORK_LABEL, NODE_LABEL};
use plexus_core::ipam::{Donation, superseded};
use plexus_faults::effect;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

const LIST_TIMEOUT: Duration = Duration::from_secs(8);

pub(super) enum Created {
    /// It is ours, now or already.
    Ours,
    /// It is ours by name, but what is around it does not say so, or cannot be seen.
    Unclear,
    Theirs(String),
}

/// Creates a block, or finds whose it is.
pub(super) async fn create(shared: &Shared, spec: &BlockSpec) -> kube::Result<Created> {
    let name = BlockSpec::name(&spec.network.uuid, &spec.cidr);
    let mut labels = json!({NODE_LABEL: spec.node, NETWORK_LABEL: spec.network.uuid});
    {
        let (state, uid) = (shared.state(), &spec.network.uuid);
        let Some(whole) = state.whole_block(uid, &spec.cidr) else {
            return Ok(Created::Unclear);
        };
        if whole != spec.cidr {
            let around = state.enclosing_block(uid, &spec.cidr);
            // For people, and to be found among all blocks.
            labels[FROM_LABEL] = json!(around.map_or(&*spec.node, |around| around.node));
        }
    }
    let block = api::object::<BlockWire>(json!({"name": name, "labels": labels}), spec);
    let _making = shared.blocks.making(&name);
    effect("api.block<");
    let made = within(api::create::<BlockWire>(&shared.client, &block)).await;
    effect("api.block>");
    let made = match made {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            within(api::all::<BlockWire>(&shared.client).get(&name)).await?
        }
        other => other?,
    };
    let Some(seen) = cached::block(&made) else {
        return Ok(Created::Theirs("(unknown)".to_owned()));
    };
    watch::take::<Blocks>(shared, made);
    let ours = seen.spec.node == spec.node && seen.spec.node_uid == spec.node_uid;
    match ours {
        true => settle(shared, spec, &seen.uid).await,
        false => Ok(Created::Theirs(seen.spec.node)),
    }
}

/// Looks around before a block of ours is used. What the cache says is not enough.
pub(super) async fn settle(
    shared: &Shared,
    spec: &BlockSpec,
    object: &str,
) -> kube::Result<Created> {
    let (uid, cidr) = (&spec.network.uuid, spec.cidr);
    let Some(whole) = shared.state().whole_block(uid, &cidr) else {
        return Ok(Created::Unclear);
    };
    let blocks = api::all::<BlockWire>(&shared.client);
    let mut there: BTreeSet<String> = BTreeSet::new();
    if whole.prefix_len() < whole.max_prefix_len() {
        let labels = format!("{NETWORK_LABEL}={uid},{FROM_LABEL}");
        let parts = ListParams::default().labels(&labels);
        let Ok(parts) = timeout(LIST_TIMEOUT, blocks.list(&parts)).await else {
            return Ok(Created::Unclear);
        };
        for part in parts?.items {
            there.extend(part.metadata.name.clone());
            watch::take::<Blocks>(shared, part);
        }
    }
    if cidr != whole {
        let name = BlockSpec::name(uid, &whole);
        if let Some(found) = within(blocks.get_opt(&name)).await? {
            watch::take::<Blocks>(shared, found);
            there.insert(name);
        }
        let state = shared.state();
        let gives = state.enclosing_block(uid, &cidr).is_some_and(|around| {
            there.contains(&BlockSpec::name(uid, &around.cidr)) && around.gives(&cidr, &spec.node)
        });
        if !gives {
            return Ok(Created::Unclear);
        }
    }
    if !keep_holes(shared, spec) {
        return Ok(Created::Unclear);
    }
    let name = BlockSpec::name(uid, &cidr);
    shared.blocks.settled(shared, &name, object);
    shared.donations.changed();
    Ok(Created::Ours)
}

/// Parts in it that are other nodes' were theirs before it was ours: they stay theirs, and its status
/// will say so. Not if pods of this node have addresses there that the part's owner did not give this node:
/// then nobody ever gave the part. Whether that is known of each.
fn keep_holes(shared: &Shared, spec: &BlockSpec) -> bool {
    let uid = &spec.network.uuid;
    let theirs: Vec<(IpNet, String)> = {
        let state = shared.state();
        let inside: Vec<_> = state.inside(uid, &spec.cidr).collect();
        let outermost = |part: &IpNet| {
            let mut others = inside.iter().map(|other| other.spec.cidr);
            !others.any(|other| other != *part && other.contains(part))
        };
        let theirs = inside.iter().filter(|part| part.spec.node != spec.node);
        let theirs = theirs.filter(|part| outermost(&part.spec.cidr));
        theirs
            .map(|part| (part.spec.cidr, part.spec.node.clone()))
            .collect()
    };
    let Some(journaled) = shared.hooks.donations() else {
        return false;
    };
    let is_new = |part: &IpNet| {
        let mut same = journaled.iter().filter(|given| given.network == *uid);
        !same.any(|given| given.part == *part)
    };
    let mut known = true;
    for (part, node) in theirs.into_iter().filter(|(part, _)| is_new(part)) {
        let is_alive = |one: &Donation| is_alive(&shared.state(), one);
        for void in superseded(&journaled, uid, &spec.cidr, &part, is_alive) {
            tracing::info!(block = %spec.cidr, part = %void.part, node = void.node, within = %part, owner = node, "nobody took a donated part of an earlier Block, and another node has the part around it: the donation is void");
            shared.hooks.delete_donation(void);
        }
        let given = Donation {
            network: uid.clone(),
            block: spec.cidr,
            part,
            node: node.clone(),
        };
        match donations::record(shared, &given) {
            RecordOutcome::OnDisk => {
                tracing::info!(block = %spec.cidr, %part, node, "a part of a block of this node is another node's");
            }
            RecordOutcome::InUse => {
                tracing::warn!(block = %spec.cidr, %part, node, "another node has a Block for a part of this node's block, but its addresses are in use here: it is not given");
            }
            RecordOutcome::Failed => known = false,
        }
    }
    known
}

/// Whether a Block of a donated part exists, or the status of its block has it.
fn is_alive(state: &State, donation: &Donation) -> bool {
    let (network, part) = (&donation.network, &donation.part);
    let published = |block: &Arc<CachedBlock>| {
        let mut given = block.given.iter();
        given.any(|given| given.cidr.trunc() == part.trunc())
    };
    state.block(network, part).is_some()
        || state.block(network, &donation.block).is_some_and(published)
}
