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
//! ```
//!
//! Which links are checked is told by their group, so that no pod needs a rule of its own.

use super::NftError;
use super::chain::{Chain, Hook, Wanted, commit, differing, fill};
use super::encode::{Attributes, Meta, cmp, destination_port, fib_source_present, meta, verdict};
use crate::{NodeSide, Socket};
use plexus_core::fabric::VXLAN_PORT;
use std::sync::PoisonError;

/// Group of the host ends whose sources are checked.
pub(crate) const CHECKED: u32 = 0x2000_5080;
/// Group of the node's ends of the links to routers.
pub(crate) const ROUTER: u32 = 0x2000_5081;

/// Makes sure that the rules are there; says what was changed.
pub(crate) fn ensure(node: &NodeSide) -> Result<Vec<String>, NftError> {
    node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        let due = |socket: &mut Socket| differing(socket, &chains()).map_err(NftError::List);
        if due(&mut socket)?.is_empty() {
            return Ok(Vec::new());
        }
        let _alone = node.firewall.lock().unwrap_or_else(PoisonError::into_inner);
        let due = due(&mut socket)?;
        let changes = chains().into_iter().filter(|c| due.contains(&c.name));
        commit(&mut socket, changes.flat_map(fill)).map_err(NftError::Change)?;
        Ok(due.iter().map(|c| format!("fill chain {c}")).collect())
    })?
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
pub(crate) fn drop_tunnels() -> [(&'static str, Attributes); 5] {
    [
        ("meta", meta(Meta::L4Proto, 1)),
        ("cmp", cmp(true, &[libc::IPPROTO_UDP as u8])),
        ("payload", destination_port(1)),
        ("cmp", cmp(true, &VXLAN_PORT.to_be_bytes())),
        ("immediate", verdict(false)),
    ]
}

/// Matches links whose name begins like that of a host end.
pub(crate) fn from_host_ends() -> [(&'static str, Attributes); 2] {
    [("meta", meta(Meta::IifName, 1)), ("cmp", cmp(true, b"px"))]
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
        Wanted::new("plexus: pods do not speak to tunnels", rule)
    };
    let checked = in_group(Meta::IifGroup, CHECKED).into_iter();
    let sources = Wanted::new(
        "plexus: pods send from their own addresses",
        checked.chain(drop_foreign_source()),
    );
    let between = in_group(Meta::IifGroup, ROUTER)
        .into_iter()
        .chain(in_group(Meta::OifGroup, ROUTER))
        .chain([("immediate", verdict(false))]);
    let between = Wanted::new("plexus: networks do not meet on the node", between);
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
