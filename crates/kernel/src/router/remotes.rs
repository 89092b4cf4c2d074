//! What a router knows of other nodes: behind which address a MAC is, where a next hop is, and which
//! blocks it leads to. Owns the forwarding table, the permanent neighbours and the routes of the
//! VXLAN device, and those that lead nowhere inside the network's subnets; state is per node and
//! block, never per pod.

use super::{RouterError, VXLAN, link_local, vxlan};
use crate::effect::effect;
use crate::managed::{self, Managed};
use crate::netlink::Request;
use crate::observe::list;
use crate::{NetlinkError, NodeSide, Socket, fdb, neighbour};
use ipnet::IpNet;
use plexus_core::fabric::Remote;
use plexus_core::plan::{Neighbour, Router};
use plexus_types::{Family, Mac};
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
        let device = device.ok_or_else(|| RouterError::vanished(&router.name, VXLAN))?;
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
    neighbours: BTreeMap<IpAddr, Option<Mac>>,
    routes: Vec<Managed>,
}

impl Known {
    fn desired(router: &Router, remotes: &[Remote], islands: &[IpNet], index: u32) -> Self {
        let mut known = Known::default();
        let nowhere = islands.iter().map(|island| Managed::unreachable(*island));
        let nowhere = nowhere.filter(|route| is_inside(router, &route.dst));
        known.routes.extend(nowhere);
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
                known
                    .routes
                    .push(Managed::through(*block, via, Some(index)));
            }
        }
        known
    }

    fn read(socket: &mut Socket, router: &Router, index: u32) -> Result<Self, NetlinkError> {
        let mut known = Known::default();
        let entries = list(socket, fdb::list(index), fdb::read)?.into_iter();
        let entries = entries.filter(|(link, _)| *link == index);
        known.fdb.extend(entries.map(|(_, entry)| entry));
        for family in Family::ALL {
            let found = list(socket, neighbour::list_of(family, index), neighbour::read)?;
            let found = found.into_iter().filter(|n| n.link == index);
            known.neighbours.extend(found.map(|n| (n.address, n.mac)));
            known
                .routes
                .extend(managed::all_through(socket, family, index)?);
            let nowhere = managed::all_unreachable(socket, family)?.into_iter();
            let inside = nowhere.filter(|route| is_inside(router, &route.dst));
            known.routes.extend(inside);
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
        let gone = gone.filter(|entry| !moved.contains(&entry.mac));
        requests.extend(gone.map(|entry| entry.delete(index)));
        let known = self.neighbours.keys();
        let unwanted = known.filter(|address| !wanted.neighbours.contains_key(address));
        requests.extend(unwanted.map(|address| neighbour::delete(index, *address)));
        let new = wanted.fdb.difference(&self.fdb);
        requests.extend(new.map(|entry| entry.add(index)));
        for (address, mac) in &wanted.neighbours {
            let Some(mac) = mac.filter(|_| self.neighbours.get(address) != Some(mac)) else {
                continue;
            };
            let address = *address;
            requests.push(neighbour::add(VXLAN, index, &Neighbour { address, mac }));
        }
        requests.extend(additions);
        requests
    }
}
