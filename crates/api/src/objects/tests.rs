//! Objects: how they are written, what is wrong with them, what follows from them.

use super::*;
use serde_json::{Value, json};

fn spec(value: Value) -> NetworkSpec {
    serde_json::from_value(value).unwrap()
}

/// As in the reference.
fn full() -> Value {
    json!({
        "provider": "overlay", "uuid": "2a9aafcc",
        "subnets": {
            "a": {"cidr": "10.1.0.0/16", "gateway": "10.1.255.254", "exclude": ["10.1.0.0/28", "10.1.0.99"]},
            "b": {"cidr": "fd00:1::/48"}},
        "blockSize": {"ipv4": 26, "ipv6": 122}, "mtu": 1400,
        "routes": [{"dst": "192.168.0.0/16", "gw": "10.1.255.254"}],
        "snat": false, "sourceCheck": true, "allowedNamespaces": {"from": "All"}, "config": {},
    })
}

#[test]
fn the_reference_is_right() {
    let network = spec(full());
    assert_eq!(network.problems().to_string(), "");
    let mut wanted = full();
    wanted["subnets"]["a"]["exclude"][1] = json!("10.1.0.99/32");
    wanted.as_object_mut().unwrap().remove("config");
    assert_eq!(serde_json::to_value(&network).unwrap(), wanted);
    let empty = spec(json!({}));
    assert!(empty.source_check && !empty.snat);
    assert_eq!(empty.provider_name(), "overlay");
    assert_eq!(empty.problems().to_string(), "");
}

#[test]
fn gateways_and_blocks() {
    for (cidr, gateway, length) in [
        ("10.1.0.0/16", "10.1.255.254", 26),
        ("10.1.1.0/24", "10.1.1.254", 26),
        ("10.1.1.0/28", "10.1.1.14", 28),
        ("10.1.1.0/30", "10.1.1.2", 30),
        ("10.1.1.0/31", "10.1.1.1", 31),
        ("10.1.1.1/32", "10.1.1.1", 32),
        ("0.0.0.0/0", "255.255.255.254", 26),
        ("fd00:1::/64", "fd00:1::ffff:ffff:ffff:fffe", 122),
        ("fd00:1::/126", "fd00:1::2", 126),
        ("fd00:1::/127", "fd00:1::1", 127),
        ("::/0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 122),
    ] {
        let network = spec(json!({"subnets": {"a": {"cidr": cidr}}}));
        let subnet = &network.subnets["a"];
        assert_eq!(network.gateway_of(subnet).to_string(), gateway, "{cidr}");
        assert_eq!(network.block_length_of(subnet), length, "{cidr}");
    }
    let network = spec(
        json!({"subnets": {"a": {"cidr": "10.0.0.0/8", "gateway": "10.0.0.1"},
        "b": {"cidr": "fd00::/48"}}, "blockSize": {"ipv4": 24}}),
    );
    let subnets = network.block_subnets();
    assert_eq!(subnets[0].block_length, Some(24));
    assert_eq!(subnets[0].gateway, "10.0.0.1".parse().ok());
    assert_eq!(subnets[1].block_length, Some(122));
}

#[test]
fn every_problem_has_its_path() {
    let one = |subnet: Value| json!({"subnets": {"a": subnet}});
    for (value, cause) in [
        (
            json!({"provider": "overlai"}),
            "spec.provider: \"overlai\" is not a provider: did you mean \"overlay\"?",
        ),
        (json!({"provider": "a/b/c"}), "spec.provider"),
        (json!({"provider": "/b"}), "spec.provider"),
        (json!({"uuid": ""}), "spec.uuid"),
        (json!({"uuid": "a b"}), "spec.uuid"),
        (
            one(json!({"cidr": "10.1.0.1/16"})),
            "spec.subnets.a.cidr: 10.1.0.1/16 has host bits set: write 10.1.0.0/16",
        ),
        (one(json!({"cidr": "224.0.0.0/8"})), "is multicast"),
        (one(json!({"cidr": "127.0.0.0/8"})), "is loopback"),
        (one(json!({"cidr": "169.254.1.0/24"})), "is link-local"),
        (one(json!({"cidr": "fe80::/64"})), "is link-local"),
        (one(json!({"cidr": "ff00::/64"})), "is multicast"),
        (one(json!({"cidr": "240.0.0.0/8"})), "is reserved"),
        (
            one(json!({"cidr": "10.1.0.0/32"})),
            "has no address to hand out",
        ),
        (
            one(json!({"cidr": "10.1.0.0/30", "exclude": ["10.1.0.1"]})),
            "has no address to hand out",
        ),
        (
            one(json!({"cidr": "10.1.0.0/16", "exclude": ["10.1.0.0/16", "10.1.0.0/17"]})),
            "has no address to hand out",
        ),
        (
            one(json!({"cidr": "10.1.0.0/16", "gateway": "10.2.0.1"})),
            "spec.subnets.a.gateway: 10.2.0.1",
        ),
        (
            one(json!({"cidr": "10.1.0.0/16", "gateway": "10.1.0.0"})),
            "spec.subnets.a.gateway",
        ),
        (
            one(json!({"cidr": "10.1.0.0/16", "gateway": "10.1.255.255"})),
            "spec.subnets.a.gateway",
        ),
        (
            one(json!({"cidr": "10.1.0.0/16", "gateway": "fd00::1"})),
            "spec.subnets.a.gateway",
        ),
        (
            one(json!({"cidr": "10.1.0.0/16", "exclude": ["10.2.0.0/24"]})),
            "10.2.0.0/24 is not inside",
        ),
        (
            one(json!({"cidr": "10.1.0.0/16", "exclude": ["10.1.0.1/24"]})),
            "write 10.1.0.0/24",
        ),
        (
            json!({"subnets": {"a": {"cidr": "10.0.0.0/8"}, "b": {"cidr": "10.1.0.0/16"}}}),
            "spec.subnets.b.cidr: 10.1.0.0/16 overlaps subnet a",
        ),
        (
            json!({"subnets": {"": {"cidr": "10.0.0.0/8"}}}),
            "spec.subnets: has the key \"\"",
        ),
        (json!({"blockSize": {"ipv4": 33}}), "spec.blockSize.ipv4"),
        (json!({"blockSize": {"ipv6": 129}}), "spec.blockSize.ipv6"),
        (json!({"blockSize": {"ipv4": 0}}), "spec.blockSize.ipv4"),
        (json!({"mtu": 100}), "spec.mtu"),
        (
            json!({"mtu": 1000, "subnets": {"a": {"cidr": "fd00::/64"}}}),
            "from 1280",
        ),
        (
            json!({"subnets": {"a": {"cidr": "10.0.0.0/8"}}, "routes": [{"dst": "10.0.0.1/8"}]}),
            "spec.routes[0].dst",
        ),
        (
            json!({"subnets": {"a": {"cidr": "10.0.0.0/8"}}, "routes": [{"dst": "::/0", "gw": "10.0.0.1"}]}),
            "spec.routes[0].gw",
        ),
        (
            json!({"subnets": {"a": {"cidr": "10.0.0.0/8"}}, "routes": [{"dst": "0.0.0.0/0", "gw": "10.0.0.1"}]}),
            "spec.routes[0].gw: is 10.0.0.1: provider overlay sends what its pods send to the gateways of its subnets \
             alone, not to other addresses: remove gw, or write 10.255.255.254",
        ),
        (
            json!({"provider": "routed", "subnets": {"a": {"cidr": "10.0.0.0/8"}, "b": {"cidr": "fd00::/64"}},
                "routes": [{"dst": "fd01::/64"}, {"dst": "fd01::/64", "gw": "fd00::7"}]}),
            "spec.routes[1].gw: is fd00::7: provider routed",
        ),
        (
            json!({"subnets": {"a": {"cidr": "10.0.0.0/8"}}, "routes": [{"dst": "fd01::/64", "gw": "fd00::1"}]}),
            "not to other addresses: remove gw",
        ),
        (
            json!({"routes": [{"dst": "::/0"}]}),
            "spec.routes: need subnets",
        ),
        (
            json!({"allowedNamespaces": {"from": "Selector"}}),
            "spec.allowedNamespaces.selector",
        ),
        (
            json!({"allowedNamespaces": {"from": "Same", "selector": {}}}),
            "spec.allowedNamespaces.selector",
        ),
        (
            json!({"allowedNamespaces": {"from": "Selector", "selector": {}}}),
            "spec.allowedNamespaces.selector: is empty",
        ),
        (
            json!({"allowedNamespaces": {"from": "Selector", "selector": {"matchExpressions":
                [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "In"}]}}}),
            "spec.allowedNamespaces.selector.matchExpressions[1].values",
        ),
        (json!({"provider": "macvlan", "snat": true}), "spec.snat"),
        (
            json!({"provider": "macvlan", "config": {"mode": "x"}}),
            "spec.config.mode",
        ),
        (
            json!({"provider": "macvlan", "mtu": 1400, "config": {"mtu": 1500}}),
            "spec.config.mtu",
        ),
        (
            json!({"provider": "routed"}),
            "spec.config.ipam: is missing",
        ),
        (
            json!({"provider": "bridge", "subnets": {"a": {"cidr": "10.0.0.0/8"}}, "config": {"ipam": {"type": "static"}}}),
            "spec.config.ipam: and spec.subnets exclude",
        ),
        (
            json!({"provider": "overlay", "config": {"master": "x"}}),
            "spec.config.master",
        ),
        (
            json!({"provider": "bridge", "config": {"args": {}}}),
            "spec.config.args",
        ),
        (
            json!({"provider": "delegate"}),
            "spec.config.plugins: is missing",
        ),
        (
            json!({"provider": "delegate", "config": {"plugins": [{"type": "plexus-cni"}, {"type": "a"}]}}),
            "spec.config.plugins[0].type",
        ),
        (
            json!({"provider": "delegate", "mtu": 1500, "config": {"type": "x"}}),
            "spec.mtu: does not reach",
        ),
        (
            json!({"provider": "delegate", "config": {"type": "x", "cniVersion": "9"}}),
            "spec.config.cniVersion",
        ),
    ] {
        let problems = spec(value.clone()).problems().to_string();
        assert!(
            problems.contains(cause),
            "{value}\nwanted {cause}\ngot    {problems}"
        );
        for problem in spec(value).problems().0 {
            assert!(problem.path.starts_with("spec."), "{problem}");
        }
    }
}

#[test]
fn external_providers_have_their_own_options() {
    let network = spec(
        json!({"provider": "mycorp/fancy-network-provider", "config": {"a": 1},
        "subnets": {"subnet1": {"cidr": "10.244.1.0/24", "gateway": "10.244.1.1"}}}),
    );
    assert_eq!(network.problems().to_string(), "");
}

#[test]
fn floods_are_bounded() {
    let subnets: serde_json::Map<String, Value> = (0..5_000)
        .map(|i| (format!("s{i}"), json!({"cidr": "10.0.0.0/8"})))
        .collect();
    let problems = spec(json!({"subnets": subnets})).problems();
    assert_eq!(problems.0.len(), 1);
    let exclude: Vec<&str> = vec!["10.0.0.1"; 5_000];
    let problems =
        spec(json!({"subnets": {"a": {"cidr": "10.0.0.0/8", "exclude": exclude}}})).problems();
    assert!(problems.to_string().contains("at most 1024"));
}

#[test]
fn what_is_no_object_is_refused() {
    for value in [
        json!({"subnetz": {}}),
        json!({"subnets": {"a": {}}}),
        json!({"subnets": {"a": {"cidr": "x"}}}),
        json!({"subnets": {"a": {"cidr": "010.0.0.0/8"}}}),
        json!({"subnets": {"a": {"cidr": "::ffff:10.0.0.0/120"}}}),
        json!({"subnets": {"a": {"cidr": "10.0.0.0/8", "gw": "10.0.0.1"}}}),
        json!({"subnets": {"a": {"cidr": "10.0.0.0/8", "exclude": ["x"]}}}),
        json!({"subnets": {"a": {"cidr": "10.0.0.0/8", "gateway": "x"}}}),
        json!({"allowedNamespaces": {"from": "Nobody"}}),
        json!({"allowedNamespaces": {"from": "Selector", "selector": {"later": 1}}}),
        json!({"allowedNamespaces": {"from": "Selector", "selector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}}),
        json!({"mtu": -1}),
        json!({"config": []}),
    ] {
        assert!(
            serde_json::from_value::<NetworkSpec>(value.clone()).is_err(),
            "{value}"
        );
    }
}

#[test]
fn blocks_say_whose_they_are() {
    let wire = json!({"network": {"namespace": "team-a", "name": "blue", "uid": "u"},
        "cidr": "10.1.0.64/26", "node": "n1", "nodeUID": "x"});
    let block: BlockSpec = serde_json::from_value(wire.clone()).unwrap();
    assert_eq!(block.network.uuid, "u");
    assert_eq!(serde_json::to_value(&block).unwrap(), wire);
    assert_eq!(BlockSpec::name("u", &block.cidr), "u-0a010040-26");
    let v6 = "fd00::/122".parse().unwrap();
    assert_eq!(BlockSpec::name("u", &v6), format!("u-fd{:030}-122", 0));
}

#[test]
fn records_as_in_the_reference() {
    let mut wire = json!({"sandbox": "5f10db93", "interfaces": "net1", "attachments": [{"index": 1, "total": 3, "ordinal": 0,
        "id": "i", "network": {"namespace": "team-a", "name": "blue", "uuid": "u"},
        "interface": "net1", "mac": "02:00:00:00:00:01", "ips": ["10.1.0.65/32"],
        "gateways": ["10.1.255.254"], "defaultRoute": [], "routes": [], "state": "Attached", "message": ""}]});
    let round = |wire: &Value| {
        let status: PodAttachmentsStatus = serde_json::from_value(wire.clone()).unwrap();
        serde_json::to_value(&status).unwrap()
    };
    assert_eq!(round(&wire), wire);
    wire["attachments"][0]["routes"] = json!(["10.1.0.0/16 via 169.254.1.1 onlink"]);
    wire["attachments"][0]["rules"] = json!(["from 10.1.0.65/32 lookup 101 priority 100"]);
    wire["attachments"][0]["delegated"] = json!(true);
    assert_eq!(round(&wire), wire);
}

#[test]
fn a_block_of_another_place_or_a_larger_one_is_not_the_networks() {
    let spec: NetworkSpec = serde_json::from_value(serde_json::json!({
        "subnets": {"a": {"cidr": "10.1.0.0/16"}, "b": {"cidr": "10.2.0.0/28"}, "c": {"cidr": "fd00::/64"}}
    }))
    .unwrap();
    let earlier = ["10.7.0.0/24".parse().unwrap()];
    let whole = |block: &str| spec.whole_block(&earlier, &block.parse().unwrap());
    let may = |block: &str| whole(block).is_some();
    let (part, claimed) = ("10.1.3.65/32", "10.1.3.64/26".parse().unwrap());
    assert_eq!(
        (whole(part), whole("10.1.3.64/26")),
        (Some(claimed), Some(claimed))
    );
    for block in [
        "10.1.3.64/26",
        "10.1.3.64/32",
        "10.2.0.0/28",
        "fd00::40/122",
        "10.7.0.192/26",
    ] {
        assert!(may(block), "{block}");
    }
    for block in [
        "0.0.0.0/1",
        "10.1.0.0/16",
        "10.1.3.0/25",
        "10.3.0.0/26",
        "fd00::/64",
        "::/8",
    ] {
        assert!(!may(block), "{block}");
    }
}
