//! Takes everything of ours off the node, for good: routers, routes, bridges, the firewall's table; and a bridge
//! alone, when its network is gone. Nothing without our mark is touched. Tries everything, reports every error, and
//! may be repeated. Pods' links are not its business: they are removed pod by pod.

use crate::effect::effect;
use crate::nft::chain::{commit, delete_table};
use crate::nft::host_ports::loopback;
use crate::node_side::lock;
use crate::observe::{addresses_of, link_by_name, links};
use crate::{NetlinkError, NodeSide, Socket, address, bridge, fabric, link, nft, router};
use plexus_core::plan::{self, ObservedLink};
use plexus_types::IfName;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// What was removed.
    pub done: Vec<String>,
    /// What could not be, and why.
    pub problems: Vec<String>,
    /// What is left on purpose, and why.
    pub left: Vec<String>,
}

impl Cleared {
    fn note<T, E: Error>(&mut self, what: &str, result: Result<T, E>) -> Option<T> {
        let problem = |error: E| {
            let mut text = format!("{what}: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                text += &format!(": {cause}");
                source = cause.source();
            }
            self.problems.push(text);
        };
        result.map_err(problem).ok()
    }
}

/// Takes routers, routes to other nodes, our table, and those of these bridges that we have made and
/// nobody else uses, off the node.
pub fn clear(node: &NodeSide, bridges: &[IfName]) -> Cleared {
    let mut cleared = Cleared::default();
    routers(node, &mut cleared);
    if let Some(changes) = cleared.note("routes", fabric::set_routes(node, &[], &[]))
        && changes > 0
    {
        cleared.done.push(format!("{changes} routes"));
    }
    for name in bridges {
        let removed = node.with_socket(|socket| remove_bridge(node, socket, name));
        match cleared.note(&format!("bridge {name}"), removed) {
            Some(Bridge::Removed) => cleared.done.push(format!("bridge {name}")),
            Some(Bridge::Left(why)) => cleared.left.push(format!("bridge {name}: {why}")),
            Some(Bridge::Absent) | None => {}
        }
    }
    // The table keeps pods from the node's loopback, which links that stay must not lead to without it.
    let closed = loopback::close(node, &BTreeSet::new());
    if cleared.note("route_localnet", closed).is_some()
        && cleared.note("table inet plexus", table(node)).is_some()
    {
        cleared.done.push("nftables table inet plexus".to_owned());
    }
    cleared
}

/// Takes a bridge of a network that is gone off the node, if we have made it and nobody else uses it; else its gateway
/// addresses that none of `others` has there. Says what was removed.
pub fn bridge_of_network(
    node: &NodeSide,
    gone: &plan::Bridge,
    others: &[plan::Bridge],
) -> Result<Vec<String>, NetlinkError> {
    let name = &gone.name;
    let there = || others.iter().filter(|other| other.name == *name);
    node.with_socket(|socket| {
        if there().next().is_none()
            && let Bridge::Removed = remove_bridge(node, socket, name)?
        {
            return Ok(vec![format!("bridge {name}")]);
        }
        let found = link_by_name(socket, name.as_str())?;
        let cookie = node.netns().cookie()?;
        let Some(found) = found.filter(|found| bridge::is_ours(found, cookie)) else {
            return Ok(Vec::new());
        };
        let have = addresses_of(socket, found.index)?;
        let unused = gone.addresses.iter().filter(|address| {
            let is_there = have.iter().any(|one| one.net == **address);
            is_there && !there().any(|other| other.addresses.contains(address))
        });
        let requests: Vec<_> = unused
            .map(|net| address::delete(name.as_str(), found.index, *net))
            .collect();
        socket.batch(effect!("netlink.bridge-address"), &requests)?;
        Ok(requests.into_iter().map(|request| request.what).collect())
    })
}

fn routers(node: &NodeSide, cleared: &mut Cleared) {
    let Some(dir) = node.routers_dir().map(Path::to_owned) else {
        return;
    };
    let there = cleared.note("routers", router::list(&dir));
    for name in there.unwrap_or_default() {
        if cleared.note(&format!("router {name}"), router::remove(node, &name)) == Some(true) {
            cleared.done.push(format!("router {name}"));
        }
    }
}

enum Bridge {
    Removed,
    Absent,
    Left(&'static str),
}

fn remove_bridge(
    node: &NodeSide,
    socket: &mut Socket,
    name: &IfName,
) -> Result<Bridge, NetlinkError> {
    let Some(found) = link_by_name(socket, name.as_str())? else {
        return Ok(Bridge::Absent);
    };
    if !bridge::is_ours(&found, node.netns().cookie()?) {
        return Ok(Bridge::Left("somebody else made it"));
    }
    let all = links(socket)?;
    let is_on_it = |one: &ObservedLink| {
        let stacked = one.parent == Some(found.index) && !one.is_parent_elsewhere();
        one.master == Some(found.index) || stacked
    };
    if all.iter().any(is_on_it) {
        return Ok(Bridge::Left("it has ports or links that are not ours"));
    }
    let request = link::delete(name.as_str(), found.index);
    socket.batch(effect!("netlink.bridge-delete"), &[request])?;
    Ok(Bridge::Removed)
}

/// Whether it was there is not asked: it is made and deleted in one transaction.
fn table(node: &NodeSide) -> Result<(), NetlinkError> {
    let _alone = lock(&node.firewall);
    node.inside(|| commit(&mut Socket::netfilter()?, [delete_table()]))??;
    *node.table() = nft::Table::default();
    Ok(())
}
