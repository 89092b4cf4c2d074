//! Networks from definitions and from objects.

use super::*;
use crate::cni::{Chain, Code, Ipam, Native, Provider};
use crate::objects::NetworkSpec;
use serde_json::json;

fn name() -> NetworkName {
    NetworkName::new("nad").unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// What a pod asks, as its annotation has it.
fn selection(keys: Value) -> NetworkSelection {
    let mut element = json!({"name": "nad"});
    for (key, value) in keys.as_object().unwrap() {
        element[key] = value.clone();
    }
    let text = json!([element]).to_string();
    crate::pod::networks(&text, "ns").unwrap().remove(0)
}

fn config(config: Value, keys: Value) -> Result<Network, Error> {
    Network::from_config(&name(), &object(config), &selection(keys))
}

fn spec(value: Value) -> NetworkSpec {
    serde_json::from_value(value).unwrap()
}

fn facts() -> ObjectFacts {
    ObjectFacts {
        uid: "uid-1".to_owned(),
        vni: Some(4097),
        not_masq: vec!["10.9.0.0/16".parse().unwrap()],
    }
}

fn from_spec(value: Value, keys: Value) -> Result<Network, Error> {
    Network::from_spec(&name(), &spec(value), &facts(), &selection(keys))
}

fn native(network: &Network) -> &Native {
    match &network.backend {
        NetworkBackend::Native(native) => native,
        NetworkBackend::Delegate(chain) => panic!("executed: {chain:?}"),
    }
}

fn chain(network: &Network) -> &Chain {
    match &network.backend {
        NetworkBackend::Delegate(chain) => chain,
        NetworkBackend::Native(native) => panic!("native: {native:?}"),
    }
}

#[test]
fn native_where_everything_is_understood() {
    let macvlan = json!({"cniVersion": "0.3.1", "type": "macvlan", "master": "eth1",
        "capabilities": {"ips": true, "mac": true},
        "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}});
    let listed = json!({"cniVersion": "0.3.1", "plugins": [macvlan]});
    for written in [macvlan, listed] {
        let network = config(
            written,
            json!({"ips": ["10.0.0.5"], "mac": "02:00:00:00:00:01", "interface": "data0"}),
        )
        .unwrap();
        let native = native(&network);
        assert_eq!(native.provider.name(), "macvlan");
        assert_eq!(native.ips, [("10.0.0.5".parse().unwrap(), None)]);
        assert!(native.mac.is_some());
        assert_eq!(network.name.as_str(), "nad");
        assert_eq!(network.interface.as_ref().unwrap().as_str(), "data0");
        assert!(network.runtime.is_some());
    }
    let ours = json!({"cniVersion": "1.0.0", "name": "own", "type": "plexus-cni",
        "provider": "bridge", "sourceRouting": true,
        "ipam": {"type": "plexus", "subnets": ["10.0.0.0/24"]}});
    let network = config(ours, json!({"mac": "02:00:00:00:00:01"})).unwrap();
    assert_eq!(network.name.as_str(), "own");
    assert!(network.source_routing && native(&network).mac.is_some());
}

#[test]
fn executed_where_not() {
    let network = config(
        json!({"type": "bridge", "vlan": 5, "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}}),
        json!({}),
    )
    .unwrap();
    assert_eq!(chain(&network).plugins[0]["type"], "bridge");
    assert_eq!(chain(&network).plugins[0].get("name"), None);
    assert_eq!(network.runtime, Some(Map::new()));
    let network = config(
        json!({"cniVersion": "1.0.0", "name": "list", "disableCheck": true,
            "plugins": [{"type": "macvlan", "capabilities": {"mac": true}, "args": {"cni": {"a": 1, "b": 1}}},
                        {"type": "tuning"}]}),
        json!({"mac": "02:00:00:00:00:01", "cni-args": {"b": 2}}),
    )
    .unwrap();
    let plugins = &chain(&network).plugins;
    assert_eq!(plugins.len(), 2);
    assert_eq!(plugins[0]["args"]["cni"], json!({"a": 1, "b": 2}));
    assert_eq!(plugins[1]["args"]["cni"], json!({"b": 2}));
    assert_eq!(network.runtime.unwrap()["mac"], "02:00:00:00:00:01");
    assert_eq!(network.name.as_str(), "list");
}

#[test]
fn any_plugin_at_all() {
    let network = config(
        json!({"cniVersion": "0.4.0", "type": "sriov", "capabilities": {"bandwidth": true}}),
        json!({"bandwidth": {"egressRate": 5}}),
    )
    .unwrap();
    assert_eq!(network.runtime.unwrap()["bandwidth"]["egressRate"], 5);
    let network = config(
        json!({"type": "sriov", "capabilities": {"deviceID": true}}),
        json!({"deviceID": "x"}),
    )
    .unwrap();
    assert_eq!(chain(&network).plugins[0].get("deviceID"), None);
    assert_eq!(network.runtime.unwrap()["deviceID"], "x");
}

/// A pod names no device of a plugin that does not say that it may.
#[test]
fn a_device_only_where_it_is_declared() {
    let asked = json!({"deviceID": "0000:03:02.1"});
    for written in [
        json!({"type": "sriov"}),
        json!({"type": "sriov", "capabilities": {"deviceID": false}}),
        json!({"plugins": [{"type": "sriov"}, {"type": "tuning"}]}),
        json!({"type": "host-device", "pciBusID": "0000:03:02.0"}),
        json!({"type": "plexus-cni", "provider": "host-device", "pciBusID": "0000:03:02.0"}),
    ] {
        let error = config(written.clone(), asked.clone()).unwrap_err();
        let cause = "capabilities.deviceID";
        assert!(error.msg.contains(cause), "{written}: {error}");
        assert!(config(written, json!({})).is_ok());
    }
    let spec = json!({"provider": "host-device", "config": {"pciBusID": "0000:03:02.0"}});
    let error = from_spec(spec, asked).unwrap_err();
    assert!(error.msg.contains("capabilities.deviceID"), "{error}");
}

/// `static` gives whatever is asked for: a pod could take another's address.
#[test]
fn a_pod_gets_from_static_only_what_the_network_offers() {
    let fixed = json!({"type": "static", "addresses": [{"address": "10.1.0.5/16"}, {"address": "fd00::5/64"}]});
    let nad = |capabilities: Value, ipam: &Value| json!({"type": "macvlan", "master": "eth1", "capabilities": capabilities, "ipam": ipam});
    let (takes, none) = (json!({"ips": true}), json!({}));
    let ways = |ip: &str| [json!({"ips": [ip]}), json!({"cni-args": {"ips": [ip]}})];
    let executed = |capabilities: &Value| json!({"type": "sriov", "capabilities": capabilities, "ipam": fixed});
    for asked in ways("10.1.9.9/16").iter().chain(&ways("fd00::9/64")) {
        let network = config(nad(takes.clone(), &fixed), asked.clone()).unwrap();
        assert!(
            matches!(&native(&network).ipam, Some(Ipam::Static(found)) if found.addresses.len() == 1)
        );
        assert!(config(executed(&takes), asked.clone()).is_ok());
        for written in [nad(none.clone(), &fixed), executed(&none)] {
            let error = config(written, asked.clone()).unwrap_err();
            assert!(error.msg.contains("capabilities.ips"), "{error}");
        }
    }
    let nothing = json!({"type": "static"});
    for ip in ["10.2.0.1/16", "10.1.0.1/8", "10.2.0.1", "fd01::1/64"] {
        for asked in ways(ip) {
            for written in [
                nad(takes.clone(), &fixed),
                nad(takes.clone(), &nothing),
                executed(&takes),
            ] {
                let error = config(written, asked.clone()).unwrap_err();
                let cause = "is in the subnet of none of them";
                assert!(error.msg.contains(cause), "{asked}: {error}");
            }
        }
    }
    let ours = |declared: Value| json!({"provider": "macvlan", "config": {"master": "eth1", "capabilities": declared, "ipam": fixed}});
    let [asked, _] = ways("10.1.9.9/16");
    assert!(from_spec(ours(takes), asked.clone()).is_ok());
    let error = from_spec(ours(none), asked).unwrap_err();
    assert!(error.msg.contains("capabilities.ips"), "{error}");
}

/// Every plugin of a list gets the pod's `cni-args`, and plugins in Go read `ips` there in any case.
#[test]
fn no_spelling_and_no_list_gets_a_pod_other_addresses_of_static() {
    let fixed = json!({"type": "static", "addresses": [{"address": "10.1.0.5/16"}]});
    let (takes, none) = (json!({"ips": true}), json!({}));
    let first = |takes: &Value| json!({"type": "sriov", "capabilities": takes, "ipam": fixed});
    let lists = |takes: &Value| {
        let tuning = json!({"type": "tuning"});
        [
            first(takes),
            json!({"plugins": [first(takes)]}),
            json!({"plugins": [first(takes), tuning]}),
            json!({"plugins": [tuning, first(takes)]}),
            json!({"type": "macvlan", "capabilities": takes, "ipam": fixed}),
        ]
    };
    for key in ["ips", "IPS", "Ips", "ip\u{17f}"] {
        let asked = |ips: Value| json!({"cni-args": {key: ips}});
        for written in lists(&takes) {
            let error = config(written.clone(), asked(json!(["10.99.0.1/8"]))).unwrap_err();
            let cause = "ipam.addresses: 10.99.0.1 is asked for by the pod";
            assert!(error.msg.contains(cause), "{key} {written}: {error}");
            for unreadable in [json!("10.1.9.9/16"), json!(["x"])] {
                let error = config(written.clone(), asked(unreadable)).unwrap_err();
                assert!(
                    error.msg.contains("args.cni.ips"),
                    "{key} {written}: {error}"
                );
            }
            let within = config(written.clone(), asked(json!(["10.1.9.9/16"])));
            assert!(within.is_ok(), "{key} {written}: {within:?}");
        }
        for written in lists(&none) {
            let error = config(written.clone(), asked(json!(["10.1.9.9/16"]))).unwrap_err();
            assert!(
                error.msg.contains("capabilities.ips"),
                "{key} {written}: {error}"
            );
        }
    }
    // A plugin that is not `static` may mean something else by it.
    let other = json!({"plugins": [{"type": "sriov"}, {"type": "tuning"}]});
    assert!(config(other, json!({"cni-args": {"ips": "pool-a"}})).is_ok());
}

/// Whoever writes the network chooses its addresses, whatever it offers to pods.
#[test]
fn static_gives_what_the_network_itself_asks_for() {
    let fixed = json!({"type": "static", "addresses": [{"address": "10.1.0.5/16"}]});
    let own = json!({"cni": {"ips": ["10.99.0.1/8"]}});
    let macvlan = json!({"type": "macvlan", "master": "eth1", "args": own, "ipam": fixed});
    let network = config(macvlan.clone(), json!({})).unwrap();
    let Some(Ipam::Static(found)) = &native(&network).ipam else {
        panic!("{network:?}");
    };
    assert_eq!(found.addresses[0].address.to_string(), "10.99.0.1/8");
    let sriov = json!({"type": "sriov", "args": own, "ipam": fixed});
    let list = json!({"plugins": [sriov, {"type": "tuning"}]});
    for written in [sriov, list] {
        let network = config(written, json!({"cni-args": {"colour": "blue"}})).unwrap();
        let ips = &chain(&network).plugins[0]["args"]["cni"]["ips"];
        assert_eq!(*ips, json!(["10.99.0.1/8"]));
    }
    let error = config(macvlan, json!({"cni-args": {"ips": ["10.1.9.9/16"]}})).unwrap_err();
    assert!(error.msg.contains("capabilities.ips"), "{error}");
}

#[test]
fn arguments_of_the_pod() {
    let macvlan = json!({"type": "macvlan", "args": {"cni": {"mac": "02:00:00:00:00:02"}}});
    let network = config(macvlan.clone(), json!({})).unwrap();
    assert_eq!(
        native(&network).mac.unwrap().to_string(),
        "02:00:00:00:00:02"
    );
    let wins = json!({"cni-args": {"mac": "02:00:00:00:00:03"}});
    let network = config(macvlan.clone(), wins).unwrap();
    assert_eq!(
        native(&network).mac.unwrap().to_string(),
        "02:00:00:00:00:03"
    );
    let network = config(macvlan, json!({"cni-args": {"nics": 2}})).unwrap();
    assert_eq!(chain(&network).plugins[0]["args"]["cni"]["nics"], 2);
}

#[test]
fn what_nobody_takes_is_refused() {
    let port = json!([{"hostPort": 1, "containerPort": 1}]);
    for (written, keys, cause) in [
        (
            json!({"type": "macvlan"}),
            json!({"mac": "02:00:00:00:00:01"}),
            "capabilities.mac",
        ),
        (
            json!({"type": "sriov"}),
            json!({"mac": "02:00:00:00:00:01"}),
            "capabilities.mac",
        ),
        (
            json!({"type": "sriov"}),
            json!({"ips": ["10.0.0.1"]}),
            "capabilities.ips",
        ),
        (
            json!({"type": "bridge", "capabilities": {"mac": true}}),
            json!({"portMappings": port}),
            "capabilities.portMappings",
        ),
        (
            json!({"type": "plexus-cni", "provider": "bridge"}),
            json!({"bandwidth": {"egressRate": 1}}),
            "capabilities.bandwidth",
        ),
        (
            json!({"type": "macvlan"}),
            json!({"infiniband-guid": "c2:11:22:33:44:55:66:77"}),
            "capabilities.infinibandGUID",
        ),
        (
            json!({"type": "macvlan"}),
            json!({"ipam-claim-reference": "c"}),
            "no IPAMClaim",
        ),
        (
            json!({"type": "x"}),
            json!({"example.com/x": 1}),
            "example.com/x",
        ),
        (
            json!({"plugins": [{"type": "x", "capabilities": {"mac": false}}, {"type": "y"}]}),
            json!({"mac": "02:00:00:00:00:01"}),
            "capabilities.mac",
        ),
        (
            json!({"type": "plexus-cni", "provider": "macvlan"}),
            json!({"ips": ["10.0.0.1"]}),
            "ipam: is missing",
        ),
    ] {
        let error = config(written.clone(), keys).unwrap_err();
        assert!(error.msg.contains(cause), "{written}: {error}");
    }
}

#[test]
fn hostile_definitions() {
    for (written, code, cause) in [
        (json!({}), 7, "type: is missing"),
        (json!({"type": "../x"}), 7, "plugin type"),
        (json!({"type": 1}), 7, "type: must be a string"),
        (json!({"plugins": []}), 7, "plugins: is empty"),
        (json!({"plugins": {}}), 7, "plugins: must be a list"),
        (json!({"plugins": [{}]}), 7, "type: is missing"),
        (
            json!({"plugins": [{"type": "plexus-cni"}, {"type": "x"}]}),
            7,
            "call itself without end",
        ),
        (
            json!({"type": "x", "ipam": {"type": "multi-nic"}}),
            7,
            "call itself without end",
        ),
        (
            json!({"type": "x", "runtimeConfig": {}}),
            7,
            "runtimeConfig: is inserted",
        ),
        (
            json!({"type": "x", "prevResult": {}}),
            7,
            "prevResult: is inserted",
        ),
        (
            json!({"type": "x", "cni.dev/valid-attachments": []}),
            7,
            "is inserted",
        ),
        (json!({"type": "x", "name": "a/b"}), 7, "name: network name"),
        (json!({"type": "x", "cniVersion": "9.0.0"}), 1, "9.0.0"),
        (json!({"type": "x", "cniVersion": 1}), 7, "cniVersion"),
        (
            json!({"type": "x", "capabilities": {"mac": 1}}),
            7,
            "capabilities.mac",
        ),
        (
            json!({"type": "plexus-cni", "networks": []}),
            7,
            "a NAD is one network",
        ),
        (
            json!({"type": "plexus-cni", "master": "eth1"}),
            7,
            "provider: is missing",
        ),
        (
            json!({"type": "plexus-cni", "provider": "macvlan", "foo": 1}),
            2,
            "foo",
        ),
        (
            json!({"type": "x", "sourceRouting": true}),
            2,
            "sourceRouting",
        ),
        (json!({"type": "macvlan", "mode": "x"}), 7, "mode"),
    ] {
        let error = config(written.clone(), json!({})).unwrap_err();
        assert!(error.msg.contains(cause), "{written}: {error}");
        assert_eq!(error.code.number(), code, "{written}: {error}");
    }
    let error = config(
        json!({"type": "x", "args": 1}),
        json!({"cni-args": {"a": 1}}),
    )
    .unwrap_err();
    assert!(error.msg.contains("args"), "{error}");
}

#[test]
fn an_overlay() {
    let network = from_spec(
        json!({"subnets": {"b": {"cidr": "fd00:1::/48"}, "a": {"cidr": "10.1.0.0/16", "exclude": ["10.1.0.9"]}},
            "snat": true, "mtu": 1400, "routes": [{"dst": "192.168.0.0/16"}],
            "config": {"dns": {"nameservers": ["10.0.0.53"]}}}),
        json!({"ips": ["10.1.0.70"], "mac": "02:00:00:00:00:01", "interface": "blue0"}),
    )
    .unwrap();
    let native = native(&network);
    let Provider::Overlay(overlay) = &native.provider else {
        panic!("{native:?}");
    };
    assert_eq!((overlay.vni, overlay.uid.as_str()), (4097, "uid-1"));
    assert!(overlay.snat && overlay.source_check);
    let gateways: Vec<String> = overlay
        .subnets
        .iter()
        .map(|(_, gw)| gw.to_string())
        .collect();
    assert_eq!(
        gateways,
        ["10.1.255.254", "fd00:1:0:ffff:ffff:ffff:ffff:fffe"]
    );
    let Some(Ipam::Blocks(blocks)) = &native.ipam else {
        panic!("{native:?}");
    };
    let lengths: Vec<_> = blocks
        .subnets
        .iter()
        .map(|subnet| subnet.block_length)
        .collect();
    assert_eq!(lengths, [Some(26), Some(122)]);
    assert_eq!(blocks.subnets[0].exclude, ["10.1.0.9/32".parse().unwrap()]);
    assert_eq!(blocks.uid, facts().uid);
    assert_eq!(blocks.routes.len(), 1);
    assert_eq!((native.mtu, native.dns.nameservers.len()), (Some(1400), 1));
    assert_eq!(native.ips.len(), 1);
}

#[test]
fn other_providers() {
    let subnets = json!({"a": {"cidr": "10.1.0.0/16"}});
    let network = from_spec(
        json!({"provider": "routed", "subnets": subnets, "snat": true, "sourceCheck": false}),
        json!({}),
    )
    .unwrap();
    let Provider::Routed(routed) = &native(&network).provider else {
        panic!();
    };
    assert!(routed.ip_masq && !routed.source_check);
    assert_eq!(routed.not_masq, facts().not_masq);
    let network = from_spec(
        json!({"provider": "bridge", "subnets": subnets, "snat": true,
            "config": {"bridge": "br7", "isGateway": true, "sourceRouting": true}}),
        json!({}),
    )
    .unwrap();
    assert!(network.source_routing);
    assert!(matches!(&native(&network).provider, Provider::Bridge(bridge) if bridge.ip_masq));
    assert!(matches!(&native(&network).ipam, Some(Ipam::Blocks(_))));
    let network = from_spec(
        json!({"provider": "macvlan", "config": {"master": "eth1", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}}}),
        json!({"mac": "02:00:00:00:00:01"}),
    )
    .unwrap();
    assert!(matches!(&native(&network).ipam, Some(Ipam::HostLocal(_))));
    let network = from_spec(
        json!({"provider": "delegate", "config": {"cniVersion": "0.4.0", "plugins": [{"type": "x"}, {"type": "y"}]}}),
        json!({}),
    )
    .unwrap();
    assert_eq!(chain(&network).plugins.len(), 2);
    assert_eq!(chain(&network).version.as_str(), "0.4.0");
}

/// What a Network keeps on the node goes with it, also if its plugin is one that we do ourselves.
#[test]
fn a_delegate_that_is_native_is_of_its_object() {
    let of_object = |config: Value| {
        let network = from_spec(json!({"provider": "delegate", "config": config}), json!({}));
        let network = network.unwrap();
        assert!(matches!(network.backend, NetworkBackend::Native(_)));
        let spec = spec(json!({"provider": "delegate", "config": config}));
        let parsed = ParsedNetwork::of_spec(&name(), &spec, &facts()).unwrap();
        let asked = parsed.with_request(&selection(json!({}))).unwrap();
        assert_eq!(
            asked.of_object, network.of_object,
            "read once and with a request"
        );
        network.of_object
    };
    let pool = json!({"type": "host-local", "subnet": "10.0.0.0/24"});
    let bridge = json!({"type": "bridge", "bridge": "br7", "isGateway": true, "ipam": pool});
    assert!(of_object(bridge.clone()));
    assert!(of_object(json!({"plugins": [bridge]})));
    assert!(of_object(over(&bridge, "nad")));
    // What it calls itself may be another Network's name.
    assert!(!of_object(over(&bridge, "team-b.blue")));
    // Nobody's but the configuration's own.
    assert!(!config(over(&bridge, "nad"), json!({})).unwrap().of_object);
}

fn over(config: &Value, name: &str) -> Value {
    let mut named = config.clone();
    named["name"] = json!(name);
    named
}

#[test]
fn objects_that_cannot_be_used() {
    let subnets = json!({"a": {"cidr": "10.1.0.0/16"}});
    let none = ObjectFacts::default();
    let error =
        Network::from_spec(&name(), &spec(json!({})), &none, &selection(json!({}))).unwrap_err();
    assert_eq!(error.code, Code::TryAgainLater, "{error}");
    let error = from_spec(json!({"provider": "corp/x"}), json!({})).unwrap_err();
    assert!(error.msg.contains("corp/x"), "{error}");
    for (value, keys, cause) in [
        (
            json!({"subnets": subnets}),
            json!({"bandwidth": {"egressRate": 1}}),
            "bandwidth",
        ),
        (
            json!({"subnets": subnets}),
            json!({"cni-args": {"x": 1}}),
            "args.cni.x",
        ),
        (
            json!({}),
            json!({"ips": ["10.1.0.1"]}),
            "10.1.0.1 is asked for",
        ),
        (
            json!({"provider": "macvlan", "config": {"masterr": "x"}}),
            json!({}),
            "spec.config.masterr",
        ),
    ] {
        let error = from_spec(value.clone(), keys).unwrap_err();
        assert!(error.msg.contains(cause), "{value}: {error}");
        assert!(error.msg.starts_with("Network nad: "), "{error}");
    }
}

#[test]
fn an_ipam_plugin_is_executed_below_native_networks() {
    let wide = json!({"type": "whereabouts", "range": "10.0.0.0/24"});
    let executed = |network: &Network| match &native(network).ipam {
        Some(Ipam::Executed(ipam)) => Value::Object(ipam.chain.plugins[0].clone()),
        other => panic!("{other:?}"),
    };
    let asked = json!({"ips": ["10.0.0.7/24"], "cni-args": {"x": 1}});
    let nad = json!({"cniVersion": "0.3.1", "name": "own", "type": "macvlan", "master": "eth1",
        "capabilities": {"ips": true}, "ipam": wide});
    let listed = json!({"cniVersion": "0.3.1", "plugins": [nad]});
    for nad in [nad.clone(), listed] {
        let network = config(nad, asked.clone()).unwrap();
        let expected = json!({"type": "macvlan", "master": "eth1", "capabilities": {"ips": true},
            "ipam": wide, "args": {"cni": {"x": 1}}});
        assert_eq!(executed(&network), expected);
        assert_eq!(network.runtime.unwrap()["ips"], json!(["10.0.0.7/24"]));
    }
    let mut silent = nad;
    silent["capabilities"] = json!({});
    let error = config(silent, asked.clone()).unwrap_err();
    assert!(error.msg.contains("capabilities.ips"), "{error}");

    let spec = json!({"provider": "macvlan", "config": {"master": "eth1", "ipam": wide}});
    let network = from_spec(spec.clone(), asked).unwrap();
    let expected = json!({"type": "macvlan", "master": "eth1", "capabilities": {"ips": true},
        "ipam": wide, "args": {"cni": {"x": 1}}});
    assert_eq!(executed(&network), expected);
    let mut both = spec;
    both["subnets"] = json!({"v4": {"cidr": "10.1.0.0/16"}});
    let error = from_spec(both, json!({})).unwrap_err();
    assert!(error.msg.contains("exclude each other"), "{error}");
}
