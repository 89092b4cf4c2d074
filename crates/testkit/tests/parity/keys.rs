//! The keys of the plugins' configurations, each of which must be in a pair: natively done, or
//! left to the plugin.

use crate::pairs::{Pair, delegated, native};
use serde_json::Value;
use std::collections::BTreeSet;

const MACVLAN: &str = "master mode mtu mac linkInContainer bcqueuelen ipam.type dns.nameservers \
    dns.domain dns.search dns.options runtimeConfig.mac CNI_ARGS.MAC";

const BRIDGE: &str = "bridge isGateway isDefaultGateway forceAddress ipMasq ipMasqBackend mtu \
    hairpinMode promiscMode vlan vlanTrunk.minID vlanTrunk.maxID vlanTrunk.id \
    preserveDefaultVlan macspoofchk enabledad disableContainerInterface portIsolation ipam.type \
    dns.nameservers dns.domain dns.search dns.options args.cni.mac runtimeConfig.mac \
    CNI_ARGS.MAC";

const HOST_LOCAL: &str = "ranges.subnet ranges.rangeStart ranges.rangeEnd ranges.gateway subnet \
    rangeStart rangeEnd gateway routes.dst routes.gw routes.mtu routes.advmss routes.priority \
    routes.table routes.scope resolvConf dataDir runtimeConfig.ipRanges runtimeConfig.ips \
    args.cni.ips CNI_ARGS.IP";

const STATIC: &str = "addresses.address addresses.gateway routes.dst routes.gw routes.mtu \
    routes.advmss routes.priority routes.table routes.scope dns.nameservers dns.domain \
    dns.search dns.options args.cni.ips runtimeConfig.ips CNI_ARGS.IP CNI_ARGS.GATEWAY";

/// The keys that make us execute the plugin.
const DELEGATED: &str = "macvlan.linkInContainer bridge.ipMasqBackend bridge.vlan \
    bridge.vlanTrunk.minID bridge.vlanTrunk.maxID bridge.vlanTrunk.id bridge.macspoofchk \
    bridge.enabledad bridge.disableContainerInterface bridge.portIsolation \
    host-local.runtimeConfig.ipRanges";

/// Every key is in a pair of its kind, and in no pair of the other.
pub(crate) fn check() {
    let tables = [
        ("macvlan", MACVLAN),
        ("bridge", BRIDGE),
        ("host-local", HOST_LOCAL),
        ("static", STATIC),
    ];
    let all: BTreeSet<String> = tables
        .iter()
        .flat_map(|(plugin, keys)| {
            keys.split_whitespace()
                .map(move |k| format!("{plugin}.{k}"))
        })
        .collect();
    let given_away: BTreeSet<String> = DELEGATED.split_whitespace().map(str::to_owned).collect();
    let in_native: BTreeSet<String> = native().iter().flat_map(keys_of).collect();
    let in_delegated: BTreeSet<String> = delegated().iter().flat_map(keys_of).collect();
    let seen: BTreeSet<String> = in_native.union(&in_delegated).cloned().collect();
    let list = |keys: Vec<&String>| keys.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        list(all.difference(&seen).collect()),
        [""; 0],
        "are in no pair"
    );
    assert_eq!(
        list(seen.difference(&all).collect()),
        [""; 0],
        "are no keys of the plugin"
    );
    assert_eq!(
        list(given_away.difference(&in_delegated).collect()),
        [""; 0],
        "are in no pair that is delegated"
    );
    assert_eq!(
        list(given_away.intersection(&in_native).collect()),
        [""; 0],
        "are delegated, and in a pair that is not"
    );
    assert_eq!(
        list(
            all.difference(&given_away)
                .filter(|key| !in_native.contains(*key))
                .collect()
        ),
        [""; 0],
        "are neither done natively nor delegated"
    );
    println!(
        "delegated: {}",
        list(given_away.iter().collect()).join(", ")
    );
}

/// The keys of a pair that say something: `bridge.isGateway`, `host-local.ranges.subnet`.
fn keys_of(pair: &Pair) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let ipam = pair.options["ipam"]["type"].as_str().unwrap_or_default();
    let mut leaves = Vec::new();
    flatten("", &pair.options, &mut leaves);
    let variables = pair.args.split(';').filter_map(|pair| pair.split_once('='));
    leaves.extend(variables.map(|(name, _)| format!("CNI_ARGS.{name}")));
    leaves.retain(|key| !key.starts_with("capabilities.") && key != "CNI_ARGS.IgnoreUnknown");
    for key in leaves {
        let by_ipam = key.ends_with(".ips") || key.ends_with(".IP") || key.ends_with(".GATEWAY");
        match key.strip_prefix("ipam.").filter(|key| *key != "type") {
            Some(key) => keys.insert(format!("{ipam}.{key}")),
            None if key.starts_with("runtimeConfig.ipRanges.") => {
                keys.insert(format!("{ipam}.runtimeConfig.ipRanges"))
            }
            None if by_ipam => keys.insert(format!("{ipam}.{key}")),
            None => keys.insert(format!("{}.{key}", pair.plugin)),
        };
    }
    keys
}

/// The paths of all values but those that say nothing.
fn flatten(path: &str, value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                flatten(&path, value, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| flatten(path, item, into)),
        Value::Null | Value::Bool(false) => {}
        Value::Number(number) if number.as_u64() == Some(0) => {}
        Value::String(text) if text.is_empty() => {}
        _ => into.push(path.to_owned()),
    }
}
