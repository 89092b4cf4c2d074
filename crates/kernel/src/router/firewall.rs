//! The firewall of a router: a table `inet plexus` in its own namespace. Sources of pods are
//! checked, what leaves by the uplink leaves under its address, and only answers come back in.

use super::UPLINK;
use crate::Socket;
use crate::nft::NftError;
use crate::nft::chain::{Chain, DesiredRule, Hook, commit, differing, fill};
use crate::nft::encode::{
    Attributes, ESTABLISHED_OR_RELATED, Meta, bitwise, cmp, ct_state, meta, payload, verdict,
};
use crate::nft::guard::{drop_foreign_source, from_host_ends, of_family};
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
    }
    let (mut forward, mut input, mut leave) = (Vec::new(), Vec::new(), Vec::new());
    if router.snat {
        forward.push(answers());
        forward.push(from_uplink("plexus: nothing else comes in", [drop()]));
        input.push(answers());
        input.push(neighbours());
        input.push(from_uplink("plexus: nothing else comes in", [drop()]));
        let rule = named(Meta::OifName)
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
    let rule: Expressions = named(Meta::IifName).into_iter().chain(rest).collect();
    DesiredRule::new(comment, rule)
}

fn named(which: Meta) -> [(&'static str, Attributes); 2] {
    let mut name = [0; 16];
    name[..UPLINK.len()].copy_from_slice(UPLINK.as_bytes());
    [("meta", meta(which, 1)), ("cmp", cmp(true, &name))]
}

fn drop() -> (&'static str, Attributes) {
    ("immediate", verdict(false))
}
