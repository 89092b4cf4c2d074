//! The rules that look into the maps.

use crate::nft::chain::{Chain, DesiredRule, Hook};
use crate::nft::encode::{
    Attributes, DNATED, LOCAL_ADDRESS, Meta, bitwise, cmp, ct_status, destination_port, dnat,
    fib_destination_type, lookup, meta, meta_nfproto, payload, payload_to, verdict,
};
use plexus_types::Family;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The chains, with all their rules.
pub(in crate::nft) fn chains() -> [Chain; 4] {
    let chain = |name, kind, hook, priority, rules| Chain {
        name,
        kind,
        hook,
        priority,
        rules,
    };
    let nat = |name, hook, priority, rules| chain(name, "nat", hook, priority, rules);
    [
        chain(
            "ports-guard",
            "filter",
            Hook::Prerouting,
            -300,
            Vec::from(["source", "destination"].map(never_loopback)),
        ),
        nat("ports-in", Hook::Prerouting, -95, lead(Caller::Elsewhere)),
        nat("ports-out", Hook::Output, -95, lead(Caller::Here)),
        nat("ports-back", Hook::Postrouting, 95, back()),
    ]
}

/// Who uses a port.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// The node itself, which may mean its loopback.
    Here,
    /// Everybody else.
    Elsewhere,
}

/// Where things are in a header and in registers of four bytes each, the first of which is 8.
struct Shape {
    family: Family,
    number: u8,
    length: u32,
    from: u32,
    to: u32,
    /// The register after an address that was loaded into the first.
    next: u32,
}

const SHAPES: [Shape; 2] = [
    Shape {
        family: Family::V4,
        number: libc::NFPROTO_IPV4 as u8,
        length: 4,
        from: 12,
        to: 16,
        next: 9,
    },
    Shape {
        family: Family::V6,
        number: libc::NFPROTO_IPV6 as u8,
        length: 16,
        from: 8,
        to: 24,
        next: 12,
    },
];

fn lead(from: Caller) -> Vec<DesiredRule> {
    let mut rules = Vec::new();
    for shape in &SHAPES {
        for which in [Ports::OfOneAddress, Ports::OfEvery] {
            let to_the_node = to_the_node(shape).chain(led(shape, which));
            let comment = format!("plexus: {} ports of {}", shape.family, which.of());
            rules.push(DesiredRule::new(comment, to_the_node));
        }
    }
    if from == Caller::Here {
        let [v4, _] = &SHAPES;
        rules.extend([
            DesiredRule::new(
                "plexus: ports of one address of the loopback",
                of_family(v4)
                    .into_iter()
                    .chain(loopback(v4.to, true))
                    .chain(led(v4, Ports::OfOneAddress)),
            ),
            DesiredRule::new(
                "plexus: ports of every address, by 127.0.0.1",
                of_family(v4)
                    .into_iter()
                    .chain(address(v4.to, true, &Ipv4Addr::LOCALHOST.octets()))
                    .chain(led(v4, Ports::OfEvery)),
            ),
        ]);
    }
    rules
}

/// Which map.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ports {
    OfOneAddress,
    OfEvery,
}

impl Ports {
    fn of(self) -> &'static str {
        match self {
            Ports::OfOneAddress => "one address",
            Ports::OfEvery => "every address",
        }
    }
}

/// `dnat to … map @ports4`
fn led(shape: &Shape, which: Ports) -> impl Iterator<Item = (&'static str, Attributes)> {
    let exact = which == Ports::OfOneAddress;
    let protocol = if exact { shape.next } else { 1 };
    // The first register overlaps those of four bytes each.
    let port = if exact { shape.next + 1 } else { 9 };
    let address = exact.then(|| ("payload", payload_to(shape.to, shape.length, 1)));
    let map = super::elements::map_name(shape.family, exact);
    address.into_iter().chain([
        ("meta", meta(Meta::L4Proto, protocol)),
        ("payload", destination_port(port)),
        ("lookup", lookup(&map, true)),
        ("nat", dnat(shape.number, shape.next)),
    ])
}

/// `fib daddr type local`, but not the loopback.
fn to_the_node(shape: &Shape) -> impl Iterator<Item = (&'static str, Attributes)> {
    let elsewhere = match shape.family {
        Family::V4 => loopback(shape.to, false),
        Family::V6 => address(shape.to, false, &Ipv6Addr::LOCALHOST.octets()),
    };
    of_family(shape).into_iter().chain(elsewhere).chain([
        ("fib", fib_destination_type()),
        ("cmp", cmp(true, &LOCAL_ADDRESS)),
    ])
}

/// Whether the address there is that one.
fn address(offset: u32, is_it: bool, octets: &[u8]) -> [(&'static str, Attributes); 2] {
    let length = octets.len() as u32;
    [
        ("payload", payload(offset, length)),
        ("cmp", cmp(is_it, octets)),
    ]
}

fn of_family(shape: &Shape) -> [(&'static str, Attributes); 2] {
    [
        ("meta", meta_nfproto()),
        ("cmp", cmp(true, &[shape.number])),
    ]
}

/// Whether the IPv4 address there is one of 127.0.0.0/8.
fn loopback(offset: u32, is_it: bool) -> [(&'static str, Attributes); 2] {
    [("payload", payload(offset, 1)), ("cmp", cmp(is_it, &[127]))]
}

/// Links that lead to pods with ports take packets of the loopback, for the answers to the node itself. These
/// come to an address of the node; whoever writes 127.0.0.1 into a packet means what listens there.
fn never_loopback(which: &str) -> DesiredRule {
    let [v4, _] = &SHAPES;
    let offset = if which == "source" { v4.from } else { v4.to };
    let from_elsewhere = [
        ("meta", meta(Meta::IifName, 1)),
        ("cmp", cmp(false, b"lo\0")),
    ];
    let rule = of_family(v4)
        .into_iter()
        .chain(from_elsewhere)
        .chain(loopback(offset, true))
        .chain([("immediate", verdict(false))]);
    let comment = format!("plexus: nobody else's {which} is the loopback");
    DesiredRule::new(comment, rule)
}

/// A pod that calls itself by a port of the node must get the answer from there, and the node's loopback is
/// nobody that a pod could answer to. Others lead their own from loopback to loopback.
fn back() -> Vec<DesiredRule> {
    let of_pods = |shape: &Shape, first: u32| {
        let set = super::elements::self_name(shape.family);
        let was_led = [
            ("ct", ct_status()),
            ("bitwise", bitwise(&DNATED)),
            ("cmp", cmp(false, &[0; 4])),
        ];
        let pair = [
            ("payload", payload_to(first, shape.length, 1)),
            ("payload", payload_to(shape.to, shape.length, shape.next)),
            ("lookup", lookup(&set, false)),
            ("masq", Attributes::default()),
        ];
        was_led.into_iter().chain(pair)
    };
    let itself = SHAPES.iter().map(|shape| {
        DesiredRule::new(
            format!("plexus: {} pods that call themselves", shape.family),
            of_family(shape)
                .into_iter()
                .chain(of_pods(shape, shape.from)),
        )
    });
    let [v4, _] = &SHAPES;
    let from_loopback = of_family(v4)
        .into_iter()
        .chain(loopback(v4.from, true))
        .chain(of_pods(v4, v4.to));
    let from_loopback =
        DesiredRule::new("plexus: the node calls pods by its loopback", from_loopback);
    itself.chain([from_loopback]).collect()
}
