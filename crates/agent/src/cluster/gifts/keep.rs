//! Keeps journal and API in agreement about what this node gave away, and takes back what nobody is
//! left to have. The journal is written first and believed first; what only the API knows is added to
//! it, so that neither a lost journal nor a restored API server makes a gift undone.

use super::answer::answer;
use super::receive::{receive, withdraw_old};
use crate::cluster::create::{Created, create};
use crate::cluster::kept::{BlockSeen, RequestSeen};
use crate::cluster::kinds::Blocks;
use crate::cluster::report::Keeping;
use crate::cluster::shared::{MANAGER, Shared, said, within};
use crate::cluster::watch;
use crate::cluster::wire::BlockWire;
use ipnet::IpNet;
use kube::Api;
use kube::api::{Patch, PatchParams};
use plexus_api::objects::{BlockSpec, Gift};
use plexus_core::ipam::Given;
use plexus_faults::effect;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a Node must have been gone before what was given to it is taken back.
const GRACE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 60 });
/// How often something that failed is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// How often it is looked anyway.
const ANYWAY: Duration = Duration::from_secs(300);

/// How long an asker has to make use of what it was given before others answer too.
const CONTENT: Duration = Duration::from_secs(1);
/// One asker is given no more addresses of a network than that, in that time.
const MOST_LATELY: u32 = 256;
const LATELY: Duration = Duration::from_secs(60);

/// What is remembered from one look to the next.
#[derive(Default)]
pub(in crate::cluster) struct Desk {
    /// What is known of requests, by their UID.
    seen: BTreeMap<String, Seen>,
    answered: BTreeSet<String>,
    /// Since when nobody is there to have a part, by network and part.
    nobody: BTreeMap<(String, IpNet), Instant>,
    /// What was given lately, by network and asker.
    lately: BTreeMap<(String, String), Vec<(Instant, u128)>>,
}

/// A request, as this node sees it.
struct Seen {
    /// When it was first seen, or when another node answered it.
    since: Instant,
    /// What its node has been given, by whomever.
    gifts: BTreeSet<IpNet>,
    /// Another node answered it.
    answered: bool,
}

impl Desk {
    pub(super) fn keep_only(&mut self, open: &[Arc<RequestSeen>]) {
        let open: BTreeSet<&String> = open.iter().map(|request| &request.uid).collect();
        self.seen.retain(|uid, _| open.contains(uid));
        self.answered.retain(|uid| open.contains(uid));
    }

    /// How long it is until this node answers, if it does so that long after the request came. When
    /// another has answered, the asker gets the time to be content with that.
    pub(super) fn wait(
        &mut self,
        request: &RequestSeen,
        after: Duration,
        gifts: BTreeSet<IpNet>,
    ) -> Duration {
        let seen = self.seen.entry(request.uid.clone());
        let seen = seen.or_insert_with(|| Seen {
            since: Instant::now(),
            gifts: gifts.clone(),
            answered: false,
        });
        if !gifts.is_subset(&seen.gifts) {
            seen.since = Instant::now();
            seen.gifts = gifts;
            seen.answered = true;
        }
        let after = match seen.answered {
            true => after.max(CONTENT),
            false => after,
        };
        after.saturating_sub(seen.since.elapsed())
    }

    /// Each request is answered once: what was given may be taken before the request is.
    pub(super) fn has_answered(&self, request: &RequestSeen) -> bool {
        self.answered.contains(&request.uid)
    }

    pub(super) fn answered(&mut self, request: &RequestSeen) {
        self.answered.insert(request.uid.clone());
    }

    /// How many addresses an asker may still be given: a node that asks again and again must not have
    /// all there are.
    pub(super) fn may_have(&mut self, request: &RequestSeen) -> u32 {
        self.lately.retain(|_, given| {
            given.retain(|(at, _)| at.elapsed() < LATELY);
            !given.is_empty()
        });
        let given = self.lately.get(&asker(request)).into_iter().flatten();
        let given = given.fold(0_u128, |sum, (_, size)| sum.saturating_add(*size));
        u32::try_from(u128::from(MOST_LATELY).saturating_sub(given)).unwrap_or(MOST_LATELY)
    }

    pub(super) fn gave(&mut self, request: &RequestSeen, size: u128) {
        let given = self.lately.entry(asker(request)).or_default();
        given.push((Instant::now(), size));
    }
}

fn asker(request: &RequestSeen) -> (String, String) {
    let spec = &request.spec;
    (spec.network.uuid.clone(), spec.node.clone())
}

/// Never ends.
pub(in crate::cluster) async fn keep(shared: Arc<Shared>) {
    let mut desk = Desk::default();
    let mut pause = ANYWAY;
    loop {
        // Either way it is looked.
        let _ = tokio::time::timeout(pause, shared.gifts.look.notified()).await;
        pause = tend(&shared, &mut desk).await;
    }
}

/// Does what is to be done now; says when to look again.
async fn tend(shared: &Shared, desk: &mut Desk) -> Duration {
    let live = {
        let state = shared.state();
        let known = state.nodes.objects.contains_key(&shared.options.node);
        known && state.blocks.live && state.nodes.live && state.networks.live
    };
    if !live {
        return AGAIN;
    }
    // Others wait for an answer, and pods here for what was given; all else has time.
    let answered = answer(shared, desk).await;
    let received = receive(shared).await;
    withdraw_old(shared).await;
    let Some(journaled) = shared.hooks.given() else {
        return AGAIN;
    };
    let agreed = agree(shared, desk, journaled).await;
    let again = (!received).then_some(AGAIN);
    let pauses = [again, agreed, answered];
    pauses.into_iter().flatten().min().unwrap_or(ANYWAY)
}

/// Makes what the API says of this node's gifts true; says when to look again.
async fn agree(shared: &Shared, desk: &mut Desk, journaled: Vec<Given>) -> Option<Duration> {
    let node = &shared.options.node;
    let mut next: Option<Duration> = None;
    let mut blocks: BTreeSet<(String, IpNet)> = told(shared);
    for given in journaled {
        match look_at(shared, &given) {
            Fate::Over => {
                desk.nobody.remove(&(given.network.clone(), given.part));
                tracing::info!(part = %given.part, block = %given.block, "the block of a gift is no longer this node's");
                shared.hooks.drop_given(&given);
                continue;
            }
            Fate::Kept => drop(desk.nobody.remove(&(given.network.clone(), given.part))),
            Fate::Ours => {
                shared.hooks.keep_given(&Given {
                    node: node.clone(),
                    ..given.clone()
                });
            }
            Fate::Nobodys => {
                let key = (given.network.clone(), given.part);
                let since = *desk.nobody.entry(key).or_insert_with(Instant::now);
                let left = GRACE.saturating_sub(since.elapsed());
                let left = match left.is_zero() {
                    true => (!take_back(shared, &given).await).then_some(AGAIN),
                    false => Some(left),
                };
                next = next.into_iter().chain(left).min();
            }
        }
        blocks.insert((given.network, given.block));
    }
    for (network, block) in blocks {
        if !say_given(shared, &network, &block).await {
            next = Some(next.map_or(AGAIN, |next| next.min(AGAIN)));
        }
    }
    next
}

/// What became of a part.
enum Fate {
    /// Its block is another's, or its network is gone.
    Over,
    /// Somebody has it, or may take it.
    Kept,
    /// This node has it, as a block of its own.
    Ours,
    /// Nobody has it, and whoever it was given to is gone.
    Nobodys,
}

fn look_at(shared: &Shared, given: &Given) -> Fate {
    let (state, node) = (shared.state(), &shared.options.node);
    let whole = state.block(&given.network, &given.block);
    if state.network_by_uid(&given.network).is_none()
        || whole.is_some_and(|whole| whole.spec.node != *node)
    {
        return Fate::Over;
    }
    match state.block(&given.network, &given.part) {
        Some(part) if part.spec.node == *node && given.node != *node => Fate::Ours,
        Some(_) => Fate::Kept,
        // Only if it is ours to take: the block is there, and this very Node's.
        None if state.nodes.objects.contains_key(&given.node) || whole.is_none() => Fate::Kept,
        None => Fate::Nobodys,
    }
}

/// Blocks of this node of which the API knows gifts.
fn told(shared: &Shared) -> BTreeSet<(String, IpNet)> {
    let state = shared.state();
    let blocks = state.blocks.objects.values();
    let own =
        blocks.filter(|block| block.spec.node == shared.options.node && !block.given.is_empty());
    own.map(|block| (block.spec.network.uuid.clone(), block.spec.cidr))
        .collect()
}

/// Makes a block of a part that nobody is left to have. Whether nothing is left to do.
async fn take_back(shared: &Shared, given: &Given) -> bool {
    let node = &shared.options.node;
    let spec = {
        let state = shared.state();
        let (Some(here), Some(whole)) = (
            state.nodes.get(node),
            state.block(&given.network, &given.block),
        ) else {
            return false;
        };
        if whole.spec.node_uid != here.uid {
            return true;
        }
        BlockSpec {
            cidr: given.part,
            ..whole.spec.clone()
        }
    };
    match create(shared, &spec).await {
        Ok(Created::Ours) => {
            let name = BlockSpec::name(&given.network, &given.part);
            shared.blocks.claimed(shared, &name, &spec);
            tracing::info!(part = %given.part, node = given.node, "whoever a part of a block was given to is gone: it is this node's again");
            let kept = shared.hooks.keep_given(&Given {
                node: node.clone(),
                ..given.clone()
            });
            kept == Keeping::OnDisk
        }
        Ok(Created::Unclear | Created::Theirs(_)) => true,
        Err(error) => {
            tracing::warn!(part = %given.part, error = said(&error), "cannot take a part of a block back");
            false
        }
    }
}

/// Says in a block's status what was given of it, if it does not say so already. Whether it does.
pub(in crate::cluster) async fn say_given(shared: &Shared, network: &str, block: &IpNet) -> bool {
    let Some(journaled) = shared.hooks.given() else {
        return false;
    };
    let there = shared.state().block(network, block).cloned();
    let own = there.filter(|there| there.spec.node == shared.options.node);
    let Some(there) = own.filter(|there| !there.unreadable) else {
        // It is made again, or it is not ours to write.
        return true;
    };
    let kept = journaled
        .into_iter()
        .filter(|given| given.network == network && given.block == *block);
    let (mut all, unknown) = merged(&there, kept);
    for (part, node) in unknown {
        let keeping = shared.hooks.keep_given(&Given {
            network: network.to_owned(),
            block: *block,
            part,
            node: node.clone(),
        });
        if keeping == Keeping::InUse {
            tracing::warn!(%block, %part, node, "the API says that a part of a block was given, but its addresses are in use here: taken out");
            all.retain(|gift| gift.cidr != part);
        }
    }
    if all == there.given {
        return true;
    }
    let name = BlockSpec::name(network, block);
    let how = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    // Of that very object: a word that comes late must not be the next owner's.
    let patch = json!({"metadata": {"uid": there.uid}, "status": {"given": all}});
    let patch = Patch::Merge(patch);
    let api: Api<BlockWire> = Api::all(shared.client.clone());
    effect("api.given<");
    match within(api.patch_status(&name, &how, &patch)).await {
        Ok(written) => {
            effect("api.given>");
            watch::take::<Blocks>(shared, written);
            true
        }
        Err(error) => {
            tracing::warn!(
                block = name,
                error = said(&error),
                "cannot say what was given of a block"
            );
            false
        }
    }
}

/// What a block's status should say was given, and what only the API knows of that.
fn merged(
    there: &BlockSeen,
    journaled: impl Iterator<Item = Given>,
) -> (Vec<Gift>, Vec<(IpNet, String)>) {
    let journaled: BTreeMap<IpNet, String> =
        journaled.map(|given| (given.part, given.node)).collect();
    let told = there.given.iter();
    let told: BTreeMap<IpNet, String> = told
        .map(|gift| (gift.cidr.trunc(), gift.node.clone()))
        .collect();
    let unknown = told
        .iter()
        .filter(|(part, _)| !journaled.contains_key(*part));
    let unknown = unknown.map(|(part, node)| (*part, node.clone())).collect();
    let mut all = told;
    all.extend(journaled);
    let all = all.into_iter().map(|(cidr, node)| Gift { cidr, node });
    (all.collect(), unknown)
}
