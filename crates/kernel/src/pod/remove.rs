//! Removing a pod's interfaces: needs no memory of how far their making went, can be repeated,
//! tries everything and reports every error. What was made is deleted, what was moved is given back.

use crate::effect::{Effect, effect};
use crate::netlink::Request;
use crate::nft::host_ports::HostPortError;
use crate::node_side::Home;
use crate::observe::{link_by_name, links, list};
use crate::router::{self, RouterError};
use crate::{NetlinkError, Netns, NodeSide, Socket, Sysfs, link, nft, rule};
use plexus_core::attachment::{Alias, MovedMark};
use plexus_core::plan::{HostEnd, ObservedLink, PodPlan, RULE_PRIORITY, Rule};
use plexus_types::{Family, NetnsCookie, RouterName};
use std::collections::BTreeSet;
use std::fmt;

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// Links in the pod's namespace.
    pub in_pod: usize,
    /// Links on the node that were still there after that.
    pub on_node: usize,
    /// Rules in the pod's namespace.
    pub rules: usize,
    /// Devices that are the node's again.
    pub returned: usize,
    /// What could not be given back as it was.
    pub warnings: Vec<String>,
}

/// Something may still be there.
#[derive(Debug)]
pub struct RemoveError {
    /// Every failure, in order.
    pub errors: Vec<NetlinkError>,
    /// Why ports of the node may still lead to the pod.
    pub ports: Option<HostPortError>,
    /// What was removed all the same.
    pub removed: Removed,
}

impl fmt::Display for RemoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot remove all of the pod's interfaces, {} failures",
            self.errors.len() + usize::from(self.ports.is_some())
        )?;
        // The first is in the chain.
        self.errors
            .iter()
            .skip(1)
            .try_for_each(|error| write!(f, "; {error}"))
    }
}

impl std::error::Error for RemoveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let first = self.errors.first().map(|error| error as _);
        first.or(self.ports.as_ref().map(|error| error as _))
    }
}

/// Removes what the plan made. A link is taken only if it is known to be the plan's, under whatever name it has now:
/// see [`is_of_plan`]. What is gone already counts as removed. A device of the node is given back
/// to it, wherever it is.
///
/// Without a namespace only the node's ends and devices are looked for: the rest went with the namespace.
pub fn remove(
    plan: &PodPlan,
    pod: Option<&Netns>,
    node: &NodeSide,
) -> Result<Removed, RemoveError> {
    let mut work = Work::default();
    let moved = plan.links.iter();
    for one in moved.filter_map(|link| Some((link, link.kind.moved()?))) {
        work.attempt(|work| work.give_back(one, pod, node));
    }
    if let Some(pod) = pod {
        work.attempt(|work| {
            let mut socket = node.socket_in(pod)?;
            let found = links(&mut socket)?;
            work.delete_rules(&mut socket, plan)?;
            let ours: Vec<_> = found.iter().filter(|link| is_of_plan(link, plan)).collect();
            let in_group = found.iter().filter(|link| link.group == plan.group).count();
            let whole = plan.group != 0 && ours.iter().all(|link| link.group == plan.group);
            let requests = if ours.len() > 1 && whole && in_group == ours.len() {
                vec![link::delete_group(plan.group)]
            } else {
                deletions(&ours)
            };
            let effect = effect!("netlink.pod-delete");
            let refused = work.run(&mut socket, effect, &requests)?;
            work.removed.in_pod += ours.len().saturating_sub(refused);
            Ok(())
        });
    }
    for end in plan.links.iter().filter_map(|link| link.kind.host_end()) {
        work.attempt(|work| {
            let Some(home) = present(node.home(end.router.as_ref()))? else {
                return Ok(());
            };
            node.with_home(&home, |socket| work.delete_host_end(socket, end))
        });
    }
    if !plan.host_ports.is_empty()
        && let Err(error) = nft::host_ports::remove(node, plan)
    {
        work.ports = Some(error);
    }
    node.procfs.clean();
    work.finish()
}

/// Removes the links that carry our mark for this node, container and CNI_IFNAME, in the pod's namespace
/// and on the node: for when there is no plan. Those whose mark says that they were moved are given back, as far as the
/// mark tells how they were.
pub fn remove_marked(
    pod: Option<&Netns>,
    here: NetnsCookie,
    container: &str,
    cni_ifname: &str,
    node: &NodeSide,
) -> Result<Removed, RemoveError> {
    let mut work = Work::default();
    let marked = |link: &ObservedLink| {
        let mark = link.alias.as_deref();
        mark.is_some_and(|mark| Alias::is_of(mark, here, container, cni_ifname))
    };
    if let Some(pod) = pod {
        work.attempt(|work| {
            let mut socket = node.socket_in(pod)?;
            work.delete_marked_rules(&mut socket, marked)?;
            let found = links(&mut socket)?;
            for seen in found.iter().filter(|link| marked(link)) {
                work.give_back_marked(&mut socket, &found, seen, node)?;
            }
            work.removed.in_pod += work.delete_where(&mut socket, marked)?;
            Ok(())
        });
    }
    for router in std::iter::once(None).chain(routers(node).iter().map(Some)) {
        work.attempt(|work| {
            let Some(home) = present(node.home(router))? else {
                return Ok(());
            };
            node.with_home(&home, |socket| {
                work.restore_marked(socket, marked)?;
                work.removed.on_node += work.delete_where(socket, marked)?;
                Ok(())
            })
        });
    }
    work.finish()
}

/// The routers that are there; none if the node has none.
fn routers(node: &NodeSide) -> Vec<RouterName> {
    let found = node.routers_dir().map(router::list);
    found.and_then(Result::ok).unwrap_or_default()
}

/// A home, or none because it is gone with all that was in it.
fn present(home: Result<Home, RouterError>) -> Result<Option<Home>, NetlinkError> {
    match home {
        Ok(home) => Ok(Some(home)),
        Err(RouterError::Netns(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

#[derive(Default)]
pub(super) struct Work {
    pub(super) removed: Removed,
    pub(super) sysfs: Sysfs,
    errors: Vec<NetlinkError>,
    ports: Option<HostPortError>,
}

impl Work {
    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> Result<(), NetlinkError>) {
        if let Err(error) = step(self) {
            self.errors.push(error);
        }
    }

    fn finish(self) -> Result<Removed, RemoveError> {
        if self.errors.is_empty() && self.ports.is_none() {
            return Ok(self.removed);
        }
        Err(RemoveError {
            errors: self.errors,
            ports: self.ports,
            removed: self.removed,
        })
    }

    /// Keeps the refusals that matter and counts them: what is gone already is fine.
    fn run(
        &mut self,
        socket: &mut Socket,
        effect: Effect,
        requests: &[Request],
    ) -> Result<usize, NetlinkError> {
        let refused = socket.batch_all(effect, requests)?;
        let refused = refused.into_iter().map(NetlinkError::from);
        let before = self.errors.len();
        let refused = refused.filter(|error| !error.is_missing());
        self.errors.extend(refused);
        Ok(self.errors.len() - before)
    }

    fn delete_rules(&mut self, socket: &mut Socket, plan: &PodPlan) -> Result<(), NetlinkError> {
        let rules = plan.links.iter().flat_map(|link| &link.rules);
        let delete = |rule: &Rule| rule::delete(rule.from, rule.table, rule.priority);
        let rules: Vec<_> = rules.map(delete).collect();
        let refused = self.run(socket, effect!("netlink.pod-rules"), &rules)?;
        self.removed.rules += rules.len() - refused;
        Ok(())
    }

    /// Rules do not go with the link. Ours are known by their priority and by the address in the
    /// mark of the link that they were made for.
    fn delete_marked_rules(
        &mut self,
        socket: &mut Socket,
        wanted: impl Fn(&ObservedLink) -> bool,
    ) -> Result<(), NetlinkError> {
        let marked = links(socket)?;
        let marks = marked.iter().filter(|link| wanted(link));
        let addresses: BTreeSet<_> = marks
            .filter_map(|link| Alias::parse(link.alias.as_deref()?))
            .flat_map(|mark| mark.addresses)
            .map(|net| net.addr())
            .collect();
        let families: BTreeSet<_> = addresses.iter().copied().map(Family::of).collect();
        let mut requests = Vec::new();
        for family in families {
            for found in list(socket, rule::list(family), rule::read)? {
                if found.priority == RULE_PRIORITY && addresses.contains(&found.from.addr()) {
                    requests.push(rule::delete(found.from, found.table, found.priority));
                }
            }
        }
        let refused = self.run(socket, effect!("netlink.marked-rules"), &requests)?;
        self.removed.rules += requests.len() - refused;
        Ok(())
    }

    fn delete_host_end(&mut self, socket: &mut Socket, end: &HostEnd) -> Result<(), NetlinkError> {
        let found = link_by_name(socket, end.name.as_str())?;
        if let Some(found) = found.filter(|found| has_owner_of(found, &end.alias)) {
            let deletion = deletions(&[&found]);
            let refused = self.run(socket, effect!("netlink.node-delete"), &deletion)?;
            self.removed.on_node += 1 - refused;
        }
        Ok(())
    }

    fn delete_where(
        &mut self,
        socket: &mut Socket,
        wanted: impl Fn(&ObservedLink) -> bool,
    ) -> Result<usize, NetlinkError> {
        let found = links(socket)?;
        let made = found.iter().filter(|link| !is_moved(link));
        let ours: Vec<_> = made.filter(|link| wanted(link)).collect();
        let refused = self.run(socket, effect!("netlink.marked-delete"), &deletions(&ours))?;
        Ok(ours.len().saturating_sub(refused))
    }
}

fn deletions(links: &[&ObservedLink]) -> Vec<Request> {
    let delete = |link: &&ObservedLink| link::delete(&link.name, link.index);
    links.iter().map(delete).collect()
}

/// Whether we cannot have made it: its mark says so, or nobody can make such a link.
fn is_moved(found: &ObservedLink) -> bool {
    let mark = found.alias.as_deref();
    found.kind.is_empty() || mark.is_some_and(|mark| MovedMark::of(mark).is_some())
}

/// Whether a link of the pod's namespace is one of the plan. A pod can rename its links and write on them what it likes:
/// one that still has its name, our mark, or the place on the node that it was made on with our group or its MAC, is
/// ours.
pub(super) fn is_of_plan(found: &ObservedLink, plan: &PodPlan) -> bool {
    let mut made = plan.links.iter().filter(|link| link.kind.moved().is_none());
    let in_group = plan.group != 0 && found.group == plan.group;
    made.any(|link| {
        let named =
            link.name.as_str() == found.name && (in_group || has_owner_of(found, &link.alias));
        let stacked = link.kind.stacked().is_some_and(|stacked| {
            stacked.kind == found.kind
                && found.parent == Some(stacked.parent.index)
                && found.is_parent_elsewhere()
        });
        let is_same = in_group || link.mac.is_some() && found.mac == link.mac;
        named || found.alias.as_ref() == Some(&link.alias) || stacked && is_same
    })
}

/// Whether a link of the plan is in the pod's namespace, under whatever name.
pub fn is_there(plan: &PodPlan, pod: &Netns, node: &NodeSide) -> Result<bool, NetlinkError> {
    let mut socket = node.socket_in(pod)?;
    let found = links(&mut socket)?;
    Ok(found.iter().any(|link| is_of_plan(link, plan)))
}

/// Whether a link's mark is of the same call as the planned one.
pub(super) fn has_owner_of(found: &ObservedLink, planned: &str) -> bool {
    let mark = found.alias.as_deref();
    mark.is_some_and(|mark| Alias::same_owner(mark, planned))
}
