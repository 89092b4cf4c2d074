//! The reference plugin and we, given the same.

use crate::pairs::{Pair, host_local};
use crate::twins;
use serde_json::{Value, json};

const V4: &str = "10.1.2.0/24";
const V6: &str = "fd00:1::/64";

pub(crate) fn ipvlan() {
    let pair = |name, options| Pair::new(name, "ipvlan", options);
    let mut routed = host_local(&[V4, V6]);
    routed["routes"] = json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"},
        {"dst": "10.6.0.0/16", "gw": "10.1.2.254", "table": 100, "priority": 50}]);
    let dns = json!({"nameservers": ["192.0.2.54"], "domain": "x.y"});
    let without_gateway = json!({"type": "static", "addresses": [{"address": "10.1.2.9/24"}],
        "routes": [{"dst": "0.0.0.0/0"}]});
    compare(vec![
        Pair {
            // The reference looks for the route in the main table alone.
            check_bug: Some("not found in routing table"),
            ..pair(
                "l2",
                json!({"master": "eth1", "mtu": 1400, "dns": dns, "ipam": routed}),
            )
        },
        Pair {
            // The mode has no neighbours that could be told; the plugin asks for it all the same.
            otherwise: Some("_notify="),
            ..pair(
                "l3",
                json!({"master": "eth1", "mode": "l3", "ipam": without_gateway}),
            )
        },
        Pair {
            otherwise: Some("_notify="),
            // The reference finds the default route's link only in an ADD.
            check_bug: Some("failed to lookup master"),
            ..pair("l3s", json!({"mode": "l3s", "ipam": host_local(&[V6])}))
        },
        Pair {
            refusal: Some("write l2, l3 or l3s"),
            ..pair(
                "no mode",
                json!({"master": "eth1", "mode": "l4", "ipam": host_local(&[V4])}),
            )
        },
    ]);
}

pub(crate) fn vlan() {
    let mut routed = host_local(&[V4, V6]);
    routed["routes"] = json!([{"dst": "0.0.0.0/0"}]);
    let options = json!({"master": "eth1", "vlanId": 5, "mtu": 1400, "ipam": routed});
    let pair = |name, options: Value| Pair {
        // An address that comes from another node has another MAC: we tell the neighbours, the plugin does not.
        otherwise: Some("_notify="),
        ..Pair::new(name, "vlan", options)
    };
    compare(vec![
        pair("vlan 5", options),
        Pair {
            refusal: Some("mtu 9000 is greater than 1500"),
            ..pair(
                "too large an MTU",
                json!({"master": "eth1", "vlanId": 5, "mtu": 9000, "ipam": host_local(&[V4])}),
            )
        },
    ]);
}

fn compare(pairs: Vec<Pair>) {
    let mut problems = Vec::new();
    for pair in pairs {
        let found = twins::compare(&pair).into_iter();
        problems.extend(found.map(|text| format!("{}: {text}", pair.name)));
    }
    assert!(
        problems.is_empty(),
        "- is the reference, + is ours\n{}",
        problems.join("\n")
    );
}
