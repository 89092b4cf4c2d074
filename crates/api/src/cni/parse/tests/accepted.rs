//! Configurations that are understood, down to the last value.

use super::{native, of_plugin, over, parse, with};
use crate::cni::{Args, Body, Ipam, MacvlanMode, NetConf, Provider, Version};
use serde_json::{Value, json};

/// Plugin mode, as documentation shows it.
const BLUE: &str = r#"{"cniVersion":"1.1.0","name":"blue","type":"plexus-cni","provider":"macvlan","master":"eth1","mode":"bridge","ipam":{"type":"host-local","ranges":[[{"subnet":"10.10.0.0/24"}]]}}"#;

#[test]
fn plugin_mode() {
    let conf = NetConf::parse(BLUE.as_bytes(), &Args::default()).unwrap();
    assert_eq!(
        (conf.version, conf.name.as_str()),
        (Version::V1_1_0, "blue")
    );
    assert_eq!(conf.plugin_type.as_str(), "plexus-cni");
    assert!(matches!(conf.body, Body::One(_)));
    let network = &conf.body.networks()[0];
    assert_eq!(
        (network.name.as_str(), network.source_routing),
        ("blue", false)
    );
    let native = native(network);
    let Provider::Macvlan(macvlan) = &native.provider else {
        panic!("{native:?}")
    };
    assert_eq!(macvlan.master.as_ref().unwrap().as_str(), "eth1");
    assert_eq!(macvlan.mode, MacvlanMode::Bridge);
    assert!(matches!(&native.ipam, Some(Ipam::HostLocal(found)) if found.ranges.len() == 1));
    assert_eq!((conf.valid_attachments, conf.prev_result), (None, None));
}

#[test]
fn every_top_level_key() {
    let conf = over(
        &serde_json::from_str(BLUE).unwrap(),
        &json!({
            "cniVersions": ["0.4.0", "1.0.0", "1.1.0", "1.2.0"], "disableCheck": false,
            "disableGC": true, "capabilities": {"ips": true, "mac": true, "x": false},
            "runtimeConfig": {"ips": null, "MAC": "02:00:00:00:00:09"},
            "args": {"cni": {"ips": [], "labels": {"a": "b"}}, "org.other": {"x": 1}},
            "prevResult": {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0"}]},
            "dns": {"nameservers": ["1.1.1.1"], "domain": "d", "search": [], "options": null},
            "agentSocket": "/run/plexus/agent.sock", "sourceRouting": true, "mtu": 1400,
            "mac": "02:00:00:00:00:01", "bcqueuelen": 77, "linkInContainer": false,
            "cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}],
            "cni.dev/attachments": [{"containerID": "c1", "ifname": "eth0"},
                {"containerID": "c2", "ifname": "eth0"}],
        }),
    );
    let conf = parse(&conf).unwrap();
    let native = native(&conf.body.networks()[0]);
    assert_eq!(native.mac.unwrap().to_string(), "02:00:00:00:00:09");
    assert_eq!(native.mtu, Some(1400));
    assert_eq!(native.dns.domain.as_deref(), Some("d"));
    assert!(conf.body.networks()[0].source_routing);
    assert_eq!(conf.prev_result.unwrap().interfaces[0].name, "eth0");
    let attachments = conf.valid_attachments.unwrap();
    let ids: Vec<&str> = attachments.iter().map(|a| a.container.as_str()).collect();
    assert_eq!(ids, ["c1", "c2"]);
}

#[test]
fn no_list_of_attachments_is_not_an_empty_one() {
    let key = "cni.dev/valid-attachments";
    for (list, expected) in [(json!(null), None), (json!([]), Some(0))] {
        let conf = parse(&with("macvlan", &json!({key: list}))).unwrap();
        assert_eq!(conf.valid_attachments.map(|list| list.len()), expected);
    }
}

#[test]
fn every_version_that_we_speak() {
    for version in Version::ALL {
        let conf = parse(&with("bridge", &json!({"cniVersion": version.as_str()}))).unwrap();
        assert_eq!(conf.version, version);
    }
}

#[test]
fn defaults_of_macvlan() {
    for empty in [
        json!({}),
        json!({"master": "", "mode": "", "mtu": 0, "mac": "", "bcqueuelen": 0}),
    ] {
        let conf = parse(&with("macvlan", &empty)).unwrap();
        let native = native(&conf.body.networks()[0]);
        let Provider::Macvlan(macvlan) = &native.provider else {
            panic!("{native:?}")
        };
        assert_eq!((&macvlan.master, macvlan.bcqueuelen), (&None, None));
        assert_eq!(macvlan.mode, MacvlanMode::Bridge);
        assert_eq!((native.mtu, native.mac, &native.ipam), (None, None, &None));
    }
    for (text, mode) in [
        ("vepa", MacvlanMode::Vepa),
        ("private", MacvlanMode::Private),
        ("passthru", MacvlanMode::Passthru),
    ] {
        let conf = parse(&with("macvlan", &json!({"mode": text}))).unwrap();
        let Provider::Macvlan(ref macvlan) = native(&conf.body.networks()[0]).provider else {
            panic!("{text}")
        };
        assert_eq!(macvlan.mode, mode);
    }
}

#[test]
fn options_of_bridge() {
    let all = json!({"bridge": "px0", "isDefaultGateway": true, "forceAddress": true,
        "ipMasq": true, "mtu": 9000, "hairpinMode": true, "promiscMode": false, "vlan": 0,
        "preserveDefaultVlan": true, "macspoofchk": false, "enabledad": false,
        "disableContainerInterface": false, "portIsolation": false, "ipMasqBackend": null,
        "vlanTrunk": null, "mac": "02:00:00:00:00:01"});
    let conf = parse(&with("bridge", &all)).unwrap();
    let native = native(&conf.body.networks()[0]);
    let Provider::Bridge(bridge) = &native.provider else {
        panic!("{native:?}")
    };
    assert_eq!(bridge.bridge.as_str(), "px0");
    assert!(bridge.is_gateway, "isDefaultGateway implies it");
    assert!(bridge.is_default_gateway && bridge.force_address && bridge.ip_masq);
    assert!(bridge.hairpin_mode && !bridge.promisc_mode);
    let conf = parse(&with("bridge", &json!({}))).unwrap();
    let Provider::Bridge(ref bridge) = super::native(&conf.body.networks()[0]).provider else {
        panic!("no bridge")
    };
    assert_eq!((bridge.bridge.as_str(), bridge.is_gateway), ("cni0", false));
}

#[test]
fn options_of_routed() {
    let ipam = json!({"type": "plexus", "subnets": ["10.0.0.0/24"]});
    let conf = with(
        "routed",
        &json!({"mtu": 1400, "ipMasq": true, "ipam": ipam}),
    );
    let conf = parse(&conf).unwrap();
    let native = native(&conf.body.networks()[0]);
    assert!(
        matches!(&native.provider, Provider::Routed(routed) if routed.ip_masq && routed.source_check)
    );
}

fn requests(runtime: Value, cni: Value, env: &str, mac: &str) -> (Option<String>, Vec<String>) {
    let ipam = json!({"type": "plexus", "subnets": ["10.0.0.0/24"]});
    let conf = with(
        "macvlan",
        &json!({"mac": mac, "ipam": ipam, "runtimeConfig": runtime,
        "args": {"cni": cni}}),
    );
    let args = Args::parse(env).unwrap();
    let conf = NetConf::parse(conf.to_string().as_bytes(), &args).unwrap();
    let native = native(&conf.body.networks()[0]);
    let ips = native
        .ips
        .iter()
        .map(|(ip, length)| format!("{ip} {length:?}"))
        .collect();
    (native.mac.map(|mac| mac.to_string()), ips)
}

#[test]
fn precedence_of_requests() {
    let runtime = json!({"Mac": "02:00:00:00:00:01", "IPS": ["10.0.0.1/24"]});
    let cni = json!({"mac": "02:00:00:00:00:02", "ips": ["10.0.0.2"]});
    let env = "MAC=02:00:00:00:00:03;IP=10.0.0.3";
    let conf = "02:00:00:00:00:04";
    let none = || json!({});
    for (got, mac, ips) in [
        (
            requests(runtime, cni.clone(), env, conf),
            "01",
            vec!["10.0.0.1 Some(24)"],
        ),
        (
            requests(none(), cni, env, conf),
            "02",
            vec!["10.0.0.2 None"],
        ),
        (
            requests(none(), none(), env, conf),
            "03",
            vec!["10.0.0.3 None"],
        ),
        (requests(none(), none(), "", conf), "04", vec![]),
    ] {
        assert_eq!(got.0.unwrap(), format!("02:00:00:00:00:{mac}"));
        assert_eq!(got.1, ips);
    }
}

#[test]
fn the_reference_plugins_own_configurations_are_native() {
    let bridge = json!({"bridge": "br0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
        "vlan": 0, "enabledad": false, "capabilities": {"ips": true},
        "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}});
    let macvlan = json!({"master": "eth1", "mac": "02:00:00:00:00:01", "linkInContainer": false,
        "ipam": {"type": "static", "addresses": [{"address": "10.0.0.5/24"}]}});
    for (plugin, conf) in [("bridge", bridge), ("macvlan", macvlan)] {
        let conf = parse(&of_plugin(plugin, &conf)).unwrap();
        assert_eq!(native(&conf.body.networks()[0]).provider.name(), plugin);
        assert_eq!(conf.plugin_type.as_str(), plugin);
    }
}

#[test]
fn aliases_are_our_names_too() {
    for name in crate::cni::OWN_TYPES {
        let conf = parse(&with("bridge", &json!({"type": name}))).unwrap();
        assert_eq!(conf.plugin_type.as_str(), name);
    }
}
