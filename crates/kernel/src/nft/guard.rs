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
use super::encode::{End, Expressions, Header, Meta};
use super::{NftError, peers, with_tables};
use crate::node_side::lock;
use crate::{NodeSide, Socket};
use plexus_core::fabric::{FIRST_VNI, VXLAN_PORT};
use plexus_core::plan::HostEnd;
use plexus_types::Family;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Group of the node's ends of the links to routers.
pub(crate) const ROUTER: u32 = 0x2000_5081;

/// Ports and addresses are what they were translated to.
const AFTER_DSTNAT: i32 = -90;

/// Makes the nodes between which tunnels lead exactly these: the addresses on the underlay of all, this
/// one too. Gives the number of addresses that were changed.
pub fn set_peers(node: &NodeSide, peers: &[IpAddr]) -> Result<usize, NftError> {
    let wanted: BTreeSet<IpAddr> = peers.iter().map(IpAddr::to_canonical).collect();
    let _alone = lock(&node.firewall);
    let changed = with_tables(node, |socket| {
        peers::write(socket, &wanted).map_err(NftError::Change)
    })?;
    *lock(&node.peers) = Some(wanted);
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
    with_tables(node, |socket| {
        let due = differing(socket, desired_chains(tunnels))?;
        if due.is_empty() && node.table().is_guarded(tunnels) {
            return Ok(Vec::new());
        }
        let _alone = lock(&node.firewall);
        let changes = write(node, socket, tunnels)?;
        node.table().guard(tunnels);
        Ok(changes)
    })
}

/// Fills the chains that differ. For who holds the firewall.
pub(super) fn write(
    node: &NodeSide,
    socket: &mut Socket,
    tunnels: bool,
) -> Result<Vec<String>, NftError> {
    let due = differing(socket, desired_chains(tunnels))?;
    if tunnels && !due.is_empty() {
        commit(socket, peers::create()).map_err(NftError::Change)?;
        write_peers(node, socket)?;
    }
    fill(socket, due)
}

/// Should somebody have removed the table, those that were told last come back with it.
pub(super) fn write_peers(
    node: &NodeSide,
    socket: &mut Socket,
) -> Result<Option<String>, NftError> {
    let peers = lock(&node.peers);
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

fn chains() -> [Chain; 3] {
    let in_group = |all: Expressions, what, group: u32| all.meta(what).is(&group.to_ne_bytes());
    let checked = in_group(
        Expressions::default(),
        Meta::IifGroup,
        HostEnd::CHECKED_GROUP,
    );
    let from_router = in_group(Expressions::default(), Meta::IifGroup, ROUTER);
    let between = in_group(from_router, Meta::OifGroup, ROUTER);
    let sources = DesiredRule::new(
        "plexus: pods send from their own addresses",
        checked.foreign_source().drop(),
    );
    let between = DesiredRule::new("plexus: networks do not meet on the node", between.drop());
    [
        Chain::filter("sources", (Hook::Prerouting, -300), vec![sources]),
        Chain::filter("forward", (Hook::Forward, 0), vec![between]),
        // An earlier version had rules here.
        Chain::filter("input", (Hook::Input, 0), Vec::new()),
    ]
}

/// What is wrong with a packet to tunnels.
enum Condition {
    Peer(End),
    Stranger(End),
    WrongLink,
}

fn tunnel_chains() -> [Chain; 3] {
    use Condition::{Peer, Stranger, WrongLink};
    use End::{Destination, Source};
    let chain = |name, at, drops: &[(&str, &[Condition])]| {
        let mut rules = vec![of_others()];
        for (comment, conditions) in drops {
            rules.extend(Family::ALL.map(|family| drop_if(comment, conditions, family)));
        }
        Chain::filter(name, at, rules)
    };
    [
        chain(
            "arrivals",
            (Hook::Prerouting, AFTER_DSTNAT),
            &[(
                "plexus: nodes come in by the link that leads to them",
                &[Peer(Source), WrongLink],
            )],
        ),
        chain(
            "tunnels",
            (Hook::Input, 0),
            &[
                ("plexus: only nodes speak to tunnels", &[Stranger(Source)]),
                (
                    "plexus: tunnels end at addresses of nodes",
                    &[Stranger(Destination)],
                ),
            ],
        ),
        chain(
            "through",
            (Hook::Forward, 0),
            &[
                (
                    "plexus: pods do not speak to tunnels",
                    &[Stranger(Source), Peer(Destination)],
                ),
                (
                    "plexus: tunnels do not speak to pods",
                    &[Peer(Source), Stranger(Destination)],
                ),
            ],
        ),
    ]
}

/// `udp dport 4789 @th,96,24 < 4097 accept`
fn of_others() -> DesiredRule {
    const VNI: u32 = 12;
    let [_, first @ ..] = FIRST_VNI.to_be_bytes();
    let tunnels = Expressions::default().udp_port(VXLAN_PORT);
    let below = tunnels.payload(Header::Transport, VNI, 3).less(&first);
    DesiredRule::new("plexus: tunnels of others are left alone", below.accept())
}

/// `udp dport 4789 ip saddr @peers4 … drop`
fn drop_if(comment: &str, conditions: &[Condition], family: Family) -> DesiredRule {
    let set = peers::name(family);
    let mut packets = Expressions::of_family(family).udp_port(VXLAN_PORT);
    for condition in conditions {
        packets = match *condition {
            Condition::Peer(end) => packets.address(family, end).in_set(set, true),
            Condition::Stranger(end) => packets.address(family, end).in_set(set, false),
            Condition::WrongLink => packets.foreign_source(),
        };
    }
    DesiredRule::new(format!("{comment} ({family})"), packets.drop())
}
