//! Asks other nodes for a part of their blocks when none is free: one BlockRequest per network, there
//! for as long as this node waits. What is given comes as a block of this node's, whoever made it so:
//! see [`donations`](super::donations).

use super::api::{self, code, error_text, within};
use super::claim::ClaimRequest;
use super::error::ClaimError;
use super::shared::Shared;
use super::wire::RequestWire;
use ipnet::IpNet;
use kube::api::{DeleteParams, Preconditions};
use plexus_api::objects::{BlockRequestSpec, NETWORK_LABEL, NODE_LABEL};
use plexus_faults::effect;
use plexus_types::Family;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, timeout};

pub(super) const DONATION_TIMEOUT: Duration = Duration::from_secs(8);
/// How many addresses are asked for: the next pods of this node need theirs too, and an object for
/// each of them would be many.
const ADDRESSES: u32 = 8;
pub(super) const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(1);
/// How often this node looks for a donation if nothing notifies it.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Waits for a part of another node's block. `none` is why there is no whole one.
pub(super) async fn ask(
    shared: &Shared,
    claim: &ClaimRequest,
    none: ClaimError,
) -> Result<IpNet, ClaimError> {
    let owners = owners(shared, claim);
    if owners.is_empty() {
        return Err(none);
    }
    let uid = &claim.network.uuid;
    let request_lock = shared.donations.request_lock(uid);
    let end = Instant::now() + DONATION_TIMEOUT;
    let late = |none: ClaimError, owners: BTreeSet<String>| ClaimError::NotGiven {
        none: Box::new(none),
        owners: owners.into_iter().collect(),
        seconds: DONATION_TIMEOUT.as_secs(),
    };
    // The other family's request has the same name.
    let Ok(_alone) = tokio::time::timeout_at(end, request_lock.lock()).await else {
        return Err(late(none, owners));
    };
    let name = BlockRequestSpec::name(uid, &shared.options.node);
    let _asking = shared.donations.asking(&name);
    let spec = BlockRequestSpec {
        network: claim.network.clone(),
        node: shared.options.node.clone(),
        family: BlockRequestSpec::family_name(claim.family()).to_owned(),
        addresses: ADDRESSES,
    };
    effect("api.request<");
    let posted = tokio::time::timeout_at(end, post(shared, &name, &spec)).await;
    effect("api.request>");
    let posted = match posted {
        Ok(posted) => posted.map_err(|error| error_text(&error)),
        Err(_) => Err(format!("no answer within {} s", DONATION_TIMEOUT.as_secs())),
    };
    let request = match posted {
        Ok(request) => request.metadata.uid.unwrap_or_default(),
        Err(cause) => {
            let none = Box::new(none);
            return Err(ClaimError::CannotAsk { none, cause });
        }
    };
    tracing::info!(
        owners = owners.len(),
        "no block is free: asking other nodes for a part of theirs"
    );
    let given = loop {
        let arrival = shared.donations.arrived.notified();
        let given = arrived(shared, claim);
        let left = end.saturating_duration_since(Instant::now());
        let over = shared.state().is_closing(uid);
        if given.is_some() || over || left.is_zero() {
            break given;
        }
        // Notified or not, look again.
        let _ = timeout(left.min(POLL_INTERVAL), arrival).await;
    };
    // It answers, or somebody else withdraws it later.
    effect("api.withdraw<");
    let _ = timeout(WITHDRAW_TIMEOUT, withdraw(shared, &name, &request)).await;
    effect("api.withdraw>");
    if shared.state().is_closing(uid) {
        return Err(ClaimError::Closing(claim.network()));
    }
    given.ok_or_else(|| late(none, owners))
}

/// Takes a request of this node's back; if that fails, [`donations`](super::donations) tries again.
/// Not one that was made since.
pub(super) async fn withdraw(shared: &Shared, name: &str, uid: &str) {
    let this = DeleteParams::default().preconditions(Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: None,
    });
    let requests = api::all::<RequestWire>(&shared.client);
    match within(requests.delete(name, &this)).await {
        Ok(_) => {}
        Err(error) if matches!(code(&error), Some(404 | 409)) => {}
        Err(error) => tracing::debug!(
            request = name,
            error = error_text(&error),
            "cannot take a request back"
        ),
    }
}

/// Makes the request; one that an earlier wait has left goes first: it may have been answered.
async fn post(shared: &Shared, name: &str, spec: &BlockRequestSpec) -> kube::Result<RequestWire> {
    let labels = json!({NODE_LABEL: spec.node, NETWORK_LABEL: spec.network.uuid});
    let request = api::object::<RequestWire>(json!({"name": name, "labels": labels}), spec);
    match api::create(&shared.client, &request).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let requests = api::all::<RequestWire>(&shared.client);
            let old = within(requests.get_opt(name)).await?;
            if let Some(uid) = old.and_then(|old| old.metadata.uid) {
                withdraw(shared, name, &uid).await;
            }
            api::create(&shared.client, &request).await
        }
        made => made,
    }
}

/// The other nodes that own blocks of the network, of that family.
fn owners(shared: &Shared, claim: &ClaimRequest) -> BTreeSet<String> {
    let state = shared.state();
    let blocks = state.blocks.objects.values().map(|block| &block.spec);
    let of_it = blocks.filter(|spec| {
        spec.network.uuid == claim.network.uuid
            && Family::of(spec.cidr.network()) == claim.family()
            && spec.node != shared.options.node
            && state.nodes.objects.contains_key(&spec.node)
    });
    of_it.map(|spec| spec.node.clone()).collect()
}

/// A block of this node's that whoever asked does not have.
fn arrived(shared: &Shared, claim: &ClaimRequest) -> Option<IpNet> {
    let (state, node) = (shared.state(), &shared.options.node);
    let own = shared.blocks.of(&state, node, &claim.network.uuid);
    let mut own = own.into_iter();
    own.find(|block| Family::of(block.network()) == claim.family() && !claim.have.contains(block))
}
