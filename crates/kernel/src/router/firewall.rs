//! The firewall of a router: a table `inet plexus` in its own namespace. Sources of pods are
//! checked, and so are those of what other nodes send; what leaves by the uplink leaves under its address, and
//! only answers come back in.

use super::{UPLINK, VXLAN};
use crate::Socket;
use crate::nft::NftError;
use crate::nft::chain::{Chain, DesiredRule, Hook, commit, differing, fill};
use crate::nft::encode::{
    Attributes, ESTABLISHED_OR_RELATED, Meta, bitwise, cmp, ct_state, meta, payload, verdict,
};
use crate::nft::guard::{drop_foreign_source, from_host_ends, of_family};
use ipnet::IpNet;
use plexus_core::plan::Router;
use plexus_types::Family;

/// Makes the table of the calling thread's namespace what the router needs; says what was changed.
pub(super) fn ensure(router: &Router) -> Result<Vec<String>, NftError> {
    let mut socket = Socket::netfilter().map_err(NftError::List)?;
    let due = differing(&mut socket, &chains(router)).map_err(NftError::List)?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let changes = chains(router).into_iter().filter(|c| due.contains(&c.name));
    commit(&mut socket, changes.flat_map(fill)).map_err(NftError::Change)?;
    let words = due
        .iter()
        .map(|chain| format!("fill chain {chain} of router {}", router.name));
    Ok(words.collect())
}

type Expressions = Vec<(&'static str, Attributes)>;

fn chains(router: &Router) -> [Chain; 4] {
    let filter = |name, hook, priority, rules| Chain {
        name,
        kind: "filter",
        hook,
        priority,
        rules,
    };
    let mut sources = Vec::new();
    if router.source_check {
        let rule = from_host_ends().into_iter().chain(drop_foreign_source());
        sources.push(DesiredRule::new(
            "plexus: pods send from their own addresses",
            rule,
        ));
        sources.extend(from_other_nodes(router));
    }
    let (mut forward, mut input, mut leave) = (Vec::new(), Vec::new(), Vec::new());
    if router.snat {
        forward.push(answers());
        forward.push(from_uplink("plexus: nothing else comes in", [drop()]));
        input.push(answers());
        input.push(neighbours());
        input.push(from_uplink("plexus: nothing else comes in", [drop()]));
        let rule = named(Meta::OifName, UPLINK)
            .into_iter()
            .chain([("masq", Attributes::default())]);
        leave.push(DesiredRule::new(
            "plexus: pods leave under the node's address",
            rule,
        ));
    }
    [
        filter("sources", Hook::Prerouting, -300, sources),
        filter("forward", Hook::Forward, 0, forward),
        filter("input", Hook::Input, 0, input),
        Chain {
            kind: "nat",
            ..filter("postrouting", Hook::Postrouting, 100, leave)
        },
    ]
}

/// What comes from other nodes is the network's: from a subnet of it, or from a block that leads there.
///
/// ```text
/// iifname vxlan0 ip saddr SUBNET accept …
/// iifname vxlan0 fib saddr . iif oif missing drop
/// ```
fn from_other_nodes(router: &Router) -> impl Iterator<Item = DesiredRule> {
    let subnets = router.subnets.iter().map(|subnet| {
        let rule = named(Meta::IifName, VXLAN)
            .into_iter()
            .chain(source(subnet));
        let rule = rule.chain([("immediate", verdict(true))]);
        DesiredRule::new(format!("plexus: other nodes send from {subnet}"), rule)
    });
    let rule = named(Meta::IifName, VXLAN)
        .into_iter()
        .chain(drop_foreign_source());
    let others = DesiredRule::new("plexus: other nodes send from their blocks", rule);
    subnets.chain([others])
}

/// `ip saddr SUBNET`
fn source(subnet: &IpNet) -> impl Iterator<Item = (&'static str, Attributes)> {
    let (offset, mask, network) = match subnet {
        IpNet::V4(v4) => (
            12,
            v4.netmask().octets().to_vec(),
            v4.network().octets().to_vec(),
        ),
        IpNet::V6(v6) => (
            8,
            v6.netmask().octets().to_vec(),
            v6.network().octets().to_vec(),
        ),
    };
    let inside = [
        ("payload", payload(offset, network.len() as u32)),
        ("bitwise", bitwise(&mask)),
        ("cmp", cmp(true, &network)),
    ];
    of_family(Family::of(subnet.addr()))
        .into_iter()
        .chain(inside)
}

fn answers() -> DesiredRule {
    let state = [
        ("ct", ct_state()),
        ("bitwise", bitwise(&ESTABLISHED_OR_RELATED)),
        ("cmp", cmp(false, &[0; 4])),
        ("immediate", verdict(true)),
    ];
    from_uplink("plexus: answers come in", state)
}

/// The node may ask for the link's own address: `icmpv6 type { 135, 136 }`, both of which are
/// sent with the highest hop limit.
fn neighbours() -> DesiredRule {
    const HOP_LIMIT: u32 = 7;
    let asked = [
        ("meta", meta(Meta::L4Proto, 1)),
        ("cmp", cmp(true, &[libc::IPPROTO_ICMPV6 as u8])),
        ("payload", payload(HOP_LIMIT, 1)),
        ("cmp", cmp(true, &[255])),
        ("immediate", verdict(true)),
    ];
    let asked = of_family(Family::V6).into_iter().chain(asked);
    from_uplink("plexus: the node finds the uplink", asked)
}

fn from_uplink(
    comment: &str,
    rest: impl IntoIterator<Item = (&'static str, Attributes)>,
) -> DesiredRule {
    let rule: Expressions = named(Meta::IifName, UPLINK)
        .into_iter()
        .chain(rest)
        .collect();
    DesiredRule::new(comment, rule)
}

fn named(which: Meta, link: &str) -> [(&'static str, Attributes); 2] {
    let mut name = [0; 16];
    name[..link.len()].copy_from_slice(link.as_bytes());
    [("meta", meta(which, 1)), ("cmp", cmp(true, &name))]
}

fn drop() -> (&'static str, Attributes) {
    ("immediate", verdict(false))
}
