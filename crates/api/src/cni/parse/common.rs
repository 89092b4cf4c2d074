//! What several sections of a configuration share: routes, DNS, MTU.

use crate::Fields;
use crate::cni::{Dns, RouteConf};
use crate::text::{host_bits, other_family, quoted};
use serde_json::Value;

/// `routes` of an IPAM section. A destination must be a network, and its next hop of its family:
/// the kernel would refuse the rest, but later.
pub(crate) fn routes(fields: &mut Fields<'_>) -> Vec<RouteConf> {
    let strict = |fields: &mut Fields<'_>, _| {
        let route = route(fields)?;
        if let Some(text) = host_bits(&route.dst) {
            fields.problem("dst", text);
        }
        if let Some(text) = route.gw.and_then(|gw| other_family(gw, &route.dst)) {
            fields.problem("gw", text);
        }
        Some(route)
    };
    fields.objects("routes", strict).unwrap_or_default()
}

/// One route, of a configuration or of a result. Zero is Go's way to say "absent".
pub(crate) fn route(fields: &mut Fields<'_>) -> Option<RouteConf> {
    let some = |number: &u32| *number != 0;
    let dst = fields.parsed("dst");
    let gw = fields.parsed("gw");
    let mtu = fields.number("mtu").filter(some);
    let advmss = fields.number("advmss").filter(some);
    let priority = fields.number("priority").filter(some);
    let table = fields.number("table");
    let scope = fields.number("scope").and_then(|scope| {
        let small = u8::try_from(scope).ok();
        if small.is_none() {
            fields.problem("scope", format!("is {scope}: write a number from 0 to 255"));
        }
        small
    });
    fields.require("dst", "write the destination, such as 0.0.0.0/0");
    Some(RouteConf {
        dst: dst?,
        gw,
        mtu,
        advmss,
        priority,
        table,
        scope,
    })
}

/// `dns`.
pub(crate) fn dns(fields: &mut Fields<'_>) -> Dns {
    Dns {
        nameservers: fields.parsed_list("nameservers"),
        domain: fields.parsed("domain"),
        search: fields.parsed_list("search"),
        options: fields.parsed_list("options"),
    }
}

/// `mtu`; zero is Go's way to say "absent".
pub(crate) fn mtu(fields: &mut Fields<'_>) -> Option<u32> {
    let mtu = fields.number("mtu").filter(|mtu| *mtu != 0)?;
    if !(68..=65535).contains(&mtu) {
        let text = format!("is {mtu}: write a number from 68 to 65535, or leave it out");
        fields.problem("mtu", text);
    }
    Some(mtu)
}

/// `mode`, which is the default unless one is written; `all` lists them.
pub(crate) fn mode<T: Default>(
    fields: &mut Fields<'_>,
    from_name: impl Fn(&str) -> Option<T>,
    all: &str,
) -> Option<T> {
    let written = fields.text("mode").filter(|mode| !mode.is_empty());
    let mode = written.map_or_else(|| Some(T::default()), from_name);
    if let (Some(written), None) = (written, &mode) {
        let text = format!("is {}: write {all}", quoted(written));
        fields.problem("mode", text);
    }
    mode
}

/// The capabilities that are declared: `{"portMappings": true}`.
pub(crate) fn capabilities(fields: &mut Fields<'_>) -> Vec<String> {
    let Some(map) = fields.map_of("capabilities") else {
        return Vec::new();
    };
    let mut declared = Vec::new();
    for (name, value) in map {
        match value {
            Value::Bool(true) => declared.push(name.clone()),
            Value::Bool(false) | Value::Null => {}
            _ => fields.problem(&format!("capabilities.{name}"), "must be true or false"),
        }
    }
    declared
}
