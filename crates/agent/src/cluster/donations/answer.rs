//! Answers other nodes' requests. Every owner decides alone, but not all at once: those with the most
//! free addresses come first, and whoever sees that something was given waits. If two give all the
//! same, the asker has more than it asked for.

use super::reconcile::{Donor, publish_donations, step};
use crate::cluster::cached::CachedRequest;
use crate::cluster::report::PartRequest;
use crate::cluster::shared::Shared;
use crate::cluster::state::State;
use ipnet::IpNet;
use plexus_api::cni::BlockIpam;
use plexus_api::objects::DonatedPart;
use plexus_core::ipam::{Donation, NodeBlocks, rounds_to_wait};
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How long the first to answer has before the next ones do.
const ROUND: Duration = Duration::from_millis(400);

/// Donates what this node can to the requesters that it is due to answer; returns when to look again.
pub(in crate::cluster) async fn answer(shared: &Shared, donor: &mut Donor) -> Option<Duration> {
    let node = &shared.options.node;
    let open: Vec<Arc<CachedRequest>> = {
        let state = shared.state();
        let all = state.requests.objects.values();
        let others = all.filter(|request| request.spec.node != *node);
        others.cloned().collect()
    };
    donor.keep_only(&open);
    let mut next: Option<Duration> = None;
    for request in &open {
        step(shared, "answering request", &request.uid);
        if donor.has_answered(request) {
            continue;
        }
        let (after, donations) = {
            let state = shared.state();
            (due(&state, node, request), donations(&state, request))
        };
        // Also if this node is not due: what others have donated meanwhile counts.
        let wait = donor.wait(request, after.unwrap_or_default(), donations);
        if after.is_none() {
            continue;
        }
        let gave = match wait.is_zero() {
            true => donate(shared, donor, request).await,
            false => DonateOutcome::Nothing,
        };
        if gave != DonateOutcome::Nothing {
            donor.answered(request);
        }
        if gave != DonateOutcome::Published {
            // Something may be freed, the first ones may not answer, or the API server did not.
            let wait = if wait.is_zero() { ROUND } else { wait };
            next = next.into_iter().chain([wait]).min();
        }
    }
    next
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster) enum DonateOutcome {
    /// There was nothing to give, or nobody to give it to.
    Nothing,
    /// A part, but the API does not say so yet: whoever keeps journal and API in agreement will.
    Unpublished,
    /// A part, and the API says so.
    Published,
}

pub(in crate::cluster) async fn donate(
    shared: &Shared,
    donor: &mut Donor,
    request: &CachedRequest,
) -> DonateOutcome {
    let Some(donation) = choose(shared, donor, request) else {
        return DonateOutcome::Nothing;
    };
    let spec = &request.spec;
    donor.record(request, size(&donation.part));
    tracing::info!(
        part = %donation.part,
        block = %donation.block,
        network = spec.network.name,
        node = spec.node,
        "a part of a block is given to another node"
    );
    match publish_donations(shared, &donation.network, &donation.block).await {
        true => DonateOutcome::Published,
        false => DonateOutcome::Unpublished,
    }
}

/// Takes a part out of this node's blocks, in memory and on disk.
fn choose(shared: &Shared, donor: &mut Donor, request: &CachedRequest) -> Option<Donation> {
    let spec = &request.spec;
    let (family, (config, own)) = (spec.family()?, config(shared, request)?);
    let part_request = PartRequest {
        node: &spec.node,
        family,
        addresses: spec.addresses.min(donor.may_have(request)),
    };
    if part_request.addresses == 0 {
        return None;
    }
    shared.hooks.donate(&config, &own, &part_request)
}

/// The network and this node's blocks of it; none if it has none, or if nobody may use the network.
fn config(shared: &Shared, request: &CachedRequest) -> Option<(BlockIpam, NodeBlocks)> {
    let uid = &request.spec.network.uuid;
    let network = shared.state().network_by_uid(uid)?;
    let own = shared.node_blocks(uid);
    let config = BlockIpam {
        uid: uid.clone(),
        subnets: network.spec.block_subnets(),
        routes: Vec::new(),
        assigned: false,
    };
    let usable = network.unusable.is_none() && !own.own.is_empty();
    usable.then_some((config, own))
}

/// How long after the request was seen this node answers; none: not at all, as things are.
fn due(state: &State, node: &str, request: &CachedRequest) -> Option<Duration> {
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
            let donated = block.given.iter().map(|donated| size(&donated.cidr));
            let used = donated.fold(u128::from(block.allocated), u128::saturating_add);
            let left = size(&block.spec.cidr).saturating_sub(used);
            let sum = free.entry(block.spec.node.clone()).or_default();
            *sum = sum.saturating_add(left);
        }
    }
    free.contains_key(node)
        .then(|| ROUND.saturating_mul(rounds_to_wait(node, &free, &request.uid)))
}

/// What the asker was given of the network.
fn donations(state: &State, request: &CachedRequest) -> BTreeSet<IpNet> {
    let spec = &request.spec;
    let blocks = state.blocks.objects.values();
    let of_it = blocks.filter(|block| {
        block.spec.network.uuid == spec.network.uuid && state.is_legal(&block.spec)
    });
    let donations = of_it.flat_map(|block| {
        let inside = |donated: &&DonatedPart| block.spec.cidr.contains(&donated.cidr.trunc());
        block.given.iter().filter(inside)
    });
    let own = donations.filter(|donated| donated.node == spec.node);
    own.map(|donated| donated.cidr.trunc()).collect()
}

/// Whether the asker was given something that it has not taken yet.
fn is_given(state: &State, request: &CachedRequest, family: Family) -> bool {
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
