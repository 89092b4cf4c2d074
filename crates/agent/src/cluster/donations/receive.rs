//! What this node is given: every part that names it becomes a block of its own, whether somebody
//! still waits for it or not. So nothing that was given is in nobody's hands for long.

use super::reconcile::step;
use crate::cluster::api::error_text;
use crate::cluster::ask;
use crate::cluster::create::{Created, create};
use crate::cluster::shared::Shared;
use plexus_api::objects::BlockSpec;

/// Whether nothing is left to do.
pub(in crate::cluster) async fn receive(shared: &Shared) -> bool {
    let node = &shared.options.node;
    let offers: Vec<BlockSpec> = {
        let state = shared.state();
        let here = state.nodes.get(node);
        let offers = here.iter().flat_map(|_| state.offers(node));
        let open = offers.filter(|(block, _)| !state.is_closing(&block.spec.network.uuid));
        open.map(|(block, cidr)| BlockSpec {
            network: block.spec.network.clone(),
            cidr,
            node: node.clone(),
            node_uid: here.iter().map(|here| here.uid.as_str()).collect(),
            nic: None,
        })
        .collect()
    };
    let mut done = true;
    for spec in offers {
        let name = BlockSpec::name(&spec.network.uuid, &spec.cidr);
        step(shared, "taking what is given, block", &name);
        match create(shared, &spec).await {
            Ok(Created::Ours) => {
                shared.blocks.claimed(shared, &name, &spec);
                tracing::info!(cidr = %spec.cidr, network = spec.network.name, "a part of another node's block is this node's");
            }
            Ok(Created::Unclear) => {
                tracing::warn!(cidr = %spec.cidr, network = spec.network.name, "a part of a block is no longer given: not used");
            }
            Ok(Created::Theirs(owner)) => {
                tracing::info!(cidr = %spec.cidr, network = spec.network.name, owner, "a part that was given is another's already");
            }
            Err(error) => {
                done = false;
                shared.tasks.donations.failed();
                tracing::warn!(
                    block = name,
                    error = error_text(&error),
                    "cannot take what is given"
                );
            }
        }
    }
    shared.donations.arrived.notify_waiters();
    done
}

/// Requests that an earlier agent, or one that lost its patience, has left.
pub(super) async fn withdraw_old(shared: &Shared) {
    let node = &shared.options.node;
    let old: Vec<(String, String)> = {
        let state = shared.state();
        let own = state.requests.objects.iter();
        let own = own.filter(|(_, request)| request.spec.node == *node);
        let old = own.filter(|(name, _)| !shared.donations.is_asking(name));
        old.map(|(name, request)| (name.clone(), request.uid.clone()))
            .collect()
    };
    for (name, uid) in old {
        step(shared, "withdrawing request", &name);
        ask::withdraw(shared, &name, &uid).await;
    }
}
