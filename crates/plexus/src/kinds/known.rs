//! What the rules of our definitions mean, by their text. A field that is not there, or not of its
//! type, is for the schema to refuse: here it counts as fine.

use super::cidr::{Prefix, ip};
use plexus_api::objects;
use serde_json::Value;

/// How a rule is checked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// Of what is there now.
    Now(fn(&Value) -> bool),
    /// Of what was there and what is there now.
    Change(fn(&Value, &Value) -> bool),
    /// The server checks it without being told.
    ByTheServer,
}

/// What a rule means; none if it is not one of ours.
pub(super) fn find(rule: &str) -> Option<Check> {
    if rule == objects::provider_rule() {
        return Some(Check::Now(is_known_provider));
    }
    let known = KNOWN.iter().find(|(text, _)| *text == rule);
    known.map(|(_, check)| *check)
}

const KNOWN: [(&str, Check); 19] = [
    ("self == oldSelf", Check::ByTheServer),
    (
        "!has(oldSelf.provider) || (has(self.provider) && self.provider == oldSelf.provider)",
        Check::Change(|old, new| is_kept("provider", old, new)),
    ),
    (
        "!has(oldSelf.uuid) || (has(self.uuid) && self.uuid == oldSelf.uuid)",
        Check::Change(|old, new| is_kept("uuid", old, new)),
    ),
    (
        "has(self.blockSize) == has(oldSelf.blockSize) && (!has(self.blockSize) || self.blockSize == oldSelf.blockSize)",
        Check::Change(|old, new| old.get("blockSize") == new.get("blockSize")),
    ),
    (
        "self.cidr == oldSelf.cidr",
        Check::Change(|old, new| old.get("cidr") == new.get("cidr")),
    ),
    (
        "self.network == oldSelf.network && self.cidr == oldSelf.cidr && self.node == oldSelf.node",
        Check::Change(|old, new| {
            let same = |key: &str| old.get(key) == new.get(key);
            same("network") && same("cidr") && same("node")
        }),
    ),
    (
        "has(self.nic) == has(oldSelf.nic) && (!has(self.nic) || (self.nic.netAddress == oldSelf.nic.netAddress && self.nic.interfaceIndex == oldSelf.nic.interfaceIndex && self.nic.hostIndex == oldSelf.nic.hostIndex))",
        Check::Change(is_for_the_same_place),
    ),
    (
        "!has(self.subnet) || self.subnet == '' || self.subnet.split(',').all(s, isCIDR(s) && cidr(s) == cidr(s).masked())",
        Check::Now(has_subnets_or_none),
    ),
    (
        "!has(oldSelf.subnet) || oldSelf.subnet == '' || (has(self.subnet) && self.subnet == oldSelf.subnet)",
        Check::Change(|old, new| {
            let subnet = text("subnet", old).filter(|subnet| !subnet.is_empty());
            subnet.is_none_or(|subnet| text("subnet", new) == Some(subnet))
        }),
    ),
    (
        r#"!oldSelf.ipam.matches('"vlanMode"\\s*:\\s*"l3s?"') || self.ipam.matches('"vlanMode"\\s*:\\s*"l3s?"')"#,
        Check::Change(|old, new| !has_routed_mode(old) || has_routed_mode(new)),
    ),
    (
        "!has(self.masterNets) || self.masterNets.all(n, isCIDR(n))",
        Check::Now(|now| texts("masterNets", now).all(|net| Prefix::read(net).is_some())),
    ),
    (
        "isCIDR(self.cidr) && cidr(self.cidr) == cidr(self.cidr).masked()",
        Check::Now(|now| is_masked("cidr", now)),
    ),
    (
        "isCIDR(self.dst) && cidr(self.dst) == cidr(self.dst).masked()",
        Check::Now(|now| is_masked("dst", now)),
    ),
    (
        "!has(self.gateway) || (isIP(self.gateway) && isCIDR(self.cidr) && cidr(self.cidr).containsIP(self.gateway))",
        Check::Now(has_its_gateway),
    ),
    (
        "!has(self.exclude) || !isCIDR(self.cidr) || self.exclude.all(e, isCIDR(e) ? cidr(self.cidr).containsCIDR(e) : isIP(e) && cidr(self.cidr).containsIP(e))",
        Check::Now(has_what_it_excludes),
    ),
    (
        "!has(self.gw) || (isIP(self.gw) && isCIDR(self.dst) && ip(self.gw).family() == cidr(self.dst).ip().family())",
        Check::Now(is_of_one_family),
    ),
    (
        "(self.from == 'Selector') == has(self.selector)",
        Check::Now(|now| (text("from", now) == Some("Selector")) == now.get("selector").is_some()),
    ),
    (
        "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        Check::Now(|now| has_some("matchLabels", now) || has_some("matchExpressions", now)),
    ),
    (
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        Check::Now(|now| {
            let compares = matches!(text("operator", now), Some("In" | "NotIn"));
            compares == has_some("values", now)
        }),
    ),
];

fn text<'v>(key: &str, value: &'v Value) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// The texts of a list.
fn texts<'v>(key: &str, value: &'v Value) -> impl Iterator<Item = &'v str> {
    let list = value.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a block of a multi-NIC network is the one that it was.
fn is_for_the_same_place(old: &Value, new: &Value) -> bool {
    let place = |block: &Value| {
        let nic = block.get("nic")?;
        let keys = ["netAddress", "interfaceIndex", "hostIndex"];
        Some(keys.map(|key| nic.get(key).cloned()))
    };
    place(old) == place(new)
}

fn has_subnets_or_none(now: &Value) -> bool {
    let subnet = text("subnet", now).filter(|subnet| !subnet.is_empty());
    let sound = |one: &str| Prefix::read(one).is_some_and(Prefix::is_masked);
    subnet.is_none_or(|subnet| subnet.split(',').all(sound))
}

/// Whether `"vlanMode"`, a colon and `"l3"` or `"l3s"` are somewhere in the text of `ipam`, with white space between.
fn has_routed_mode(now: &Value) -> bool {
    let space = ['\t', '\n', '\u{c}', '\r', ' '];
    let ipam = text("ipam", now).unwrap_or_default();
    let mut after = ipam.split("\"vlanMode\"").skip(1).filter_map(|rest| {
        let rest = rest.trim_start_matches(space).strip_prefix(':')?;
        Some(rest.trim_start_matches(space))
    });
    after.any(|rest| rest.starts_with("\"l3\"") || rest.starts_with("\"l3s\""))
}

/// Whether a map or a list is there, and not empty.
fn has_some(key: &str, value: &Value) -> bool {
    match value.get(key) {
        Some(Value::Object(map)) => !map.is_empty(),
        Some(Value::Array(list)) => !list.is_empty(),
        _ => false,
    }
}

fn prefix(key: &str, value: &Value) -> Option<Prefix> {
    text(key, value).and_then(Prefix::read)
}

fn is_kept(key: &str, old: &Value, new: &Value) -> bool {
    old.get(key).is_none_or(|old| new.get(key) == Some(old))
}

fn is_known_provider(now: &Value) -> bool {
    let provider = text("provider", now);
    provider.is_none_or(|name| name.contains('/') || objects::providers().contains(&name))
}

fn is_masked(key: &str, now: &Value) -> bool {
    prefix(key, now).is_some_and(Prefix::is_masked)
}

fn has_its_gateway(now: &Value) -> bool {
    let Some(gateway) = now.get("gateway") else {
        return true;
    };
    let gateway = gateway.as_str().and_then(ip);
    let both = gateway.zip(prefix("cidr", now));
    both.is_some_and(|(gateway, cidr)| cidr.has_ip(gateway))
}

fn has_what_it_excludes(now: &Value) -> bool {
    let (Some(excluded), Some(cidr)) = (
        now.get("exclude").and_then(Value::as_array),
        prefix("cidr", now),
    ) else {
        return true;
    };
    excluded.iter().filter_map(Value::as_str).all(|one| {
        let inner = Prefix::read(one).map(|inner| cidr.has_prefix(inner));
        inner.unwrap_or_else(|| ip(one).is_some_and(|one| cidr.has_ip(one)))
    })
}

fn is_of_one_family(now: &Value) -> bool {
    let Some(gw) = now.get("gw") else {
        return true;
    };
    let both = gw.as_str().and_then(ip).zip(prefix("dst", now));
    both.is_some_and(|(gw, dst)| dst.is_of_family(gw))
}
