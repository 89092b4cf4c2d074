//! The firewall of a router: a table `inet plexus` in its own namespace. Sources of pods are
//! checked, and so are those of what other nodes send; what leaves by the uplink leaves under its address, and
//! only answers come back in.

use super::{UPLINK, VXLAN};
use crate::Socket;
use crate::nft::NftError;
use crate::nft::chain::{Chain, DesiredRule, Hook, differing, fill};
use crate::nft::encode::{End, Expressions, Header, Meta};
use plexus_core::plan::Router;
use plexus_types::Family;

/// Makes the table of the calling thread's namespace what the router needs; says what was changed.
pub(super) fn ensure(router: &Router) -> Result<Vec<String>, NftError> {
    let mut socket = Socket::netfilter().map_err(NftError::List)?;
    let due = differing(&mut socket, chains(router))?;
    let filled = fill(&mut socket, due)?.into_iter();
    let words = filled.map(|filled| format!("{filled} of router {}", router.name));
    Ok(words.collect())
}

fn chains(router: &Router) -> [Chain; 4] {
    let mut sources = Vec::new();
    if router.source_check {
        let from_pods = Expressions::default().meta(Meta::IifName).is(b"px");
        sources.push(DesiredRule::new(
            "plexus: pods send from their own addresses",
            from_pods.foreign_source().drop(),
        ));
        sources.extend(from_other_nodes(router));
    }
    let (mut forward, mut input, mut leave) = (Vec::new(), Vec::new(), Vec::new());
    if router.snat {
        forward = vec![answers(), nothing_else()];
        input = vec![answers(), neighbours(), nothing_else()];
        leave = vec![DesiredRule::new(
            "plexus: pods leave under the node's address",
            Expressions::of_link(Meta::OifName, UPLINK).masquerade(),
        )];
    }
    [
        Chain::filter("sources", (Hook::Prerouting, -300), sources),
        Chain::filter("forward", (Hook::Forward, 0), forward),
        Chain::filter("input", (Hook::Input, 0), input),
        Chain::nat("postrouting", (Hook::Postrouting, 100), leave),
    ]
}

/// What comes from other nodes is the network's: from a subnet of it, or from a block that leads there.
///
/// ```text
/// iifname vxlan0 ip saddr SUBNET accept …
/// iifname vxlan0 fib saddr . iif oif missing drop
/// ```
fn from_other_nodes(router: &Router) -> impl Iterator<Item = DesiredRule> {
    let from_vxlan = || Expressions::of_link(Meta::IifName, VXLAN);
    let subnets = router.subnets.iter().map(move |subnet| {
        let family = Family::of(subnet.addr());
        let inside = from_vxlan()
            .and_family(family)
            .in_net(End::Source, *subnet, true);
        DesiredRule::new(
            format!("plexus: other nodes send from {subnet}"),
            inside.accept(),
        )
    });
    let others = DesiredRule::new(
        "plexus: other nodes send from their blocks",
        from_vxlan().foreign_source().drop(),
    );
    subnets.chain([others])
}

fn from_uplink() -> Expressions {
    Expressions::of_link(Meta::IifName, UPLINK)
}

fn answers() -> DesiredRule {
    let known = from_uplink().of_known_connection();
    DesiredRule::new("plexus: answers come in", known.accept())
}

fn nothing_else() -> DesiredRule {
    DesiredRule::new("plexus: nothing else comes in", from_uplink().drop())
}

/// The node may ask for the link's own address: `icmpv6 type { 135, 136 }`, both of which are
/// sent with the highest hop limit.
fn neighbours() -> DesiredRule {
    const HOP_LIMIT: u32 = 7;
    let asked = from_uplink()
        .and_family(Family::V6)
        .meta(Meta::L4Proto)
        .is(&[libc::IPPROTO_ICMPV6 as u8])
        .payload(Header::Network, HOP_LIMIT, 1)
        .is(&[255]);
    DesiredRule::new("plexus: the node finds the uplink", asked.accept())
}
