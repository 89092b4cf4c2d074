//! Network configurations as people write them, for the nodes of this kit.

use crate::{FAKE, FAKE_IPAM, Node, fake_ipam};
use serde_json::{Value, json};

/// The versions that the shim speaks.
pub const VERSIONS: [&str; 5] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// `host-local` with its files in the node's directory.
pub fn host_local(node: &Node, subnet: &str) -> Value {
    json!({"type": "host-local", "dataDir": node.pools(), "ranges": [[{"subnet": subnet}]]})
}

/// Plugin mode: a macvlan on the uplink with `host-local`, in 10.10.0.0/24.
pub fn macvlan(node: &Node) -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "blue", "type": "plexus-cni",
        "provider": "macvlan", "master": "eth1", "mode": "bridge",
        "ipam": host_local(node, "10.10.0.0/24"),
    })
}

/// Plugin mode: a dual-stack bridge with gateway and masquerading, addresses in the journal.
pub fn bridge() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "pods", "type": "plexus-cni",
        "provider": "bridge", "bridge": "px0", "isDefaultGateway": true, "ipMasq": true,
        "ipam": {"type": "plexus", "subnets": ["10.244.1.0/24", "fd00:244:1::/64"]},
    })
}

/// Plugin mode: a routed veth, dual stack, with default routes.
pub fn routed() -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "plain", "type": "plexus-cni", "provider": "routed",
        "ipam": {
            "type": "plexus", "subnets": ["10.245.1.0/24", "fd00:245:1::/64"],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
        },
    })
}

/// Standalone mode with the given entries of `networks`.
pub fn standalone(name: &str, networks: &[Value]) -> Value {
    json!({
        "cniVersion": "1.1.0", "name": name, "type": "plexus-cni", "networks": networks,
    })
}

/// An entry: the bridge network.
pub fn bridge_entry() -> Value {
    json!({
        "name": "pods", "provider": "bridge", "bridge": "px0", "isGateway": true, "ipMasq": true,
        "ipam": {"type": "plexus", "subnets": ["10.244.1.0/24", "fd00:244:1::/64"]},
    })
}

/// An entry: the macvlan network.
pub fn macvlan_entry(node: &Node) -> Value {
    json!({
        "name": "blue", "provider": "macvlan", "master": "eth1",
        "ipam": host_local(node, "10.10.0.0/24"),
    })
}

/// An entry: the routed network.
pub fn routed_entry() -> Value {
    json!({
        "name": "plain", "provider": "routed",
        "ipam": {"type": "plexus", "subnets": ["10.245.1.0/24", "fd00:245:1::/64"]},
    })
}

/// An entry: a macvlan with a written address, a name and a table of its own.
pub fn static_entry(address: &str) -> Value {
    json!({
        "name": "storage", "provider": "macvlan", "master": "eth1", "interface": "storage0",
        "sourceRouting": true,
        "ipam": {"type": "static", "addresses": [{"address": address, "gateway": "10.20.0.1"}]},
    })
}

/// An entry: the fake plugin, executed.
pub fn fake_entry(node: &Node) -> Value {
    json!({"name": "legacy", "type": FAKE, "dir": node.fake_dir()})
}

/// An entry: a macvlan whose addresses the fake IPAM plugin gives.
pub fn executed_ipam_entry(node: &Node) -> Value {
    json!({
        "name": "wide", "provider": "macvlan", "master": "eth1", "ipam": fake_ipam(node),
    })
}

/// Standalone mode, four native interfaces: bridge, macvlan, routed, macvlan with static address.
pub fn four(node: &Node) -> Value {
    let entries = [
        bridge_entry(),
        macvlan_entry(node),
        routed_entry(),
        static_entry("10.20.0.9/24"),
    ];
    standalone("all", &entries)
}

/// Standalone mode, four interfaces, the third by the fake plugin.
pub fn four_with_delegate(node: &Node) -> Value {
    let entries = [
        bridge_entry(),
        macvlan_entry(node),
        fake_entry(node),
        static_entry("10.20.0.9/24"),
    ];
    standalone("all", &entries)
}

/// Leaves every pool of a configuration with one address that can be handed out, so that two runs
/// get the same one, and an address that leaks is missed at once.
pub fn one_address(config: &Value) -> Value {
    let mut config = config.clone();
    narrow(&mut config);
    config
}

fn narrow(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(narrow),
        Value::Object(map) => {
            if map.get("type").is_some_and(|kind| kind == "plexus") {
                for subnet in map
                    .get_mut("subnets")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    let text = subnet.as_str().unwrap_or_default();
                    *subnet = text
                        .replace(".0/24", ".0/30")
                        .replace("::/64", "::/127")
                        .into();
                }
            }
            if map.get("type").is_some_and(|kind| kind == FAKE_IPAM) {
                map.insert("only".to_owned(), "10.40.0.5".into());
            }
            if let Some(subnet) = map.get("subnet").and_then(Value::as_str) {
                let only = subnet.replace(".0/24", ".5");
                map.insert("rangeStart".to_owned(), only.clone().into());
                map.insert("rangeEnd".to_owned(), only.into());
            }
            map.values_mut().for_each(narrow);
        }
        _ => {}
    }
}
