//! Makes a block: the object's name says which addresses it has, so that a conflict means that they are
//! somebody's. A part of a block has another name than the block: whoever makes one looks around
//! before using it, and so does whoever makes the other. One of the two sees the other.
//!
//! ```text
//!   a block:  create ──► list the parts in it ──► they are holes ──► use it
//!   a part:   create ──► get the block around it ──► still given? ──► use it
//! ```
//! What is not looked at successfully is left to the watch, which brings it after everything that was
//! there before it.

use super::kept;
use super::kinds::Blocks;
use super::shared::{MANAGER, Shared};
use super::watch;
use super::wire::BlockWire;
use ipnet::IpNet;
use kube::api::{ListParams, PostParams};
use kube::core::Request;
use kube::{Api, Resource};
use plexus_api::objects::{BlockSpec, FROM_LABEL, NETWORK_LABEL, NODE_LABEL};
use plexus_core::ipam::Given;
use plexus_faults::effect;
use serde_json::json;

/// What came of creating a block.
pub(super) enum Created {
    /// It is ours, now or already.
    Ours,
    /// It is ours by name, but what is around it does not say so.
    Unclear,
    /// It is another node's.
    Theirs(String),
}

/// What a part is a part of.
struct Around {
    /// The block's name, if it is known.
    name: Option<String>,
    /// Its owner, for people.
    node: String,
}

/// Creates a block, or finds whose it is.
pub(super) async fn create(shared: &Shared, spec: &BlockSpec) -> kube::Result<Created> {
    let name = BlockSpec::name(&spec.network.uuid, &spec.cidr);
    let around = around(shared, spec);
    let mut labels = json!({NODE_LABEL: spec.node, NETWORK_LABEL: spec.network.uuid});
    if let Some(around) = &around {
        labels[FROM_LABEL] = json!(around.node);
    }
    let body = json!({
        "apiVersion": BlockWire::api_version(&()),
        "kind": BlockWire::kind(&()),
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    });
    let how = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    let body = serde_json::to_vec(&body).map_err(kube::Error::SerdeError)?;
    let request = Request::new(BlockWire::url_path(&(), None)).create(&how, body);
    let request = request.map_err(kube::Error::BuildRequest)?;
    effect("api.block<");
    let made = shared.client.request::<BlockWire>(request).await;
    effect("api.block>");
    let made = match made {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            Api::<BlockWire>::all(shared.client.clone())
                .get(&name)
                .await?
        }
        other => other?,
    };
    let owner = kept::block(&made).map(|block| block.spec);
    let ours = |owner: &BlockSpec| owner.node == spec.node && owner.node_uid == spec.node_uid;
    let Some(owner) = owner.filter(|owner| !ours(owner)) else {
        return settle(shared, spec, around, made).await;
    };
    watch::take::<Blocks>(shared, made);
    Ok(Created::Theirs(owner.node))
}

/// Looks around before the block is used.
async fn settle(
    shared: &Shared,
    spec: &BlockSpec,
    around: Option<Around>,
    made: BlockWire,
) -> kube::Result<Created> {
    if kept::block(&made).is_none() {
        return Ok(Created::Theirs("(unknown)".to_owned()));
    }
    let api: Api<BlockWire> = Api::all(shared.client.clone());
    if spec.cidr.prefix_len() < spec.cidr.max_prefix_len() {
        let labels = format!("{NETWORK_LABEL}={},{FROM_LABEL}", spec.network.uuid);
        let parts = api.list(&ListParams::default().labels(&labels)).await?;
        for part in parts.items {
            watch::take::<Blocks>(shared, part);
        }
    }
    if let Some(around) = around {
        let Some(name) = around.name else {
            return Ok(Created::Unclear);
        };
        let found = api.get_opt(&name).await?;
        let still = found.as_ref().and_then(kept::block).is_some_and(|found| {
            let gave = found.given.iter();
            let mut gave = gave.filter(|gift| gift.cidr.trunc() == spec.cidr);
            found.spec.node == spec.node || gave.any(|gift| gift.node == spec.node)
        });
        let Some(found) = found.filter(|_| still) else {
            return Ok(Created::Unclear);
        };
        watch::take::<Blocks>(shared, found);
    }
    keep_holes(shared, spec);
    watch::take::<Blocks>(shared, made);
    shared.gifts.look();
    Ok(Created::Ours)
}

/// The block that this one will be a part of; none if it is a whole one.
fn around(shared: &Shared, spec: &BlockSpec) -> Option<Around> {
    let state = shared.state();
    let known = state.around(&spec.network.uuid, &spec.cidr);
    let known = known.map(|block| Around {
        name: Some(BlockSpec::name(&spec.network.uuid, &block.spec.cidr)),
        node: block.spec.node.clone(),
    });
    let network = state.network_by_uid(&spec.network.uuid);
    let is_part = network.is_some_and(|network| !network.spec.is_whole_block(&spec.cidr));
    known.or_else(|| {
        is_part.then(|| Around {
            name: None,
            node: spec.node.clone(),
        })
    })
}

/// Parts in it that are other nodes' were theirs before it was ours: they stay theirs, and its status
/// will say so.
fn keep_holes(shared: &Shared, spec: &BlockSpec) {
    let uid = &spec.network.uuid;
    let theirs: Vec<(IpNet, String)> = {
        let state = shared.state();
        let inside = state.inside(uid, &spec.cidr);
        let outermost = |part: &IpNet| {
            let around = state.around(uid, part);
            let between = |around: &IpNet| *around != spec.cidr && spec.cidr.contains(around);
            !around.is_some_and(|around| between(&around.spec.cidr))
        };
        let theirs =
            inside.filter(|part| part.spec.node != spec.node && outermost(&part.spec.cidr));
        theirs
            .map(|part| (part.spec.cidr, part.spec.node.clone()))
            .collect()
    };
    for (part, node) in theirs {
        tracing::info!(block = %spec.cidr, %part, node, "a part of a new block is another node's");
        // What cannot be journaled is a hole all the same, as long as the other block is there.
        shared.hooks.keep_given(&Given {
            network: uid.clone(),
            block: spec.cidr,
            part,
            node,
        });
    }
}
