//! Answers other nodes' requests. Every owner decides alone, but not all at once: those with the most
//! free addresses come first, and whoever sees that something was given waits. If two give all the
//! same, the asker has more than it asked for.

use super::keep::{Desk, say_given};
use crate::cluster::kept::RequestSeen;
use crate::cluster::report::Asked;
use crate::cluster::shared::Shared;
use crate::cluster::state::State;
use ipnet::IpNet;
use plexus_api::cni::BlockIpam;
use plexus_api::objects::Gift;
use plexus_core::ipam::{Given, rounds_to_wait};
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How long the first to answer has before the next ones do.
const ROUND: Duration = Duration::from_millis(400);

/// Gives what can be given to those whose turn it is; says when to look again.
pub(in crate::cluster) async fn answer(shared: &Shared, desk: &mut Desk) -> Option<Duration> {
    let node = &shared.options.node;
    let open: Vec<Arc<RequestSeen>> = {
        let state = shared.state();
        let all = state.requests.objects.values();
        let others = all.filter(|request| request.spec.node != *node);
        others.cloned().collect()
    };
    desk.keep_only(&open);
    let mut next: Option<Duration> = None;
    for request in &open {
        if desk.has_answered(request) {
            continue;
        }
        let (after, gifts) = {
            let state = shared.state();
            (due(&state, node, request), gifts(&state, request))
        };
        // Also if it is not this node's turn: what was given meanwhile counts.
        let wait = desk.wait(request, after.unwrap_or_default(), gifts);
        if after.is_none() {
            continue;
        }
        let gave = match wait.is_zero() {
            true => give(shared, desk, request).await,
            false => Gave::Nothing,
        };
        if gave != Gave::Nothing {
            desk.answered(request);
        }
        if gave != Gave::Said {
            // Something may be freed, the first ones may not answer, or the API server did not.
            let wait = if wait.is_zero() { ROUND } else { wait };
            next = Some(next.map_or(wait, |next| next.min(wait)));
        }
    }
    next
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster) enum Gave {
    /// There was nothing to give, or nobody to give it to.
    Nothing,
    /// A part, but the API does not say so yet: whoever keeps journal and API in agreement will.
    Unsaid,
    /// A part, and the API says so.
    Said,
}

/// Gives something, if there is something to give.
pub(in crate::cluster) async fn give(
    shared: &Shared,
    desk: &mut Desk,
    request: &RequestSeen,
) -> Gave {
    let Some(given) = choose(shared, desk, request) else {
        return Gave::Nothing;
    };
    let spec = &request.spec;
    desk.gave(request, size(&given.part));
    tracing::info!(
        part = %given.part,
        block = %given.block,
        network = spec.network.name,
        node = spec.node,
        "a part of a block is given to another node"
    );
    match say_given(shared, &given.network, &given.block).await {
        true => Gave::Said,
        false => Gave::Unsaid,
    }
}

/// Takes a part out of this node's blocks, in memory and on disk.
fn choose(shared: &Shared, desk: &mut Desk, request: &RequestSeen) -> Option<Given> {
    let spec = &request.spec;
    let (family, config) = (spec.family()?, config(shared, request)?);
    let asked = Asked {
        node: &spec.node,
        family,
        addresses: spec.addresses.min(desk.may_have(request)),
    };
    if asked.addresses == 0 {
        return None;
    }
    shared.hooks.give(&config, &asked)
}

/// This node's blocks of the network; none if it has none, or if nobody may use the network.
fn config(shared: &Shared, request: &RequestSeen) -> Option<BlockIpam> {
    let state = shared.state();
    let uid = &request.spec.network.uuid;
    let network = state.network_by_uid(uid)?;
    let blocks = shared.blocks.of(&state, &shared.options.node, uid);
    let usable = network.unusable.is_none() && !blocks.is_empty();
    usable.then(|| BlockIpam {
        uid: uid.clone(),
        subnets: network.spec.block_subnets(),
        blocks,
        given: shared.blocks.apart(&state, uid),
        routes: Vec::new(),
    })
}

/// How long after the request was seen this node answers; none: not at all, as things are.
fn due(state: &State, node: &str, request: &RequestSeen) -> Option<Duration> {
    let (spec, family) = (&request.spec, request.spec.family()?);
    let uid = &spec.network.uuid;
    if !state.nodes.objects.contains_key(&spec.node) || is_given(state, request, family) {
        return None;
    }
    let mut free: BTreeMap<String, u128> = BTreeMap::new();
    for block in state.blocks.objects.values() {
        let of_it = block.spec.network.uuid == *uid
            && Family::of(block.spec.cidr.network()) == family
            && block.spec.node != spec.node
            && state.nodes.objects.contains_key(&block.spec.node);
        if of_it {
            let given = block.given.iter().map(|gift| size(&gift.cidr));
            let used = given.fold(u128::from(block.allocated), u128::saturating_add);
            let left = size(&block.spec.cidr).saturating_sub(used);
            let sum = free.entry(block.spec.node.clone()).or_default();
            *sum = sum.saturating_add(left);
        }
    }
    free.contains_key(node)
        .then(|| ROUND.saturating_mul(rounds_to_wait(node, &free, &request.uid)))
}

/// What the asker was given of the network.
fn gifts(state: &State, request: &RequestSeen) -> BTreeSet<IpNet> {
    let spec = &request.spec;
    let blocks = state.blocks.objects.values();
    let of_it = blocks.filter(|block| {
        block.spec.network.uuid == spec.network.uuid && state.is_granted(&block.spec)
    });
    let gifts = of_it.flat_map(|block| {
        let inside = |gift: &&Gift| block.spec.cidr.contains(&gift.cidr.trunc());
        block.given.iter().filter(inside)
    });
    let own = gifts.filter(|gift| gift.node == spec.node);
    own.map(|gift| gift.cidr.trunc()).collect()
}

/// Whether the asker was given something that it has not taken yet.
fn is_given(state: &State, request: &RequestSeen, family: Family) -> bool {
    let uid = &request.spec.network.uuid;
    let mut offers = state.offers(&request.spec.node).into_iter();
    offers.any(|(block, part)| {
        block.spec.network.uuid == *uid && Family::of(part.network()) == family
    })
}

fn size(cidr: &IpNet) -> u128 {
    let bits = u32::from(cidr.max_prefix_len().saturating_sub(cidr.prefix_len()));
    1_u128.checked_shl(bits).unwrap_or(u128::MAX)
}
