//! The links by which the node's 127.0.0.1 leads to pods: `route_localnet` of pods' ends on the node and of
//! bridges. Only of what we made: what others' bridges let through is theirs to say. Whoever opens one has
//! the guard in place.

use super::HostPortError;
use crate::nft::NftError;
use crate::observe::{link_by_name, links};
use crate::sysctl::{self, SysctlError};
use crate::{NetlinkError, NodeSide, bridge};
use plexus_core::plan::{ALIAS_MARK, ObservedLink, Setting};
use plexus_types::{IfName, NetnsCookie};
use std::collections::BTreeSet;
use std::io;

/// Opens those of these links that are ours.
pub(super) fn open(node: &NodeSide, names: &BTreeSet<IfName>) -> Result<(), HostPortError> {
    if names.is_empty() {
        return Ok(());
    }
    let here = cookie(node)?;
    let found = node.with_socket(|socket| {
        let each = names.iter().map(|name| link_by_name(socket, name.as_str()));
        each.collect::<Result<Vec<_>, NetlinkError>>()
    })?;
    let ours = found.iter().flatten().filter(|link| is_ours(link, here));
    set(node, ours, "1").map(drop)
}

/// Closes all links of ours but these; gives those that were open.
pub(crate) fn close(node: &NodeSide, but: &BTreeSet<IfName>) -> Result<Vec<String>, HostPortError> {
    let here = cookie(node)?;
    let found = node.with_socket(links)?;
    let stays = |link: &&ObservedLink| but.iter().any(|name| name.as_str() == link.name);
    let ours = found.iter().filter(|link| is_ours(link, here));
    set(node, ours.filter(|link| !stays(link)), "0")
}

fn cookie(node: &NodeSide) -> Result<NetnsCookie, HostPortError> {
    Ok(node.netns().cookie().map_err(NftError::from)?)
}

fn is_ours(link: &ObservedLink, here: NetnsCookie) -> bool {
    let mark = link.alias.as_deref().unwrap_or_default();
    let is_end = link.kind == "veth" && link.name.starts_with("px") && mark.starts_with(ALIAS_MARK);
    is_end || bridge::is_ours(link, here)
}

/// Tries all; a link that is gone has nobody to lead to. Gives those that were changed.
fn set<'l>(
    node: &NodeSide,
    links: impl Iterator<Item = &'l ObservedLink>,
    value: &str,
) -> Result<Vec<String>, HostPortError> {
    let (mut changed, mut failed) = (Vec::new(), None);
    node.inside(|| {
        for link in links {
            let setting = Setting {
                key: format!("net/ipv4/conf/{}/route_localnet", link.name),
                value: value.to_owned(),
            };
            match sysctl::ensure(&setting) {
                Ok(true) => changed.push(link.name.clone()),
                Ok(false) => {}
                Err(SysctlError::Write { source, .. })
                    if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => failed = failed.take().or(Some(error)),
            }
        }
    })
    .map_err(NftError::from)?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(changed),
    }
}
