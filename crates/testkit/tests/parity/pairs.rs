//! The configurations: every key of `macvlan`, `bridge`, `host-local` and `static`, with a value
//! that makes a difference.

use plexus_testkit::Node;
use serde_json::{Value, json};

/// `@DIR/resolv.conf`.
pub(crate) const RESOLV_CONF: &str = "# a comment\nnameserver 192.0.2.53\nnameserver \
    2001:db8::53\ndomain d.example\nsearch a.example b.example\noptions ndots:2\n";

/// Who does it when we are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Implementation {
    /// We.
    Native,
    /// The reference, executed by us.
    Delegated,
}

/// A configuration, and what is around it.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) name: &'static str,
    pub(crate) plugin: &'static str,
    /// The configuration, without `cniVersion`, `name` and `type`; `@DIR` is the node's directory.
    pub(crate) options: Value,
    pub(crate) version: &'static str,
    /// CNI_ARGS.
    pub(crate) args: &'static str,
    /// A script that runs on the node beforehand.
    pub(crate) on_node: &'static str,
    /// A script that runs in the container beforehand.
    pub(crate) in_pod: &'static str,
    /// The MAC that the container must end up with.
    pub(crate) mac: Option<&'static str>,
    /// Our words where the reference refuses in its own.
    pub(crate) refusal: Option<&'static str>,
    /// What the reference's CHECK says although nothing is wrong.
    pub(crate) check_bug: Option<&'static str>,
    /// Lines with this in them are not compared: we do it otherwise, for a reason that the pair gives.
    pub(crate) otherwise: Option<&'static str>,
    pub(crate) implementation: Implementation,
}

impl Pair {
    pub(crate) fn new(name: &'static str, plugin: &'static str, options: Value) -> Self {
        Self {
            name,
            plugin,
            options,
            version: "1.1.0",
            args: "",
            on_node: "",
            in_pod: "",
            mac: None,
            refusal: None,
            check_bug: None,
            otherwise: None,
            implementation: Implementation::Native,
        }
    }

    /// The bridge's name, if it has one.
    pub(crate) fn bridge(&self) -> Option<&str> {
        let name = || self.options["bridge"].as_str().unwrap_or("cni0");
        (self.plugin == "bridge").then(name)
    }

    /// Whether both have a firewall of their own, which packets must compare.
    pub(crate) fn masquerades(&self) -> bool {
        self.implementation == Implementation::Native && self.options["ipMasq"] == true
    }

    /// What a runtime sends.
    pub(crate) fn config(&self, node: &Node) -> Value {
        let mut config = self.options.clone();
        config["cniVersion"] = self.version.into();
        config["name"] = "n1".into();
        config["type"] = self.plugin.into();
        let dir = node.file("").to_string_lossy().into_owned();
        let text = config.to_string().replace("@DIR/", &dir);
        serde_json::from_str(&text).unwrap()
    }
}

const POOLS: &str = "@DIR/pools";

/// `host-local` with one set for each subnet.
pub(crate) fn host_local(subnets: &[&str]) -> Value {
    let ranges: Vec<Value> = subnets.iter().map(|s| json!([{"subnet": s}])).collect();
    json!({"type": "host-local", "dataDir": POOLS, "ranges": ranges})
}

fn with_routes(mut ipam: Value, routes: Value) -> Value {
    ipam["routes"] = routes;
    ipam
}

const V4: &str = "10.1.2.0/24";
const V6: &str = "fd00:1::/64";

/// What we do ourselves.
pub(crate) fn native() -> Vec<Pair> {
    let mut all = macvlan();
    all.extend(macvlan_requests());
    all.extend(macvlan_versions());
    all.extend(bridge());
    all.extend(bridge_existing());
    all.extend(bridge_requests());
    all
}

fn macvlan() -> Vec<Pair> {
    let pair = |name, options| Pair::new(name, "macvlan", options);
    let routes = json!([
        {"dst": "0.0.0.0/0"},
        {"dst": "10.5.0.0/16", "gw": "10.1.2.254", "mtu": 1400, "advmss": 1300, "priority": 50,
         "table": 100},
        {"dst": "10.6.0.0/16", "gw": "0.0.0.0", "scope": 253},
    ]);
    let routes6 = json!([
        {"dst": "0.0.0.0/0"}, {"dst": "::/0"},
        {"dst": "fd00:5::/64", "table": 300, "priority": 30},
    ]);
    let dns = json!({"nameservers": ["192.0.2.54"], "domain": "x.y", "search": ["x.y"],
        "options": ["ndots:5"]});
    let fixed = json!({"type": "static",
        "addresses": [{"address": "10.1.2.9/24", "gateway": "10.1.2.1"},
                      {"address": "fd00:1::9/64", "gateway": "fd00:1::1"}],
        "routes": [
            {"dst": "10.9.0.0/16"}, {"dst": "fd00:9::/64", "gw": "fd00:1::77", "mtu": 1300,
             "advmss": 1200, "priority": 7, "table": 5},
            {"dst": "10.7.0.0/16", "gw": "0.0.0.0", "scope": 253}],
        "dns": {"nameservers": ["192.0.2.55"], "domain": "z", "search": ["z"], "options": ["a"]}});
    let range = json!({"subnet": V4, "rangeStart": "10.1.2.50", "rangeEnd": "10.1.2.60",
        "gateway": "10.1.2.77"});
    let mut legacy = range.clone();
    legacy["type"] = "host-local".into();
    legacy["dataDir"] = POOLS.into();
    let ranges = json!({"type": "host-local", "dataDir": POOLS, "ranges": [[range]],
        "resolvConf": "@DIR/resolv.conf"});
    vec![
        Pair {
            check_bug: Some("not found in routing table"),
            ..pair(
                "macvlan with routes",
                json!({"master": "eth1", "mode": "bridge",
                    "ipam": with_routes(host_local(&[V4]), routes)}),
            )
        },
        Pair {
            mac: Some("02:00:00:00:00:01"),
            check_bug: Some("not found in routing table"),
            ..pair(
                "macvlan private, dual stack",
                json!({"master": "eth1", "mode": "private", "mtu": 1400, "bcqueuelen": 77,
                    "mac": "02:00:00:00:00:01", "dns": dns,
                    "ipam": with_routes(host_local(&[V4, V6]), routes6)}),
            )
        },
        pair(
            "macvlan vepa, no addresses",
            json!({"master": "eth1", "mode": "vepa"}),
        ),
        Pair {
            check_bug: Some("not found in routing table"),
            ..pair(
                "macvlan passthru, static",
                json!({"master": "eth1", "mode": "passthru", "ipam": fixed}),
            )
        },
        pair(
            "macvlan on the default route's link, one range",
            json!({"ipam": legacy}),
        ),
        pair(
            "macvlan, part of a range",
            json!({"master": "eth1", "ipam": ranges}),
        ),
    ]
}

/// What a runtime or a user asks for one container.
fn macvlan_requests() -> Vec<Pair> {
    let pair = |name, options| Pair::new(name, "macvlan", options);
    let written = json!({"type": "static",
        "addresses": [{"address": "10.1.2.9/24", "gateway": "10.1.2.1"}]});
    vec![
        Pair {
            mac: Some("02:00:00:00:00:07"),
            ..pair(
                "macvlan, runtimeConfig",
                json!({"master": "eth1", "mac": "02:00:00:00:00:01",
                    "capabilities": {"mac": true, "ips": true},
                    "runtimeConfig": {"mac": "02:00:00:00:00:07",
                                      "ips": ["10.1.2.40/24", "fd00:1::40/64"]},
                    "ipam": host_local(&[V4, V6])}),
            )
        },
        Pair {
            mac: Some("02:00:00:00:00:08"),
            args: "IgnoreUnknown=1;MAC=02:00:00:00:00:08;IP=10.1.2.41",
            ..pair(
                "macvlan, CNI_ARGS",
                json!({"master": "eth1", "mac": "02:00:00:00:00:01", "ipam": host_local(&[V4])}),
            )
        },
        pair(
            "macvlan, args",
            json!({"master": "eth1", "args": {"cni": {"ips": ["10.1.2.42"]}},
                "ipam": host_local(&[V4])}),
        ),
        Pair {
            args: "IgnoreUnknown=1;IP=10.3.0.4/16;GATEWAY=10.3.0.1",
            ..pair(
                "macvlan static, CNI_ARGS",
                json!({"master": "eth1", "ipam": written}),
            )
        },
        pair(
            "macvlan static, args",
            json!({"master": "eth1", "args": {"cni": {"ips": ["10.1.2.43/24"]}},
                "ipam": written}),
        ),
        pair(
            "macvlan static, runtimeConfig",
            json!({"master": "eth1", "capabilities": {"ips": true},
                "args": {"cni": {"ips": ["10.1.2.43/24"]}},
                "runtimeConfig": {"ips": ["10.1.2.44/24"]}, "ipam": {"type": "static"}}),
        ),
    ]
}

fn macvlan_versions() -> Vec<Pair> {
    let pair = |name, version, options| Pair {
        version,
        ..Pair::new(name, "macvlan", options)
    };
    let usual = json!({"master": "eth1", "ipam": host_local(&[V4])});
    vec![
        pair("macvlan 0.3.1", "0.3.1", usual.clone()),
        pair("macvlan 0.4.0", "0.4.0", usual.clone()),
        pair("macvlan 1.0.0", "1.0.0", usual),
        pair(
            "macvlan 0.3.1, no addresses",
            "0.3.1",
            json!({"master": "eth1"}),
        ),
    ]
}

fn bridge() -> Vec<Pair> {
    let pair = |name, options| Pair::new(name, "bridge", options);
    vec![
        pair(
            "bridge with gateway and mtu",
            json!({"bridge": "br0", "isGateway": true, "mtu": 1400,
                "ipam": with_routes(host_local(&[V4]), json!([{"dst": "10.5.0.0/16"}]))}),
        ),
        pair(
            "bridge with default gateway",
            json!({"bridge": "br0", "isDefaultGateway": true, "ipam": host_local(&[V4, V6])}),
        ),
        pair(
            "bridge with masquerading and hairpin",
            json!({"bridge": "br0", "isDefaultGateway": true, "ipMasq": true,
                "hairpinMode": true, "ipam": host_local(&[V4])}),
        ),
        pair(
            "bridge with masquerading and promiscuity, dual stack",
            json!({"bridge": "br0", "isDefaultGateway": true, "ipMasq": true,
                "promiscMode": true, "ipam": host_local(&[V4, V6])}),
        ),
        pair(
            "bridge cni0",
            json!({"preserveDefaultVlan": true, "ipam": host_local(&[V4])}),
        ),
        Pair {
            check_bug: Some("no plugin name provided"),
            ..pair("bridge without addresses", json!({"bridge": "br0"}))
        },
        pair(
            "bridge with computed gateways",
            json!({"bridge": "br0", "isDefaultGateway": true,
                "ipam": {"type": "static", "dns": {"nameservers": ["192.0.2.55"]},
                    "addresses": [{"address": "10.1.2.9/24"}, {"address": "fd00:1::9/64"}]}}),
        ),
        Pair {
            version: "0.4.0",
            ..pair(
                "bridge 0.4.0",
                json!({"bridge": "br0", "isGateway": true, "ipam": host_local(&[V4, V6])}),
            )
        },
        Pair {
            version: "0.3.1",
            ..pair("bridge 0.3.1, no addresses", json!({"bridge": "br0"}))
        },
        Pair {
            version: "1.0.0",
            ..pair(
                "bridge 1.0.0, IPv6 only",
                json!({"bridge": "br0", "isDefaultGateway": true, "ipMasq": true,
                    "ipam": host_local(&[V6])}),
            )
        },
    ]
}

/// A bridge that somebody made before.
fn bridge_existing() -> Vec<Pair> {
    let pair = |name, on_node, options| Pair {
        on_node,
        ..Pair::new(name, "bridge", options)
    };
    vec![
        pair(
            "bridge with another address, forced",
            "ip link add br0 address 02:00:00:00:00:aa type bridge; \
             ip address add 10.8.0.1/24 dev br0; ip address add fd00:8::1/64 dev br0 nodad; \
             ip address add fd00:1::7/64 dev br0 nodad; ip link set br0 up",
            json!({"bridge": "br0", "isGateway": true, "forceAddress": true,
                "ipam": host_local(&[V4, V6])}),
        ),
        pair(
            "bridge with the same address",
            "ip link add br0 address 02:00:00:00:00:aa mtu 1300 type bridge; \
             ip address add 10.1.2.1/24 dev br0; ip link set br0 up",
            json!({"bridge": "br0", "isGateway": true, "ipam": host_local(&[V4])}),
        ),
        Pair {
            refusal: Some("bridge br0 has the address 10.8.0.1/24 already"),
            ..pair(
                "bridge with another address",
                "ip link add br0 address 02:00:00:00:00:aa type bridge; \
                 ip address add 10.8.0.1/24 dev br0; ip link set br0 up",
                json!({"bridge": "br0", "isGateway": true, "ipam": host_local(&[V4])}),
            )
        },
        Pair {
            refusal: Some("br0"),
            ..pair(
                "bridge that is none",
                "ip link add br0 type veth peer name br1",
                json!({"bridge": "br0", "ipam": host_local(&[V4])}),
            )
        },
    ]
}

fn bridge_requests() -> Vec<Pair> {
    let pair = |name, options| Pair::new(name, "bridge", options);
    let resolving = || {
        let mut ipam = host_local(&[V4]);
        ipam["resolvConf"] = "@DIR/resolv.conf".into();
        ipam
    };
    vec![
        Pair {
            mac: Some("02:00:00:00:00:09"),
            args: "IgnoreUnknown=1;MAC=02:00:00:00:00:0b",
            ..pair(
                "bridge, args",
                json!({"bridge": "br0", "args": {"cni": {"mac": "02:00:00:00:00:09"}},
                    "ipam": host_local(&[V4])}),
            )
        },
        Pair {
            mac: Some("02:00:00:00:00:0a"),
            ..pair(
                "bridge, runtimeConfig",
                json!({"bridge": "br0", "args": {"cni": {"mac": "02:00:00:00:00:09"}},
                    "capabilities": {"mac": true},
                    "runtimeConfig": {"mac": "02:00:00:00:00:0a"}, "ipam": host_local(&[V4])}),
            )
        },
        Pair {
            mac: Some("02:00:00:00:00:0b"),
            args: "IgnoreUnknown=1;MAC=02:00:00:00:00:0b",
            ..pair(
                "bridge, CNI_ARGS",
                json!({"bridge": "br0", "ipam": host_local(&[V4])}),
            )
        },
        pair(
            "bridge, dns",
            json!({"bridge": "br0", "ipam": resolving(),
                "dns": {"nameservers": ["192.0.2.54"], "domain": "x.y", "search": ["x.y"],
                        "options": ["ndots:5"]}}),
        ),
        pair(
            "bridge, resolv.conf",
            json!({"bridge": "br0", "ipam": resolving()}),
        ),
    ]
}

/// What we leave to the reference, key by key.
pub(crate) fn delegated() -> Vec<Pair> {
    let bridge = |name, options: Value| {
        let mut options = options;
        options["bridge"] = "br0".into();
        Pair {
            implementation: Implementation::Delegated,
            ..Pair::new(name, "bridge", options)
        }
    };
    let ipam = || host_local(&[V4]);
    let masquerade = |backend| json!({"isDefaultGateway": true, "ipMasq": true, "ipMasqBackend": backend, "ipam": ipam()});
    let trunk = json!([{"minID": 5, "maxID": 7}, {"id": 9}]);
    let ranges = json!([[{"subnet": "10.1.3.0/24"}]]);
    vec![
        bridge("vlan", json!({"vlan": 100, "ipam": ipam()})),
        bridge("vlanTrunk", json!({"vlanTrunk": trunk, "ipam": ipam()})),
        bridge("ipMasqBackend nftables", masquerade("nftables")),
        bridge("ipMasqBackend iptables", masquerade("iptables")),
        bridge("macspoofchk", json!({"macspoofchk": true, "ipam": ipam()})),
        bridge(
            "enabledad",
            json!({"enabledad": true, "ipam": host_local(&[V6])}),
        ),
        Pair {
            check_bug: Some("no plugin name provided"),
            ..bridge(
                "disableContainerInterface",
                json!({"disableContainerInterface": true}),
            )
        },
        bridge(
            "portIsolation",
            json!({"portIsolation": true, "ipam": ipam()}),
        ),
        bridge(
            "ipRanges",
            json!({"capabilities": {"ipRanges": true}, "runtimeConfig": {"ipRanges": ranges},
                "ipam": ipam()}),
        ),
        Pair {
            implementation: Implementation::Delegated,
            in_pod: "ip link add inner0 address 02:00:00:00:00:21 type veth peer name inner1 \
                     address 02:00:00:00:00:22; ip link set inner0 up; ip link set inner1 up",
            ..Pair::new(
                "linkInContainer",
                "macvlan",
                json!({"master": "inner0", "linkInContainer": true,
                    "ipam": host_local(&["10.1.4.0/24"])}),
            )
        },
    ]
}
