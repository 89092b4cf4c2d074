//! The rules that look into the maps.

use crate::nft::chain::{Chain, Hook, Wanted};
use crate::nft::encode::{
    Attributes, DNATED, LOCAL_ADDRESS, Meta, bitwise, cmp, ct_status, destination_port, dnat,
    fib_destination_type, lookup, meta, meta_nfproto, payload, payload_to,
};
use plexus_types::Family;

/// The chains, with all their rules.
pub(super) fn chains() -> [Chain; 3] {
    let nat = |name, hook, priority, rules| Chain {
        name,
        kind: "nat",
        hook,
        priority,
        rules,
    };
    [
        nat("ports-in", Hook::Prerouting, -95, lead()),
        nat("ports-out", Hook::Output, -95, lead()),
        nat("ports-back", Hook::Postrouting, 95, back()),
    ]
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

fn lead() -> Vec<Wanted> {
    let mut rules = Vec::new();
    for shape in &SHAPES {
        let mut exact = to_the_node(shape);
        exact.extend([
            ("payload", payload_to(shape.to, shape.length, 1)),
            ("meta", meta(Meta::L4Proto, shape.next)),
            ("payload", destination_port(shape.next + 1)),
            (
                "lookup",
                lookup(&super::elements::map_name(shape.family, true), true),
            ),
            ("nat", dnat(shape.number, shape.next)),
        ]);
        let comment = |what: &str| format!("plexus: {} ports of {what}", shape.family);
        rules.push(Wanted::new(comment("one address"), exact));
        let mut any = to_the_node(shape);
        any.extend([
            ("meta", meta(Meta::L4Proto, 1)),
            ("payload", destination_port(9)),
            (
                "lookup",
                lookup(&super::elements::map_name(shape.family, false), true),
            ),
            ("nat", dnat(shape.number, shape.next)),
        ]);
        rules.push(Wanted::new(comment("every address"), any));
    }
    rules
}

/// `fib daddr type local`, and not the loopback.
fn to_the_node(shape: &Shape) -> Vec<(&'static str, Attributes)> {
    let mut rule = vec![
        ("meta", meta_nfproto()),
        ("cmp", cmp(true, &[shape.number])),
        (
            "payload",
            payload(shape.to, if shape.length == 4 { 1 } else { 16 }),
        ),
    ];
    rule.push(match shape.family {
        Family::V4 => ("cmp", cmp(false, &[127])),
        Family::V6 => ("cmp", cmp(false, &std::net::Ipv6Addr::LOCALHOST.octets())),
    });
    rule.extend([
        ("fib", fib_destination_type()),
        ("cmp", cmp(true, &LOCAL_ADDRESS)),
    ]);
    rule
}

/// A pod that calls itself by a port of the node must get the answer from there.
fn back() -> Vec<Wanted> {
    let rule = |shape: &Shape| {
        Wanted::new(
            format!("plexus: {} pods that call themselves", shape.family),
            [
                ("meta", meta_nfproto()),
                ("cmp", cmp(true, &[shape.number])),
                ("ct", ct_status()),
                ("bitwise", bitwise(&DNATED)),
                ("cmp", cmp(false, &[0; 4])),
                ("payload", payload_to(shape.from, shape.length, 1)),
                ("payload", payload_to(shape.to, shape.length, shape.next)),
                (
                    "lookup",
                    lookup(&super::elements::self_name(shape.family), false),
                ),
                ("masq", Attributes::default()),
            ],
        )
    };
    SHAPES.iter().map(rule).collect()
}
