//! Putting the node's side of a pod right again: ports, routes, neighbours, sysctls. Never touches
//! the pod's own side, and never makes a link: a veth whose node end is gone has lost both.

use super::apply::ApplyError;
use crate::effect::effect;
use crate::observe::link_by_name;
use crate::{NetlinkError, NodeSide, Socket, link, neighbour, route, sysctl};
use plexus_core::plan::{HostEnd, LinkKind, PodPlan};

/// Restores what is missing of the node's ends of a plan. Can be repeated.
pub fn restore_node(plan: &PodPlan, node: &NodeSide) -> Result<(), ApplyError> {
    let netlink = |source: NetlinkError| ApplyError::Netlink {
        netns: node.netns().path().into(),
        source,
    };
    for link in &plan.links {
        let LinkKind::Veth(end) = &link.kind else {
            continue;
        };
        let there = node
            .with_socket(|socket| restore_end(socket, end))
            .map_err(netlink)?;
        if there {
            node.inside(|| write_settings(end))??;
        }
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
    requests.push(link::set_up(name, seen.index));
    requests.extend(
        end.neighbours
            .iter()
            .map(|n| neighbour::add(name, seen.index, n).replacing()),
    );
    requests.extend(
        end.routes
            .iter()
            .map(|r| route::add(name, seen.index, r).replacing()),
    );
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
