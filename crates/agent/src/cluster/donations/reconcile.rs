//! Reconciles journal and API about what this node has donated, and takes back parts whose owner is
//! gone. The journal is written first and believed first; what only the API knows is added to it, so
//! that neither a lost journal nor a restored API server undoes a donation.

use super::answer::answer;
use super::receive::{receive, withdraw_old};
use super::record;
use crate::background::async_task::{Woken, Work};
use crate::background::progress::{Next, Reason};
use crate::cluster::api::{self, error_text, within};
use crate::cluster::cached::{CachedBlock, CachedRequest};
use crate::cluster::create::{Created, create};
use crate::cluster::kinds::Blocks;
use crate::cluster::report::RecordOutcome;
use crate::cluster::shared::Shared;
use crate::cluster::watch;
use crate::cluster::wire::BlockWire;
use ipnet::IpNet;
use plexus_api::objects::{BlockSpec, DonatedPart};
use plexus_core::ipam::Donation;
use plexus_faults::effect;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a Node must have been gone before what was given to it is taken back.
const NODE_GONE_GRACE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 60 });
/// How long after a failure it is tried again.
pub(in crate::cluster) const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// How often donations are reconciled if nothing changes.
pub(in crate::cluster) const CHECK_INTERVAL: Duration = Duration::from_secs(300);

/// How long an asker has to make use of what it was given before others answer too.
const ANSWERED_PAUSE: Duration = Duration::from_secs(1);
/// One asker is given no more addresses of a network than that, in that time.
const RATE_LIMIT: u32 = 256;
const RATE_WINDOW: Duration = Duration::from_secs(60);

/// What this node, as a donor, remembers between two runs.
#[derive(Default)]
pub(in crate::cluster) struct Donor {
    /// By their UID.
    requests: BTreeMap<String, KnownRequest>,
    /// Since when nobody is there to have a part, by network and part.
    nobody: BTreeMap<(String, IpNet), Instant>,
    /// What was given lately, by network and asker.
    donated_lately: BTreeMap<(String, String), Vec<(Instant, u128)>>,
}

/// A request, as this node sees it.
struct KnownRequest {
    /// When it was first seen, or when another node answered it.
    since: Instant,
    /// What its node has been given, by whomever.
    donations: BTreeSet<IpNet>,
    answered_elsewhere: bool,
    answered_here: bool,
}

impl Donor {
    pub(super) fn keep_only(&mut self, open: &[Arc<CachedRequest>]) {
        let open: BTreeSet<&String> = open.iter().map(|request| &request.uid).collect();
        self.requests.retain(|uid, _| open.contains(uid));
    }

    /// How long it is until this node answers, if it does so that long after the request came. When
    /// another has answered, the asker gets the time to be content with that.
    pub(super) fn wait(
        &mut self,
        request: &CachedRequest,
        after: Duration,
        donations: BTreeSet<IpNet>,
    ) -> Duration {
        let known = self.requests.entry(request.uid.clone());
        let known = known.or_insert_with(|| KnownRequest {
            since: Instant::now(),
            donations: donations.clone(),
            answered_elsewhere: false,
            answered_here: false,
        });
        if !donations.is_subset(&known.donations) {
            known.since = Instant::now();
            known.donations = donations;
            known.answered_elsewhere = true;
        }
        let after = match known.answered_elsewhere {
            true => after.max(ANSWERED_PAUSE),
            false => after,
        };
        after.saturating_sub(known.since.elapsed())
    }

    /// Each request is answered once: what was given may be taken before the request is.
    pub(super) fn has_answered(&self, request: &CachedRequest) -> bool {
        let known = self.requests.get(&request.uid);
        known.is_some_and(|known| known.answered_here)
    }

    pub(super) fn answered(&mut self, request: &CachedRequest) {
        if let Some(known) = self.requests.get_mut(&request.uid) {
            known.answered_here = true;
        }
    }

    /// How many addresses an asker may still be given: a node that asks again and again must not have
    /// all there are.
    pub(super) fn may_have(&mut self, request: &CachedRequest) -> u32 {
        self.donated_lately.retain(|_, sizes| {
            sizes.retain(|(at, _)| at.elapsed() < RATE_WINDOW);
            !sizes.is_empty()
        });
        let sizes = self.donated_lately.get(&asker(request));
        let sizes = sizes.into_iter().flatten();
        let sum = sizes.fold(0_u128, |sum, (_, size)| sum.saturating_add(*size));
        u32::try_from(u128::from(RATE_LIMIT).saturating_sub(sum)).unwrap_or(RATE_LIMIT)
    }

    pub(super) fn record(&mut self, request: &CachedRequest, size: u128) {
        let sizes = self.donated_lately.entry(asker(request)).or_default();
        sizes.push((Instant::now(), size));
    }
}

fn asker(request: &CachedRequest) -> (String, String) {
    let spec = &request.spec;
    (spec.network.uuid.clone(), spec.node.clone())
}

pub(in crate::cluster) struct Reconcile {
    shared: Arc<Shared>,
    donor: Donor,
}

impl Reconcile {
    pub(in crate::cluster) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            donor: Donor::default(),
        }
    }
}

impl Work for Reconcile {
    async fn woken(&self) -> Woken {
        Woken::by(&self.shared.donations.changed).await
    }

    async fn pass(&mut self, _: Reason) -> Result<Next, String> {
        reconcile(&self.shared, &mut self.donor).await
    }
}

/// Reconciles once.
async fn reconcile(shared: &Shared, donor: &mut Donor) -> Result<Next, String> {
    let live = {
        let state = shared.state();
        let known = state.nodes.objects.contains_key(&shared.options.node);
        known && state.blocks.live && state.nodes.live && state.networks.live
    };
    if !live {
        return Ok(Next::After(RETRY_INTERVAL));
    }
    // Others wait for an answer, and pods here for what was given; all else has time.
    let answered = answer(shared, donor).await;
    let received = receive(shared).await;
    withdraw_old(shared).await;
    let Some(journaled) = shared.hooks.donations() else {
        return Err("donations cannot be reconciled: the journal cannot be read".to_owned());
    };
    let agreed = agree(shared, donor, journaled).await;
    let again = (!received).then_some(RETRY_INTERVAL);
    let pauses = [again, agreed, answered];
    let pause = pauses.into_iter().flatten().min();
    Ok(Next::After(pause.unwrap_or(CHECK_INTERVAL)))
}

/// Publishes this node's donations as the journal has them; returns when to look again.
async fn agree(shared: &Shared, donor: &mut Donor, journaled: Vec<Donation>) -> Option<Duration> {
    let mut next: Option<Duration> = None;
    let mut blocks: BTreeSet<(String, IpNet)> = published(shared);
    for donation in journaled {
        step(shared, "reconciling", &donation.part);
        let key = (donation.network.clone(), donation.part);
        match fate_of(shared, &donation) {
            Fate::Over => {
                donor.nobody.remove(&key);
                tracing::info!(part = %donation.part, block = %donation.block, "the block of a gift is no longer this node's");
                shared.hooks.delete_donation(&donation);
                continue;
            }
            Fate::Taken => drop(donor.nobody.remove(&key)),
            Fate::Ours => {
                record_as_ours(shared, &donation);
            }
            Fate::Nobodys => {
                let since = *donor.nobody.entry(key).or_insert_with(Instant::now);
                let left = NODE_GONE_GRACE.saturating_sub(since.elapsed());
                let left = match left.is_zero() {
                    true => (!take_back(shared, &donation).await).then_some(RETRY_INTERVAL),
                    false => Some(left),
                };
                next = next.into_iter().chain(left).min();
            }
        }
        blocks.insert((donation.network, donation.block));
    }
    for (network, block) in blocks {
        step(shared, "publishing what was given of", &block);
        if !publish_donations(shared, &network, &block).await {
            next = next.into_iter().chain([RETRY_INTERVAL]).min();
        }
    }
    next
}

/// What the task does now: each part has its own time.
pub(super) fn step(shared: &Shared, what: &str, part: &impl Display) {
    shared.tasks.donations.step(format!("{what} {part}"));
}

enum Fate {
    /// Its block is another's, or its network is gone.
    Over,
    /// Somebody has it, or may take it.
    Taken,
    /// This node has it, as a block of its own.
    Ours,
    /// Nobody has it, and whoever it was given to is gone.
    Nobodys,
}

fn fate_of(shared: &Shared, donation: &Donation) -> Fate {
    let (state, node) = (shared.state(), &shared.options.node);
    let whole = state.block(&donation.network, &donation.block);
    if state.network_by_uid(&donation.network).is_none()
        || whole.is_some_and(|whole| whole.spec.node != *node)
    {
        return Fate::Over;
    }
    match state.block(&donation.network, &donation.part) {
        Some(part) if part.spec.node == *node && donation.node != *node => Fate::Ours,
        Some(_) => Fate::Taken,
        // Only if it is ours to take: the block is there, and this very Node's.
        None if state.nodes.objects.contains_key(&donation.node) || whole.is_none() => Fate::Taken,
        None => Fate::Nobodys,
    }
}

/// This node's blocks that have donations in the API.
fn published(shared: &Shared) -> BTreeSet<(String, IpNet)> {
    let state = shared.state();
    let blocks = state.blocks.objects.values();
    let own =
        blocks.filter(|block| block.spec.node == shared.options.node && !block.given.is_empty());
    own.map(|block| (block.spec.network.uuid.clone(), block.spec.cidr))
        .collect()
}

fn record_as_ours(shared: &Shared, donation: &Donation) -> RecordOutcome {
    let ours = Donation {
        node: shared.options.node.clone(),
        ..donation.clone()
    };
    record(shared, &ours)
}

/// Makes a block of a part that nobody is left to have. Whether nothing is left to do.
async fn take_back(shared: &Shared, donation: &Donation) -> bool {
    let node = &shared.options.node;
    let spec = {
        let state = shared.state();
        let (Some(here), Some(whole)) = (
            state.nodes.get(node),
            state.block(&donation.network, &donation.block),
        ) else {
            return false;
        };
        if whole.spec.node_uid != here.uid {
            return true;
        }
        BlockSpec {
            cidr: donation.part,
            ..whole.spec.clone()
        }
    };
    match create(shared, &spec).await {
        Ok(Created::Ours) => {
            let name = BlockSpec::name(&donation.network, &donation.part);
            shared.blocks.claimed(shared, &name, &spec);
            tracing::info!(part = %donation.part, node = donation.node, "whoever a part of a block was given to is gone: it is this node's again");
            record_as_ours(shared, donation) == RecordOutcome::OnDisk
        }
        Ok(Created::Unclear | Created::Theirs(_)) => true,
        Err(error) => {
            tracing::warn!(part = %donation.part, error = error_text(&error), "cannot take a part of a block back");
            shared.tasks.donations.failed();
            false
        }
    }
}

/// Says in a block's status what was given of it, if it does not say so already. Whether it does.
pub(in crate::cluster) async fn publish_donations(
    shared: &Shared,
    network: &str,
    block: &IpNet,
) -> bool {
    let Some(journaled) = shared.hooks.donations() else {
        return false;
    };
    let there = shared.state().block(network, block).cloned();
    let own = there.filter(|there| there.spec.node == shared.options.node);
    let Some(there) = own.filter(|there| !there.unreadable) else {
        // It is made again, or it is not ours to write.
        return true;
    };
    let cached = journaled
        .into_iter()
        .filter(|donation| donation.network == network && donation.block == *block);
    let (mut all, unknown) = merged(&there, cached);
    for (part, node) in unknown {
        let donation = Donation {
            network: network.to_owned(),
            block: *block,
            part,
            node: node.clone(),
        };
        if record(shared, &donation) == RecordOutcome::InUse {
            tracing::warn!(%block, %part, node, "the API says that a part of a block was given, but its addresses are in use here: taken out");
            all.retain(|donated| donated.cidr != part);
        }
    }
    if all == there.given {
        return true;
    }
    let name = BlockSpec::name(network, block);
    // Of that very object: a word that comes late must not be the next owner's.
    let patch = json!({"metadata": {"uid": there.uid}, "status": {"given": all}});
    let blocks = api::all::<BlockWire>(&shared.client);
    effect("api.given<");
    match within(api::merge_status(&blocks, &name, patch)).await {
        Ok(written) => {
            effect("api.given>");
            watch::take::<Blocks>(shared, written);
            true
        }
        Err(error) => {
            tracing::warn!(
                block = name,
                error = error_text(&error),
                "cannot say what was given of a block"
            );
            shared.tasks.donations.failed();
            false
        }
    }
}

/// What a block's status should say was given, and what only the API knows of that.
fn merged(
    there: &CachedBlock,
    journaled: impl Iterator<Item = Donation>,
) -> (Vec<DonatedPart>, Vec<(IpNet, String)>) {
    let journaled: BTreeMap<IpNet, String> = journaled
        .map(|donation| (donation.part, donation.node))
        .collect();
    let published = there.given.iter();
    let published: BTreeMap<IpNet, String> = published
        .map(|donated| (donated.cidr.trunc(), donated.node.clone()))
        .collect();
    let unknown = published
        .iter()
        .filter(|(part, _)| !journaled.contains_key(*part));
    let unknown = unknown.map(|(part, node)| (*part, node.clone())).collect();
    let mut all = published;
    all.extend(journaled);
    let all = all
        .into_iter()
        .map(|(cidr, node)| DonatedPart { cidr, node });
    (all.collect(), unknown)
}
