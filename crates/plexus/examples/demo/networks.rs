//! The four networks of the demonstration, and what they leave on the node on purpose.

use plexus_testkit::Node;
use serde_json::{Value, json};
use std::path::Path;

/// One network of each kind, as a runtime would pass it on standard input.
pub(crate) fn config(pools: &Path) -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "demo", "type": "plexus-cni", "default-gw": "pods",
        "networks": [
            {"name": "pods", "provider": "bridge", "bridge": "px0", "isGateway": true, "ipMasq": true,
             "ipam": {"type": "plexus", "subnets": ["10.244.1.0/24", "fd00:244:1::/64"]}},
            {"name": "storage", "provider": "macvlan", "master": "eth1", "interface": "storage0", "sourceRouting": true,
             "ipam": {"type": "host-local", "dataDir": pools, "ranges": [[{"subnet": "10.10.0.0/24"}]]}},
            {"name": "tenant", "provider": "macvlan", "master": "eth1", "mode": "private",
             "ipam": {"type": "plexus", "subnets": ["10.20.0.0/24"]}},
            {"name": "fabric", "provider": "routed",
             "ipam": {"type": "plexus", "subnets": ["10.30.0.0/24", "fd00:30::/64"]}}
        ]
    })
}

/// The networks in a line.
pub(crate) fn summary() -> &'static str {
    "pods (bridge), storage (macvlan), tenant (macvlan, private), fabric (routed)"
}

/// Network, the container's interface, and whether containers reach each other there.
pub(crate) const EXPECTED: [(&str, &str, bool); 4] = [
    ("pods", "eth0", true),
    ("storage", "storage0", true),
    ("tenant", "net2", false),
    ("fabric", "net3", true),
];

/// A network's bridge and masquerading stay when its last pod goes; here the networks go too.
pub(crate) fn remove_what_stays(node: &Node) {
    node.ns()
        .sh("ip link del px0; nft delete table inet plexus");
}

/// The node forwards already, like any node that has containers: bridges turn that on anyway, and
/// it would stay when they go.
pub(crate) fn forward(node: &Node) {
    node.ns()
        .sh("cd /proc/sys/net; echo 1 >ipv4/ip_forward; echo 1 >ipv6/conf/all/forwarding");
}
