//! What keeps pods apart on the node, in chains of `inet plexus` that are wholly ours: nobody sends
//! under another's address, no router reaches another, and only nodes speak our tunnels' protocol.
//!
//! ```text
//! chain sources { type filter hook prerouting priority raw;
//!   iifgroup CHECKED fib saddr . iif oif missing drop }
//! chain forward { type filter hook forward priority filter;
//!   iifgroup ROUTER oifgroup ROUTER drop }
//! chain arrivals { type filter hook prerouting priority dstnat + 10;
//!   udp dport 4789 @th,96,24 < 4097 accept
//!   udp dport 4789 ip saddr @peers4 fib saddr . iif oif missing drop … }
//! chain tunnels { type filter hook input priority filter;
//!   udp dport 4789 @th,96,24 < 4097 accept
//!   udp dport 4789 ip saddr != @peers4 drop
//!   udp dport 4789 ip daddr != @peers4 drop … }
//! chain through { type filter hook forward priority filter;
//!   udp dport 4789 @th,96,24 < 4097 accept
//!   udp dport 4789 ip saddr != @peers4 ip daddr @peers4 drop
//!   udp dport 4789 ip saddr @peers4 ip daddr != @peers4 drop … }
//! ```
//!
//! Which links are checked is told by their group, so that no pod needs a rule of its own. The last
//! three are on every node that knows of another, also without routers: pods have links of any name and of any
//! CNI, and one that the node masquerades would write into networks under the node's address, or get what
//! other nodes answer. A VNI below ours is somebody else's, and so is what no node sends or gets. A VNI that
//! is in a second fragment is not read: then the first one, which has none, is judged by its addresses.
//! Links of other CNIs are not checked: who sends as a node must come in by the link that leads to that node. This
//! is looked at when the destination is known, which may have been another one.
//! Until the first [`set_peers`] nobody is a peer. What the sets have outlives the agent.

use super::chain::{Chain, DesiredRule, Hook, commit, differing, fill};
use super::encode::{
    Attributes, Meta, cmp, destination_port, fib_source_present, less, lookup, meta, missing_in,
    payload, transport, verdict,
};
use super::{NftError, peers};
use crate::{NodeSide, Socket};
use plexus_core::fabric::{FIRST_VNI, VXLAN_PORT};
use plexus_types::Family;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::PoisonError;

/// Group of the host ends whose sources are checked.
pub(crate) const CHECKED: u32 = 0x2000_5080;
/// Group of the node's ends of the links to routers.
pub(crate) const ROUTER: u32 = 0x2000_5081;

/// Ports and addresses are what they were translated to.
const AFTER_DSTNAT: i32 = -90;

/// Makes the nodes between which tunnels lead exactly these: the addresses on the underlay of all, this
/// one too. Gives the number of addresses that were changed.
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

/// … and those of a node that is not the only one, or has routers; says what was changed.
pub fn ensure_tunnels(node: &NodeSide) -> Result<Vec<String>, NftError> {
    ensure_chains(node, true)
}

fn ensure_chains(node: &NodeSide, tunnels: bool) -> Result<Vec<String>, NftError> {
    node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        let due = differing(&mut socket, &desired_chains(tunnels)).map_err(NftError::List)?;
        if due.is_empty() && node.table().is_guarded(tunnels) {
            return Ok(Vec::new());
        }
        let _alone = node.firewall.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = write(node, &mut socket, tunnels)?;
        node.table().guard(tunnels);
        Ok(changes)
    })?
}

/// Fills the chains that differ. For who holds the firewall.
pub(super) fn write(
    node: &NodeSide,
    socket: &mut Socket,
    tunnels: bool,
) -> Result<Vec<String>, NftError> {
    let due = differing(socket, &desired_chains(tunnels)).map_err(NftError::List)?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    if tunnels {
        commit(socket, peers::create()).map_err(NftError::Change)?;
        write_peers(node, socket)?;
    }
    let changes = desired_chains(tunnels)
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

/// The chains of every node, and those about tunnels.
pub(super) fn desired_chains(tunnels: bool) -> Vec<Chain> {
    let of_tunnels = tunnel_chains().into_iter().filter(|_| tunnels);
    chains().into_iter().chain(of_tunnels).collect()
}

/// `fib saddr . iif oif missing drop`
pub(crate) fn drop_foreign_source() -> impl Iterator<Item = (&'static str, Attributes)> {
    foreign_source()
        .into_iter()
        .chain([("immediate", verdict(false))])
}

/// `fib saddr . iif oif missing`
fn foreign_source() -> [(&'static str, Attributes); 2] {
    [("fib", fib_source_present()), ("cmp", cmp(true, &[0; 4]))]
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

fn tunnel_chains() -> [Chain; 3] {
    let chain = |name, hook, priority, rules: &[fn(Family) -> DesiredRule]| {
        let of_families = rules.iter().flat_map(|rule| Family::ALL.map(rule));
        Chain {
            name,
            kind: "filter",
            hook,
            priority,
            rules: std::iter::once(of_others()).chain(of_families).collect(),
        }
    };
    [
        chain("arrivals", Hook::Prerouting, AFTER_DSTNAT, &[disguised]),
        chain("tunnels", Hook::Input, 0, &[from_strangers, to_elsewhere]),
        chain("through", Hook::Forward, 0, &[into_tunnels, out_of_tunnels]),
    ]
}

/// `udp dport 4789 @th,96,24 < 4097 accept`
fn of_others() -> DesiredRule {
    const VNI: u32 = 12;
    let [_, first @ ..] = FIRST_VNI.to_be_bytes();
    let below = [
        ("payload", transport(VNI, 3)),
        ("cmp", less(&first)),
        ("immediate", verdict(true)),
    ];
    DesiredRule::new(
        "plexus: tunnels of others are left alone",
        to_tunnels().into_iter().chain(below),
    )
}

fn disguised(family: Family) -> DesiredRule {
    let node = address(family, End::Source, true);
    drop_if(
        "plexus: nodes come in by the link that leads to them",
        family,
        [node, foreign_source()],
    )
}

fn from_strangers(family: Family) -> DesiredRule {
    let stranger = address(family, End::Source, false);
    drop_if("plexus: only nodes speak to tunnels", family, [stranger])
}

fn to_elsewhere(family: Family) -> DesiredRule {
    let elsewhere = address(family, End::Destination, false);
    drop_if(
        "plexus: tunnels end at addresses of nodes",
        family,
        [elsewhere],
    )
}

fn into_tunnels(family: Family) -> DesiredRule {
    let ends = [
        address(family, End::Source, false),
        address(family, End::Destination, true),
    ];
    drop_if("plexus: pods do not speak to tunnels", family, ends)
}

fn out_of_tunnels(family: Family) -> DesiredRule {
    let ends = [
        address(family, End::Source, true),
        address(family, End::Destination, false),
    ];
    drop_if("plexus: tunnels do not speak to pods", family, ends)
}

/// `udp dport 4789 … drop`
fn drop_if(
    comment: &str,
    family: Family,
    conditions: impl IntoIterator<Item = [(&'static str, Attributes); 2]>,
) -> DesiredRule {
    let rule = of_family(family)
        .into_iter()
        .chain(to_tunnels())
        .chain(conditions.into_iter().flatten())
        .chain([("immediate", verdict(false))]);
    DesiredRule::new(format!("{comment} ({family})"), rule)
}

/// `meta nfproto ipv4`
pub(crate) fn of_family(family: Family) -> [(&'static str, Attributes); 2] {
    let protocol = match family {
        Family::V4 => libc::NFPROTO_IPV4,
        Family::V6 => libc::NFPROTO_IPV6,
    };
    [
        ("meta", meta(Meta::NfProto, 1)),
        ("cmp", cmp(true, &[protocol as u8])),
    ]
}

#[derive(Clone, Copy)]
enum End {
    Source,
    Destination,
}

/// `ip saddr @peers4`, `ip daddr != @peers4`, …
fn address(family: Family, end: End, is_peer: bool) -> [(&'static str, Attributes); 2] {
    let (offset, length) = match (family, end) {
        (Family::V4, End::Source) => (12, 4),
        (Family::V4, End::Destination) => (16, 4),
        (Family::V6, End::Source) => (8, 16),
        (Family::V6, End::Destination) => (24, 16),
    };
    let set = peers::set(family);
    let looked_up = match is_peer {
        true => lookup(set, false),
        false => missing_in(set),
    };
    [("payload", payload(offset, length)), ("lookup", looked_up)]
}

fn chains() -> [Chain; 3] {
    let in_group = |what, group: u32| {
        [
            ("meta", meta(what, 1)),
            ("cmp", cmp(true, &group.to_ne_bytes())),
        ]
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
        filter("forward", Hook::Forward, 0, vec![between]),
        // An earlier version had rules here.
        filter("input", Hook::Input, 0, Vec::new()),
    ]
}
