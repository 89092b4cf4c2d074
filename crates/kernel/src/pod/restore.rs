//! Putting the node's side of a pod right again: ports, routes, neighbours, sysctls. Never touches
//! the pod's own side, and never makes a link: a veth whose node end is gone has lost both.

use super::apply::ApplyError;
use crate::effect::effect;
use crate::observe::{link_by_name, optional};
use crate::{NetlinkError, NodeSide, Socket, link, neighbour, nft, route, sysctl};
use plexus_core::plan::{HostEnd, PodPlan};

/// Restores what is missing of the node's ends of a plan. Can be repeated.
pub fn restore_node(plan: &PodPlan, node: &NodeSide) -> Result<(), ApplyError> {
    let netlink = ApplyError::on_node(node);
    let ends = || plan.links.iter().filter_map(|link| link.kind.host_end());
    if ends().any(|end| end.router.is_none() && end.source_check) {
        nft::guard::ensure(node)?;
    }
    for end in ends() {
        let home = node.home(end.router.as_ref()).map_err(Box::new)?;
        let there = node.with_home(&home, |socket| restore_end(socket, end));
        if there.map_err(netlink)? {
            node.at(&home, || write_settings(end))??;
        }
    }
    if !plan.host_ports.is_empty() {
        nft::host_ports::add(node, plan)?;
    }
    Ok(())
}

/// Whether the end is there at all.
fn restore_end(socket: &mut Socket, end: &HostEnd) -> Result<bool, NetlinkError> {
    let name = end.name.as_str();
    let Some(seen) = link_by_name(socket, name)? else {
        return Ok(false);
    };
    let mut requests = vec![link::set_alias(name, 0, &end.alias)];
    if let Some(bridge) = &end.bridge
        && let Some(master) = link_by_name(socket, bridge.as_str())?
    {
        if seen.master != Some(master.index) {
            requests.push(link::set_master(name, seen.index, master.index));
        }
        if end.hairpin {
            requests.push(link::set_hairpin(name));
        }
    }
    if let Some(group) = end.group().filter(|group| *group != seen.group) {
        requests.push(link::set_group(name, seen.index, group));
    }
    requests.push(link::set_up(name, seen.index));
    let neighbours = end.neighbours.iter();
    requests.extend(neighbours.map(|n| neighbour::add(name, seen.index, n).replacing()));
    for wanted in &end.routes {
        let found = optional(socket.get(&route::get(wanted.dst), route::read))?;
        let is_ours = found
            .is_some_and(|found| found.dst == wanted.dst.trunc() && found.link == Some(seen.index));
        let add = route::add(name, seen.index, wanted);
        // Whose way to the same destination leads elsewhere keeps it: then the kernel refuses ours.
        requests.push(if is_ours {
            add.replacing()
        } else {
            add.exclusive()
        });
    }
    socket.batch(effect!("netlink.restore"), &requests)?;
    Ok(true)
}

fn write_settings(end: &HostEnd) -> Result<(), ApplyError> {
    end.settings.iter().try_for_each(|setting| {
        sysctl::write(setting).map_err(|source| ApplyError::Setting {
            link: end.name.clone(),
            source,
        })
    })
}
