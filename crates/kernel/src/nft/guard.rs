//! What keeps pods apart on the node, in chains of `inet plexus` that are wholly ours: nobody sends
//! under another's address, no router reaches another, and no pod speaks our tunnels' protocol.
//!
//! ```text
//! chain sources { type filter hook prerouting priority raw;
//!   iifgroup CHECKED fib saddr . iif oif missing drop }
//! chain forward { type filter hook forward priority filter;
//!   iifgroup ROUTER oifgroup ROUTER drop
//!   iifname "px*" udp dport 4789 drop }
//! chain input   { type filter hook input priority filter;
//!   iifname "px*" udp dport 4789 drop }
//! chain tunnels { type filter hook input priority filter;
//!   udp dport 4789 ip saddr != @peers4 drop … }
//! chain through { type filter hook forward priority filter; the same }
//! ```
//!
//! Which links are checked is told by their group, so that no pod needs a rule of its own. The last
//! two are there where routers are: pods of other CNIs have links of any name, and would otherwise
//! write into networks that are not theirs, from here or, under this node's address, on another.
//! Until the first [`set_peers`] nobody is a peer. What the sets have outlives the agent.

use super::chain::{Chain, DesiredRule, Hook, commit, differing, fill};
use super::encode::{
    Attributes, Meta, cmp, destination_port, fib_source_present, meta, missing_in, payload, verdict,
};
use super::{NftError, peers};
use crate::{NodeSide, Socket};
use plexus_core::fabric::VXLAN_PORT;
use plexus_types::Family;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::PoisonError;

/// Group of the host ends whose sources are checked.
pub(crate) const CHECKED: u32 = 0x2000_5080;
/// Group of the node's ends of the links to routers.
pub(crate) const ROUTER: u32 = 0x2000_5081;

/// Makes the nodes that tunnels are spoken to by exactly these: all others' addresses on the
/// underlay. Gives the number of addresses that were changed.
pub fn set_peers(node: &NodeSide, peers: &[IpAddr]) -> Result<usize, NftError> {
    let wanted: BTreeSet<IpAddr> = peers.iter().map(IpAddr::to_canonical).collect();
    let _alone = node.firewall.lock().unwrap_or_else(PoisonError::into_inner);
    let changed = node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        peers::write(&mut socket, &wanted).map_err(NftError::Change)
    })??;
    *node.peers.lock().unwrap_or_else(PoisonError::into_inner) = Some(wanted);
    Ok(changed)
}

/// Makes sure that the rules are there that every node needs; says what was changed.
pub(crate) fn ensure(node: &NodeSide) -> Result<Vec<String>, NftError> {
    ensure_chains(node, false)
}

/// … and those of a node with routers.
pub(crate) fn ensure_for_routers(node: &NodeSide) -> Result<Vec<String>, NftError> {
    ensure_chains(node, true)
}

fn ensure_chains(node: &NodeSide, routers: bool) -> Result<Vec<String>, NftError> {
    node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        let due = differing(&mut socket, &desired_chains(routers)).map_err(NftError::List)?;
        if due.is_empty() && node.table().is_guarded(routers) {
            return Ok(Vec::new());
        }
        let _alone = node.firewall.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = write(node, &mut socket, routers)?;
        node.table().guard(routers);
        Ok(changes)
    })?
}

/// Fills the chains that differ. For who holds the firewall.
pub(super) fn write(
    node: &NodeSide,
    socket: &mut Socket,
    routers: bool,
) -> Result<Vec<String>, NftError> {
    let due = differing(socket, &desired_chains(routers)).map_err(NftError::List)?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    if routers {
        commit(socket, peers::create()).map_err(NftError::Change)?;
        write_peers(node, socket)?;
    }
    let changes = desired_chains(routers)
        .into_iter()
        .filter(|c| due.contains(&c.name));
    commit(socket, changes.flat_map(fill)).map_err(NftError::Change)?;
    Ok(due.iter().map(|c| format!("fill chain {c}")).collect())
}

/// Should somebody have removed the table, those that were told last come back with it.
pub(super) fn write_peers(
    node: &NodeSide,
    socket: &mut Socket,
) -> Result<Option<String>, NftError> {
    let peers = node.peers.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(peers) = &*peers else {
        return Ok(None);
    };
    let changed = peers::write(socket, peers).map_err(NftError::Change)?;
    Ok((changed > 0).then(|| format!("tell {changed} peers")))
}

/// The chains of every node, and those of one with routers.
pub(super) fn desired_chains(routers: bool) -> Vec<Chain> {
    let of_routers = tunnels().into_iter().filter(|_| routers);
    chains().into_iter().chain(of_routers).collect()
}

/// `fib saddr . iif oif missing drop`
pub(crate) fn drop_foreign_source() -> [(&'static str, Attributes); 3] {
    [
        ("fib", fib_source_present()),
        ("cmp", cmp(true, &[0; 4])),
        ("immediate", verdict(false)),
    ]
}

/// `udp dport 4789 drop`
pub(crate) fn drop_tunnels() -> impl Iterator<Item = (&'static str, Attributes)> {
    to_tunnels()
        .into_iter()
        .chain([("immediate", verdict(false))])
}

/// `udp dport 4789`
fn to_tunnels() -> [(&'static str, Attributes); 4] {
    [
        ("meta", meta(Meta::L4Proto, 1)),
        ("cmp", cmp(true, &[libc::IPPROTO_UDP as u8])),
        ("payload", destination_port(1)),
        ("cmp", cmp(true, &VXLAN_PORT.to_be_bytes())),
    ]
}

/// Matches links whose name begins like that of a host end.
pub(crate) fn from_host_ends() -> [(&'static str, Attributes); 2] {
    [("meta", meta(Meta::IifName, 1)), ("cmp", cmp(true, b"px"))]
}

fn tunnels() -> [Chain; 2] {
    let chain = |name, hook| Chain {
        name,
        kind: "filter",
        hook,
        priority: 0,
        rules: Family::ALL.map(from_strangers).into(),
    };
    [
        chain("tunnels", Hook::Input),
        chain("through", Hook::Forward),
    ]
}

/// `udp dport 4789 ip saddr != @peers4 drop`
fn from_strangers(family: Family) -> DesiredRule {
    let (protocol, source) = match family {
        Family::V4 => (libc::NFPROTO_IPV4, payload(12, 4)),
        Family::V6 => (libc::NFPROTO_IPV6, payload(8, 16)),
    };
    let of_family = [
        ("meta", meta(Meta::NfProto, 1)),
        ("cmp", cmp(true, &[protocol as u8])),
    ];
    let stranger = [
        ("payload", source),
        ("lookup", missing_in(peers::set(family))),
        ("immediate", verdict(false)),
    ];
    let rule = of_family.into_iter().chain(to_tunnels()).chain(stranger);
    DesiredRule::new(
        format!("plexus: only nodes speak to tunnels ({family})"),
        rule,
    )
}

fn chains() -> [Chain; 3] {
    let in_group = |what, group: u32| {
        [
            ("meta", meta(what, 1)),
            ("cmp", cmp(true, &group.to_ne_bytes())),
        ]
    };
    let tunnels = || {
        let rule = from_host_ends().into_iter().chain(drop_tunnels());
        DesiredRule::new("plexus: pods do not speak to tunnels", rule)
    };
    let checked = in_group(Meta::IifGroup, CHECKED).into_iter();
    let sources = DesiredRule::new(
        "plexus: pods send from their own addresses",
        checked.chain(drop_foreign_source()),
    );
    let between = in_group(Meta::IifGroup, ROUTER)
        .into_iter()
        .chain(in_group(Meta::OifGroup, ROUTER))
        .chain([("immediate", verdict(false))]);
    let between = DesiredRule::new("plexus: networks do not meet on the node", between);
    let filter = |name, hook, priority, rules| Chain {
        name,
        kind: "filter",
        hook,
        priority,
        rules,
    };
    [
        filter("sources", Hook::Prerouting, -300, vec![sources]),
        filter("forward", Hook::Forward, 0, vec![between, tunnels()]),
        filter("input", Hook::Input, 0, vec![tunnels()]),
    ]
}
