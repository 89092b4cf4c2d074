//! Standalone mode: lists of networks, their names, and who has the default route.

use super::{chain, native, over, parse, refused};
use crate::cni::{Args, Body, Ipam, NetConf};
use plexus_types::{Family, IfName};
use serde_json::{Value, json};

/// Standalone mode, as documentation shows it.
const PODS: &str = r#"{"cniVersion":"1.1.0","name":"pods","type":"plexus-cni","default-gw":"pods","networks":[
  {"name":"pods","provider":"bridge","bridge":"px0","isGateway":true,"ipam":{"type":"plexus","subnets":["10.244.1.0/24","fd00:244:1::/64"]}},
  {"name":"blue","provider":"macvlan","master":"eth1","interface":"storage0","sourceRouting":true,"ipam":{"type":"static","addresses":[{"address":"10.10.0.9/24"}]}}]}"#;

fn all(extra: &Value) -> Value {
    over(
        &json!({"cniVersion": "1.1.0", "name": "pods", "type": "plexus-cni"}),
        extra,
    )
}

fn networks(networks: Value) -> Value {
    all(&json!({"networks": networks}))
}

fn two(extra: &Value) -> Value {
    let list = json!([{"name": "a", "provider": "bridge"},
        {"name": "b", "provider": "macvlan", "interface": "data0"}]);
    all(&over(&json!({"networks": list}), extra))
}

fn ifname(text: &str) -> IfName {
    IfName::new(text).unwrap()
}

#[test]
fn standalone_mode() {
    let conf = NetConf::parse(PODS.as_bytes(), &Args::default()).unwrap();
    let Body::All {
        networks,
        default_gw,
    } = &conf.body
    else {
        panic!("{:?}", conf.body)
    };
    assert_eq!(default_gw.of(Family::V4), Some("pods"));
    assert_eq!(default_gw.of(Family::V6), Some("pods"));
    let [pods, blue] = networks.as_slice() else {
        panic!("{networks:?}")
    };
    assert_eq!(
        (pods.name.as_str(), pods.interface.as_ref()),
        ("pods", None)
    );
    assert!(matches!(&native(pods).ipam, Some(Ipam::Plexus(ipam)) if ipam.subnets.len() == 2));
    assert_eq!(blue.interface.as_ref().unwrap().as_str(), "storage0");
    assert!(blue.source_routing && !pods.source_routing);
    conf.body.check_names(&ifname("eth0")).unwrap();
}

#[test]
fn entries_of_every_kind() {
    let conf = parse(&networks(json!([
        {"name": "a", "type": "macvlan", "master": "eth1"},
        {"name": "b", "type": "bridge", "vlan": 5, "interface": "x", "sourceRouting": false},
        {"name": "c", "type": "ptp", "mtu": 1400},
        {"name": "d", "plugins": [{"type": "ptp"}]},
        {"name": "d", "provider": "delegate", "plugins": [{"type": "ptp"}]},
    ])))
    .unwrap();
    let list = conf.body.networks();
    assert_eq!(native(&list[0]).provider.name(), "macvlan");
    assert_eq!(chain(&list[1]).unsupported_key.as_deref(), Some("vlan"));
    let plugin = json!({"type": "bridge", "vlan": 5});
    assert_eq!(Value::Object(chain(&list[1]).plugins[0].clone()), plugin);
    assert_eq!(chain(&list[2]).unsupported_key, None);
    assert_eq!(chain(&list[3]).plugins, chain(&list[4]).plugins);
}

#[test]
fn requests_are_for_the_first_interface() {
    let list = json!([
        {"name": "a", "provider": "bridge", "ipam": {"type": "plexus", "subnets": ["10.0.0.0/24"]}},
        {"name": "b", "provider": "bridge", "ipam": {"type": "plexus", "subnets": ["10.1.0.0/24"]}},
    ]);
    let request = json!({"mac": "02:00:00:00:00:01", "ips": ["10.0.0.5"]});
    let conf = parse(&all(&json!({"networks": list, "runtimeConfig": request}))).unwrap();
    let list = conf.body.networks();
    assert!(native(&list[0]).mac.is_some() && native(&list[0]).ips.len() == 1);
    assert!(native(&list[1]).mac.is_none() && native(&list[1]).ips.is_empty());
}

/// Whether a configuration is right does not depend on who calls, nor on the place of a network.
#[test]
fn static_addresses_may_be_declared_for_pods_anywhere() {
    let entry = |declared: Value, kind: &str, name: &str| {
        json!({"name": name, "provider": "bridge", "capabilities": declared,
            "ipam": {"type": kind, "subnet": "10.0.0.0/24"}})
    };
    let pod = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web";
    for who in ["", pod] {
        let args = Args::parse(who).unwrap();
        let read = |declared: Value, kind: &str| {
            let mut list = [
                entry(declared.clone(), kind, "a"),
                entry(declared, kind, "b"),
            ];
            if kind == "static" {
                for one in &mut list {
                    one["ipam"] = json!({"type": kind, "addresses": [{"address": "10.0.0.5/24"}]});
                }
            }
            NetConf::parse(networks(json!(list)).to_string().as_bytes(), &args)
        };
        let found = read(json!({"ips": true}), "static");
        assert!(found.is_ok(), "{who}: {found:?}");
        for i in 0..2 {
            let cause = format!("networks[{i}].capabilities.ips: must be true or false");
            let error = read(json!({"ips": 1}), "static").unwrap_err();
            assert!(error.msg.contains(&cause), "{who}: {error}");
            let cause = format!("networks[{i}].capabilities: is not a known key");
            let error = read(json!({"ips": true}), "host-local").unwrap_err();
            assert!(error.msg.contains(&cause), "{who}: {error}");
        }
    }
}

#[test]
fn default_gateways() {
    for (gw, v4, v6) in [
        (json!("b"), Some("b"), Some("b")),
        (json!("data0"), Some("data0"), Some("data0")),
        (json!({"4": "a", "6": "data0"}), Some("a"), Some("data0")),
        (json!({"6": "a"}), None, Some("a")),
        (json!(null), None, None),
        (json!({}), None, None),
        (json!("eth0"), Some("eth0"), Some("eth0")),
    ] {
        let conf = parse(&two(&json!({"default-gw": gw}))).unwrap();
        let Body::All { ref default_gw, .. } = conf.body else {
            panic!("{gw}")
        };
        assert_eq!(
            (default_gw.v4.as_deref(), default_gw.v6.as_deref()),
            (v4, v6),
            "{gw}"
        );
        conf.body.check_names(&ifname("eth0")).unwrap();
    }
}

#[test]
fn names_that_clash_with_the_runtimes() {
    let check = |conf: &Value, name: &str| parse(conf).unwrap().body.check_names(&ifname(name));
    for (conf, name, cause) in [
        (
            two(&json!({"default-gw": "podz"})),
            "eth0",
            "default-gw: \"podz\" is no network",
        ),
        (
            two(&json!({"default-gw": "eth0"})),
            "eth1",
            "\"eth0\" is no network",
        ),
        (
            two(&json!({})),
            "data0",
            "networks[1]: another interface is named data0",
        ),
        (two(&json!({"default-gw": "b"})), "b", "ambiguous"),
        (
            networks(json!([{"name": "a", "provider": "bridge", "interface": "x"}])),
            "eth0",
            "networks[0].interface: x is not CNI_IFNAME, eth0",
        ),
        (
            networks(
                json!([{"name": "a", "provider": "bridge"}, {"name": "b", "provider": "bridge"}]),
            ),
            "net1",
            "another interface is named net1",
        ),
    ] {
        let error = check(&conf, name).unwrap_err();
        assert!(error.msg.contains(cause), "{error}");
        assert_eq!(error.code.number(), 7);
    }
    let same = networks(json!([{"name": "a", "provider": "bridge", "interface": "eth0"}]));
    check(&same, "eth0").unwrap();
}

#[test]
fn lists_that_are_refused() {
    let one = |entry: Value| networks(json!([entry]));
    let many: Vec<Value> = (0..65)
        .map(|i| json!({"name": format!("n{i}"), "provider": "bridge"}))
        .collect();
    refused(&[
        (networks(json!([])), 7, "networks: has 0 elements"),
        (networks(json!({})), 7, "networks: must be a list"),
        (networks(json!(many)), 7, "networks: has 65 elements"),
        (networks(json!(["a"])), 7, "networks[0]: must be an object"),
        (
            one(json!({"provider": "bridge"})),
            7,
            "networks[0].name: is missing",
        ),
        (
            one(json!({"name": "a/b", "provider": "bridge"})),
            7,
            "networks[0].name",
        ),
        (
            one(json!({"name": "a"})),
            7,
            "networks[0].provider: is missing",
        ),
        (
            one(json!({"name": "a", "provider": "bridge", "type": "bridge"})),
            7,
            "networks[0].provider: provider, type exclude each other",
        ),
        (
            one(json!({"name": "a", "type": "bridge", "plugins": []})),
            7,
            "type, plugins exclude each other",
        ),
        (
            one(json!({"name": "a", "type": "plexus-cni"})),
            7,
            "Plexus itself",
        ),
        (
            one(json!({"name": "a", "type": "x/y"})),
            7,
            "networks[0].type",
        ),
        (
            one(json!({"name": "a", "provider": "overlay"})),
            7,
            "\"overlay\" is not a native",
        ),
        (
            one(json!({"name": "a", "provider": "bridge", "ipam": {"type": "dhcp"}})),
            2,
            "\"type\": \"bridge\" in place of \"provider\"",
        ),
        (
            one(json!({"name": "a", "provider": "bridge", "bridg": "x"})),
            2,
            "did you mean \"bridge\"",
        ),
        (
            one(
                json!({"name": "a", "provider": "bridge", "ipam": {"type": "plexus",
                "subnets": ["x"]}}),
            ),
            7,
            "networks[0].ipam.subnets[0]: \"x\"",
        ),
        (
            one(json!({"name": "a", "provider": "bridge", "interface": "a/b"})),
            7,
            "networks[0].interface",
        ),
        (
            one(json!({"name": "a", "provider": "bridge", "interface": "1234567890123456"})),
            7,
            "networks[0].interface: interface name \"1234567890123456\"",
        ),
        (
            one(json!({"name": "a", "plugins": [{"type": "ptp"}], "sourceRouting": true})),
            2,
            "networks[0].sourceRouting",
        ),
        (
            one(json!({"name": "a", "provider": "bridge", "runtimeConfig": {}})),
            2,
            "runtimeConfig",
        ),
        (
            networks(
                json!([{"name": "a", "provider": "bridge", "interface": "x"},
                {"name": "b", "provider": "bridge", "interface": "x"}]),
            ),
            7,
            "networks[1].interface: x is asked for twice",
        ),
        (
            two(&json!({"default-gw": "no such network"})),
            7,
            "default-gw: \"no such network\"",
        ),
        (
            two(&json!({"default-gw": {"4": "a", "6": "not/one"}})),
            7,
            "default-gw.6: \"not/one\"",
        ),
        (
            two(&json!({"default-gw": {"5": "a"}})),
            2,
            "default-gw.5: is not a known key",
        ),
        (two(&json!({"default-gw": 4})), 7, "default-gw: must be"),
        (two(&json!({"default-gw": ["a"]})), 7, "default-gw: must be"),
        (
            two(&json!({"provider": "bridge"})),
            2,
            "provider: is not a known key",
        ),
        (two(&json!({"ipam": {}})), 2, "ipam: is not a known key"),
        (
            two(&json!({"type": "bridge"})),
            7,
            "bridge has no \"networks\"",
        ),
    ]);
}

#[test]
fn a_name_that_occurs_twice_is_ambiguous() {
    let list = json!([{"name": "a", "provider": "bridge"},
        {"name": "a", "provider": "bridge", "interface": "x"}]);
    assert!(parse(&networks(list.clone())).is_ok());
    assert!(parse(&all(&json!({"networks": list, "default-gw": "x"}))).is_ok());
    refused(&[(
        all(&json!({"networks": list, "default-gw": "a"})),
        7,
        "default-gw: \"a\" is ambig",
    )]);
}

#[test]
fn all_problems_of_all_entries_at_once() {
    let conf = all(&json!({"zzz": 1, "networks": [
        {"name": "a", "provider": "bridge", "mtu": 1},
        {"name": "b", "provider": "macvlan", "mode": "x",
         "ipam": {"type": "plexus", "subnets": ["10.0.0.0/24"], "exclude": ["10.9.0.0/16"]}},
    ]}));
    let error = parse(&conf).unwrap_err();
    for part in [
        "networks[0].mtu: is 1",
        "networks[1].mode",
        "networks[1].ipam.exclude",
        "zzz",
    ] {
        assert!(error.msg.contains(part), "{error}");
    }
}
