//! The rules that look into the maps.

use super::elements::{Kind, Map};
use crate::nft::chain::{Chain, DesiredRule, Hook};
use crate::nft::encode::{End, Expressions, Meta};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use plexus_types::Family;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The chains, with all their rules.
pub(in crate::nft) fn chains() -> [Chain; 4] {
    let guard = [(End::Source, "source"), (End::Destination, "destination")];
    let guard = guard.map(never_loopback).into();
    [
        Chain::filter("ports-guard", (Hook::Prerouting, -300), guard),
        Chain::nat("ports-in", (Hook::Prerouting, -95), from_elsewhere()),
        Chain::nat("ports-out", (Hook::Output, -95), from_the_node()),
        Chain::nat("ports-back", (Hook::Postrouting, 95), back()),
    ]
}

/// Where the loopback's addresses lead to no pod.
fn from_elsewhere() -> Vec<DesiredRule> {
    let mut rules = Vec::new();
    for family in Family::ALL {
        for (kind, of) in [(Kind::Exact, "one address"), (Kind::Any, "every address")] {
            let packets = Expressions::of_family(family);
            let packets = match family {
                Family::V4 => packets.in_loopback(End::Destination, false),
                Family::V6 => packets.in_net(End::Destination, LOOPBACK6, false),
            };
            let comment = format!("plexus: {family} ports of {of}");
            rules.push(lead(comment, packets.local_address(), family, kind));
        }
    }
    rules
}

/// The node itself may mean its loopback.
fn from_the_node() -> Vec<DesiredRule> {
    let ipv4 = || Expressions::of_family(Family::V4);
    let mut rules = from_elsewhere();
    rules.extend([
        lead(
            "plexus: ports of one address of the loopback",
            ipv4().in_loopback(End::Destination, true),
            Family::V4,
            Kind::Exact,
        ),
        lead(
            "plexus: ports of every address, by 127.0.0.1",
            ipv4().in_net(End::Destination, LOCALHOST, true),
            Family::V4,
            Kind::Any,
        ),
    ]);
    rules
}

const LOCALHOST: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::LOCALHOST, 32));
const LOOPBACK6: IpNet = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128));

/// `dnat to … map @ports4`
fn lead(
    comment: impl Into<String>,
    packets: Expressions,
    family: Family,
    kind: Kind,
) -> DesiredRule {
    let next = register_after_address(family);
    // The first register overlaps those of four bytes each.
    let (packets, protocol, port) = match kind {
        Kind::Exact => (packets.address(family, End::Destination), next, next + 1),
        _ => (packets, 1, 9),
    };
    let led = packets
        .meta_to(Meta::L4Proto, protocol)
        .destination_port_to(port)
        .mapped(&Map(family, kind).name())
        .dnat(family, next);
    DesiredRule::new(comment, led)
}

/// Of those of four bytes each, the first of which is 8.
fn register_after_address(family: Family) -> u32 {
    match family {
        Family::V4 => 9,
        Family::V6 => 12,
    }
}

/// Links that lead to pods with ports take packets of the loopback, for the answers to the node itself. These
/// come to an address of the node; whoever writes 127.0.0.1 into a packet means what listens there.
fn never_loopback((end, which): (End, &str)) -> DesiredRule {
    let packets = Expressions::of_family(Family::V4)
        .meta(Meta::IifName)
        .differs(b"lo\0")
        .in_loopback(end, true);
    let comment = format!("plexus: nobody else's {which} is the loopback");
    DesiredRule::new(comment, packets.drop())
}

/// A pod that calls itself by a port of the node must get the answer from there, and the node's loopback is
/// nobody that a pod could answer to. Others lead their own from loopback to loopback.
fn back() -> Vec<DesiredRule> {
    let masquerade = |comment, packets: Expressions, family, first| {
        let pairs = packets
            .of_dnat()
            .address(family, first)
            .address_to(family, End::Destination, register_after_address(family))
            .in_set(&Map(family, Kind::Itself).name(), true);
        DesiredRule::new(comment, pairs.masquerade())
    };
    let itself = Family::ALL.map(|family| {
        let comment = format!("plexus: {family} pods that call themselves");
        masquerade(comment, Expressions::of_family(family), family, End::Source)
    });
    let mut rules = Vec::from(itself);
    rules.push(masquerade(
        "plexus: the node calls pods by its loopback".to_owned(),
        Expressions::of_family(Family::V4).in_loopback(End::Source, true),
        Family::V4,
        End::Destination,
    ));
    rules
}
