//! What lives of pods whose namespaces nobody can find. Asks the node's side, which no pod can change.

use super::ApplyError;
use super::remove::is_of_plan;
use crate::observe::link_by_name;
use crate::{NetlinkError, NodeSide, nsid};
use plexus_core::plan::{ObservedLink, PodPlan};

/// The name of a link that shows that the plan's pod lives, if there is one: a veth's end on the node lives exactly as
/// long as the end in the pod, and other links are found by the number that the node has for the pod's namespace.
///
/// An error is no evidence: the pod may live.
pub fn living(plan: &PodPlan, node: &NodeSide) -> Result<Option<String>, ApplyError> {
    let netlink = ApplyError::on_node(node);
    for end in plan.links.iter().filter_map(|link| link.kind.host_end()) {
        let home = match node.home(end.router.as_ref()) {
            Ok(home) => home,
            // The ends in it went with it.
            Err(error) if error.is_gone() => continue,
            Err(error) => return Err(Box::new(error).into()),
        };
        let found = node.with_home(&home, |socket| link_by_name(socket, end.name.as_str()));
        if let Some(link) = found.map_err(netlink)? {
            return Ok(Some(link.name));
        }
    }
    if !is_numbered(plan) {
        return Ok(None);
    }
    let unseen = node.with_socket(nsid::links).map_err(netlink)?;
    let found = unseen.into_iter().find(|link| is_of_plan(link, plan));
    Ok(found.map(|link| link.name))
}

/// The links of pods whose parents or peers are on the node, also in namespaces that nothing shows, as long as the node has
/// numbers for these.
pub fn on_node(node: &NodeSide) -> Result<Vec<ObservedLink>, NetlinkError> {
    node.with_socket(|socket| {
        let mut links = nsid::links(socket)?;
        // To say of the first of them where its parent is, the kernel gives the node a number for itself.
        let here = nsid::number_of(socket, node.netns())?;
        links.retain(|link| here.is_some() && link.parent_netns == here);
        Ok(links)
    })
}

/// Whether the node needs a number for the pod's namespace: it has no end of some link.
pub(super) fn is_numbered(plan: &PodPlan) -> bool {
    let mut links = plan.links.iter();
    links.any(|link| link.kind.stacked().is_some())
}
