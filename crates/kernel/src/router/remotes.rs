//! What a router knows of other nodes: behind which address a MAC is, where a next hop is, and which
//! blocks it leads to. Owns the forwarding table, the permanent neighbours and the routes of the
//! VXLAN device, and those that lead nowhere inside the network's subnets; state is per node and
//! block, never per pod.

use super::{RouterError, VXLAN, link_local, vxlan};
use crate::effect::effect;
use crate::managed::{self, Hop, Managed};
use crate::netlink::Request;
use crate::observe::list;
use crate::{NetlinkError, NodeSide, Socket, fdb, neighbour};
use ipnet::IpNet;
use plexus_core::fabric::Remote;
use plexus_core::plan::{Neighbour, ObservedNeighbour, Router};
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Makes what a router knows of other nodes exactly this, by difference; gives the number of
/// changes. `islands` are this node's blocks inside another's: what no pod has of them leads nowhere,
/// or it would go to that node, and back. The router must have been [`ensured`](super::ensure()).
pub fn set_remotes(
    node: &NodeSide,
    router: &Router,
    remotes: &[Remote],
    islands: &[IpNet],
) -> Result<usize, RouterError> {
    let failed = RouterError::netlink(&router.name);
    let home = node.home(Some(&router.name))?;
    node.with_home(&home, |socket| {
        let device = vxlan::find(socket).map_err(failed)?;
        let device = device.ok_or_else(|| RouterError::Vanished {
            router: router.name.clone(),
            link: VXLAN.into(),
        })?;
        let index = device.link.index;
        let wanted = Known::desired(router, remotes, islands, index);
        let have = Known::read(socket, router, index).map_err(failed)?;
        let requests = have.changes_to(&wanted, index);
        let refused = socket
            .batch_all(effect!("router.remotes"), &requests)
            .map_err(failed)?;
        match refused.into_iter().find(|r| r.errno != libc::ESRCH) {
            None => Ok(requests.len()),
            Some(refused) => Err(failed(refused.into())),
        }
    })
}

/// Whether it is a part of one of the network's subnets: what leads nowhere there is about blocks,
/// the whole subnet is the router's own matter.
pub(super) fn is_inside(router: &Router, dst: &IpNet) -> bool {
    let mut subnets = router.subnets.iter();
    subnets.any(|subnet| subnet.contains(dst) && subnet.prefix_len() < dst.prefix_len())
}

/// Everything that is known of other nodes.
#[derive(Debug, Default)]
struct Known {
    fdb: BTreeSet<fdb::Entry>,
    neighbours: BTreeMap<IpAddr, Option<plexus_types::Mac>>,
    routes: Vec<Managed>,
}

impl Known {
    fn desired(router: &Router, remotes: &[Remote], islands: &[IpNet], index: u32) -> Self {
        let mut known = Known::default();
        let nowhere = islands.iter().map(|island| Managed {
            dst: island.trunc(),
            hop: Hop::Unreachable,
        });
        known
            .routes
            .extend(nowhere.filter(|route| is_inside(router, &route.dst)));
        for remote in remotes {
            let hop6 = link_local(remote.mac);
            // The kernel takes no address of its own as a next hop.
            let hop4 = match remote.underlay {
                IpAddr::V4(_) if !router.gateways.contains(&remote.underlay) => remote.underlay,
                _ => hop6,
            };
            known.fdb.insert(fdb::Entry {
                mac: remote.mac,
                node: remote.underlay,
            });
            for block in &remote.blocks {
                let via = match Family::of(block.addr()) {
                    Family::V4 => hop4,
                    Family::V6 => hop6,
                };
                known.neighbours.insert(via, Some(remote.mac));
                known.routes.push(Managed {
                    dst: block.trunc(),
                    hop: Hop::Via {
                        via,
                        link: Some(index),
                    },
                });
            }
        }
        known
    }

    fn read(socket: &mut Socket, router: &Router, index: u32) -> Result<Self, NetlinkError> {
        let entries = list(socket, fdb::list(index), fdb::read)?;
        let mut known = Known {
            fdb: entries
                .into_iter()
                .filter(|(link, _)| *link == index)
                .map(|(_, entry)| entry)
                .collect(),
            ..Known::default()
        };
        for family in Family::ALL {
            let found: Vec<ObservedNeighbour> =
                list(socket, neighbour::list_of(family, index), neighbour::read)?;
            let found = found.into_iter().filter(|n| n.link == index);
            known.neighbours.extend(found.map(|n| (n.address, n.mac)));
            let routes = list(socket, managed::list_through(family, index), Managed::read)?;
            let through =
                |route: &Managed| matches!(route.hop, Hop::Via { link, .. } if link == Some(index));
            known.routes.extend(routes.into_iter().filter(through));
            let nowhere = list(socket, managed::list_unreachable(family), Managed::read)?;
            let inside =
                |route: &Managed| route.hop == Hop::Unreachable && is_inside(router, &route.dst);
            known.routes.extend(nowhere.into_iter().filter(inside));
        }
        Ok(known)
    }

    /// What leads somewhere is taken away before, and set after, what it leads to.
    fn changes_to(&self, wanted: &Known, index: u32) -> Vec<Request> {
        let (deletions, additions) = managed::changes(&self.routes, &wanted.routes);
        let mut requests = deletions;
        // Of a MAC that moves, the new place replaces the old one.
        let moved: BTreeSet<_> = wanted.fdb.iter().map(|entry| entry.mac).collect();
        let gone = self.fdb.difference(&wanted.fdb);
        requests.extend(
            gone.filter(|e| !moved.contains(&e.mac))
                .map(|e| e.delete(index)),
        );
        let unwanted = self
            .neighbours
            .keys()
            .filter(|a| !wanted.neighbours.contains_key(a));
        requests.extend(unwanted.map(|address| neighbour::delete(index, *address)));
        let new = wanted.fdb.difference(&self.fdb);
        requests.extend(new.map(|entry| entry.add(index)));
        for (address, mac) in &wanted.neighbours {
            let Some(mac) = mac.filter(|_| self.neighbours.get(address) != Some(mac)) else {
                continue;
            };
            let neighbour = Neighbour {
                address: *address,
                mac,
            };
            requests.push(neighbour::add(VXLAN, index, &neighbour));
        }
        requests.extend(additions);
        requests
    }
}
