//! What is asked for: the same interfaces, written for us, for the reference plugins and for the
//! floor. Bridge with gateway and default route, without masquerading; macvlan in bridge mode;
//! addresses from `host-local`, IPv4.

use serde_json::{Value, json};
use std::path::Path;

/// The uplink of the node.
pub(crate) const UPLINK: &str = "eth1";
/// The bridges, one for each contender.
pub(crate) const OUR_BRIDGE: &str = "px0";
pub(crate) const PEER_BRIDGE: &str = "cni0";
pub(crate) const FLOOR_BRIDGE: &str = "floor0";

/// A pod's interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// One macvlan.
    Macvlan,
    /// One bridge port.
    Bridge,
    /// A bridge port and three macvlans.
    Four,
    /// The same with addresses from the journal: ours only.
    FourPlexus,
}

impl Shape {
    pub(crate) fn has_bridge(self) -> bool {
        self != Shape::Macvlan
    }

    pub(crate) fn macvlans(self) -> usize {
        match self {
            Shape::Macvlan => 1,
            Shape::Bridge => 0,
            Shape::Four | Shape::FourPlexus => 3,
        }
    }
}

/// One call of a reference plugin.
#[derive(Debug, Clone)]
pub(crate) struct PeerCall {
    pub(crate) plugin: &'static str,
    pub(crate) ifname: String,
    pub(crate) config: Value,
}

/// The one call that gives a pod all of its interfaces.
pub(crate) fn ours(shape: Shape, pools: &Path) -> Value {
    let ipam = |network: usize| match shape {
        Shape::FourPlexus => {
            let mut ipam = json!({"type": "plexus", "subnets": [format!("10.6{network}.0.0/16")]});
            if network == 0 {
                ipam["routes"] = json!([{"dst": "0.0.0.0/0"}]);
            }
            ipam
        }
        _ => host_local(pools, 3, network),
    };
    let bridge = || json!({"name": "pods", "provider": "bridge", "bridge": OUR_BRIDGE, "isGateway": true, "ipam": ipam(0)});
    let macvlan = |number: usize| json!({"name": format!("lan{number}"), "provider": "macvlan", "master": UPLINK, "mode": "bridge", "ipam": ipam(number)});
    let mut config = match shape {
        Shape::Macvlan => macvlan(1),
        Shape::Bridge => bridge(),
        Shape::Four | Shape::FourPlexus => {
            json!({"name": "all", "networks": [bridge(), macvlan(1), macvlan(2), macvlan(3)]})
        }
    };
    if shape == Shape::FourPlexus {
        config["name"] = "all-plexus".into();
        for entry in config["networks"].as_array_mut().into_iter().flatten() {
            let name = format!("{}-plexus", entry["name"].as_str().unwrap_or_default());
            entry["name"] = name.into();
            if entry["provider"] == "bridge" {
                entry["bridge"] = "px1".into();
            }
        }
    }
    config["cniVersion"] = "1.1.0".into();
    config["type"] = "plexus-cni".into();
    config
}

/// The calls that give a pod the same with the reference plugins.
pub(crate) fn peer(shape: Shape, pools: &Path) -> Vec<PeerCall> {
    let bridge = shape.has_bridge().then(|| PeerCall {
        plugin: "bridge",
        ifname: "eth0".to_owned(),
        config: json!({
            "cniVersion": "1.0.0", "name": "peer-pods", "type": "bridge", "bridge": PEER_BRIDGE,
            "isGateway": true, "ipMasq": false, "ipam": host_local(pools, 2, 0),
        }),
    });
    let macvlans = (1..=shape.macvlans()).map(|number| PeerCall {
        plugin: "macvlan",
        ifname: if shape == Shape::Macvlan {
            "eth0".to_owned()
        } else {
            format!("net{number}")
        },
        config: json!({
            "cniVersion": "1.0.0", "name": format!("peer-lan{number}"), "type": "macvlan",
            "master": UPLINK, "mode": "bridge", "ipam": host_local(pools, 2, number),
        }),
    });
    bridge.into_iter().chain(macvlans).collect()
}

/// Network 0 is the bridge and brings the default route.
fn host_local(pools: &Path, contender: usize, network: usize) -> Value {
    let mut ipam = json!({
        "type": "host-local", "dataDir": pools,
        "ranges": [[{"subnet": format!("10.{contender}{network}.0.0/16")}]],
    });
    if network == 0 {
        ipam["routes"] = json!([{"dst": "0.0.0.0/0"}]);
    }
    ipam
}
