//! What this node is given: every part that names it becomes a block of its own, whether somebody
//! still waits for it or not. So nothing that was given is in nobody's hands for long.

use crate::cluster::ask;
use crate::cluster::create::{Created, create};
use crate::cluster::kept;
use crate::cluster::shared::{Shared, said};
use crate::cluster::state::State;
use plexus_api::objects::BlockSpec;

/// Whether nothing is left to do.
pub(super) async fn receive(shared: &Shared) -> bool {
    let node = &shared.options.node;
    let offers = {
        let state = shared.state();
        let uid = state.nodes.get(node).map(|node| node.uid.clone());
        uid.map_or_else(Vec::new, |uid| offers(&state, node, &uid))
    };
    let mut done = true;
    for spec in offers {
        let name = BlockSpec::name(&spec.network.uuid, &spec.cidr);
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
                tracing::warn!(
                    block = name,
                    error = said(&error),
                    "cannot take what is given"
                );
            }
        }
    }
    shared.gifts.arrived.notify_waiters();
    done
}

/// Requests that an earlier agent, or one that lost its patience, has left.
pub(super) async fn withdraw_old(shared: &Shared) {
    let node = &shared.options.node;
    let old: Vec<String> = {
        let state = shared.state();
        let own = state.requests.objects.iter();
        let own = own.filter(|(_, request)| request.spec.node == *node);
        let old = own.filter(|(name, _)| !shared.gifts.is_asking(name));
        old.map(|(name, _)| name.clone()).collect()
    };
    for name in old {
        ask::withdraw(shared, &name).await;
    }
}

/// Parts that blocks of other nodes say are this one's, and that nobody has made yet.
fn offers(state: &State, node: &str, node_uid: &str) -> Vec<BlockSpec> {
    let mut offers = Vec::new();
    for block in state.blocks.objects.values() {
        let (spec, given) = (&block.spec, block.given.iter());
        let network = state.network_by_uid(&spec.network.uuid);
        // What is taken of a network that goes would have to be closed before that can go.
        let stays = network.is_some_and(|network| !kept::is_terminating(&network));
        if spec.node == node || !stays {
            continue;
        }
        for gift in given.filter(|gift| gift.node == node) {
            let cidr = gift.cidr.trunc();
            let inside = spec.cidr.contains(&cidr) && cidr != spec.cidr;
            if inside && state.block(&spec.network.uuid, &cidr).is_none() {
                offers.push(BlockSpec {
                    network: spec.network.clone(),
                    cidr,
                    node: node.to_owned(),
                    node_uid: node_uid.to_owned(),
                });
            }
        }
    }
    offers
}
