//! Routes of the node to the blocks of other nodes. Owns the routes of ours in the main table that
//! have a next hop or lead nowhere; never touches those to pods, which have neither.

use crate::effect::effect;
use crate::managed::{self, Hop, Managed};
use crate::{NetlinkError, NodeSide, Socket};
use ipnet::IpNet;
use plexus_core::fabric::{BlockRoute, ExistingRoutes};
use plexus_types::Family;

/// Routes that are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum FabricError {
    /// They cannot be read.
    #[error("cannot read the node's routes to other nodes")]
    Read(#[from] NetlinkError),
    /// Some could not be set; all others are as wanted.
    #[error(
        "cannot change {failed} of the node's routes to other nodes: is there a route of somebody else's to the same destination?"
    )]
    Change {
        /// How many.
        failed: usize,
        /// Why the first was refused.
        #[source]
        source: NetlinkError,
    },
}

/// The node's routes to other nodes' blocks, and its own blocks of which the rest is unreachable, as they are.
pub fn routes(node: &NodeSide) -> Result<ExistingRoutes, FabricError> {
    let found = node.with_socket(present)?;
    let mut existing = ExistingRoutes::default();
    for Managed { dst, hop } in found {
        match hop {
            Hop::Via { via, .. } => {
                existing.to_blocks.insert(BlockRoute { dst, via });
            }
            Hop::Unreachable => {
                existing.own.insert(dst);
            }
            Hop::Link(_) => {}
        }
    }
    Ok(existing)
}

/// Makes the node's routes to other nodes' blocks exactly these; what goes to an address of the
/// node's `own` blocks that no pod has is unreachable instead of going round in circles. Gives the
/// number of changes.
pub fn set_routes(
    node: &NodeSide,
    routes: &[BlockRoute],
    own: &[IpNet],
) -> Result<usize, FabricError> {
    let to_others = routes
        .iter()
        .map(|route| Managed::through(route.dst, route.via, None));
    let nowhere = own.iter().map(|block| Managed::unreachable(*block));
    let wanted: Vec<_> = to_others.chain(nowhere).collect();
    node.with_socket(|socket| {
        let have = present(socket)?;
        let (mut requests, additions) = managed::changes(&have, &wanted);
        requests.extend(additions);
        let refused = socket.batch_all(effect!("netlink.fabric"), &requests)?;
        let failed = refused.len();
        match refused.into_iter().next() {
            None => Ok(requests.len()),
            Some(first) => Err(FabricError::Change {
                failed,
                source: first.into(),
            }),
        }
    })
}

/// All that this file owns.
fn present(socket: &mut Socket) -> Result<Vec<Managed>, NetlinkError> {
    let mut have = Vec::new();
    for family in Family::ALL {
        have.extend(managed::all(socket, family)?);
    }
    have.retain(|route| !matches!(route.hop, Hop::Link(_)));
    // Which link leads to the next hop is the kernel's answer, not our question.
    for route in &mut have {
        if let Hop::Via { link, .. } = &mut route.hop {
            *link = None;
        }
    }
    Ok(have)
}
