//! Mutated answers of the kernel, to every reader: `tests/corpus/<target>/` is replayed and changed. An answer may be of
//! a kernel that is newer, of a link that a pod made, or cut short; whatever it is, no reader follows a length that does
//! not fit, and none makes much of little.

use crate::{
    address, devconf, echo, ethtool, fdb, link, managed, neighbour, nexthop, nft, nic_routes, nics,
    nsid, route, router, rule,
};
use plexus_core::attachment::Alias;
use plexus_fuzz::{Kind, Target, bounded};

pub(crate) const fn target(name: &'static str, kind: Kind) -> Target {
    Target::new(env!("CARGO_PKG_NAME"), name, kind).most(16 << 10)
}

/// Gives the payload of a message to all readers: whose it is, only the question tells. Says who made something of it.
pub(crate) fn read(payload: &[u8]) -> String {
    let shown = [
        ("link", show(link::read(payload))),
        ("link of a NIC", show(nics::read_link(payload))),
        (
            "vxlan",
            show(router::vxlan::read(payload).map(|read| (read.vni, read.local))),
        ),
        ("address", show(address::read(payload))),
        ("address of a NIC", show(nics::read_address(payload))),
        ("route", show(route::read(payload))),
        ("own route", show(managed::Managed::read(payload))),
        (
            "route on NICs",
            show(nic_routes::message::read_route(payload)),
        ),
        ("rule", show(rule::read(payload))),
        (
            "rule on NICs",
            show(nic_routes::message::read_rule(payload)),
        ),
        ("neighbour", show(neighbour::read(payload))),
        ("forwarding", show(fdb::read(payload))),
        ("next hop", show(nexthop::read(payload))),
        ("namespace", show(nsid::read(payload))),
        ("speed", show(ethtool::read(payload))),
        ("nftables", show(nft::fuzz::read(payload))),
        (
            "ping",
            show(echo::read(true, payload).or(echo::read(false, payload))),
        ),
    ];
    let hops = route::read_hops(payload);
    assert!(hops.len() <= 1 + payload.len() / 8, "{} hops", hops.len());
    let sysctls = format!("{:?}", devconf::Ipv6::read(payload));
    bounded("sysctls", &sysctls, 64 + 8 * payload.len());
    if let Some(link) = link::read(payload) {
        link_of_a_pod(&link, payload.len());
    }
    let mut made = vec![format!("{} hops", hops.len().min(3))];
    for (reader, shown) in shown {
        if let Some(shown) = shown {
            bounded(reader, &shown, 1024 + 16 * payload.len());
            made.push(reader.to_owned());
        }
    }
    made.join(", ")
}

/// Names and mark are as long as the answer at most. A mark that is taken for ours is of the same call when it is
/// written again.
fn link_of_a_pod(link: &plexus_core::plan::ObservedLink, length: usize) {
    let names = link
        .altnames
        .iter()
        .chain([&link.name, &link.kind])
        .chain(&link.alias);
    let total: usize = names.map(String::len).sum();
    // Bytes that are no text become three each.
    assert!(
        total <= 3 * length && link.options.len() <= length,
        "{link:?}"
    );
    let alias = link.alias.as_deref();
    if let Some((text, alias)) = alias.and_then(|text| Some((text, Alias::parse(text)?))) {
        let again = alias.render();
        bounded("a mark", &again, 255);
        assert!(
            Alias::is_of(&again, alias.node, &alias.container, &alias.cni_ifname),
            "{text:?}: {again:?}"
        );
    }
}

fn show<T: std::fmt::Debug>(read: Option<T>) -> Option<String> {
    read.map(|read| format!("{read:?}"))
}

/// What follows the header of a message.
#[test]
fn payload() {
    target("payload", Kind::Attributes).inputs(3_000).run(read);
}

/// The mark on a link: a pod may write on its own what it likes.
#[test]
fn mark() {
    const WORDS: &[&str] = &[
        "plexus",
        " ",
        "eth0",
        "net1",
        "10.0.0.5",
        "fd00::5",
        ",",
        "-",
        "blue",
        "moved",
        "0000:00:01.0",
    ];
    target("mark", Kind::Bytes).words(WORDS).run(|input| {
        let text = String::from_utf8_lossy(input);
        let Some(alias) = Alias::parse(&text) else {
            return String::new();
        };
        bounded("a mark", &format!("{alias:?}"), 2048 + 16 * input.len());
        let again = alias.render();
        bounded("a mark", &again, 255);
        assert!(
            Alias::is_of(&again, alias.node, &alias.container, &alias.cni_ifname),
            "{again:?}"
        );
        format!(
            "{} {:?}",
            alias.addresses.len().min(3),
            alias.moved.is_some()
        )
    });
}
