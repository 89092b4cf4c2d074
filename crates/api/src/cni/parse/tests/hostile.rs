//! Hostile and broken configurations: one error that names the field, never a panic.

use super::{parse, refused, with};
use crate::cni::{Args, Code, MAX_CONFIG, NetConf};
use serde_json::{Value, json};

fn bytes(text: &[u8]) -> crate::cni::Error {
    NetConf::parse(text, &Args::default()).unwrap_err()
}

#[test]
fn text_that_is_no_configuration() {
    let deep = |open: &str| format!("{{\"name\":{}", open.repeat(100_000));
    let big = format!("{{\"name\":\"{}\"}}", "x".repeat(10 << 20));
    let spaces = " ".repeat(MAX_CONFIG + 1);
    for text in [
        b"".as_slice(),
        b"{",
        b"null",
        b"[]",
        b"7",
        b"\"x\"",
        b"{} {}",
        b"\xff\xfe",
        b"{\"name\":\"a\",\"name\":\"b\"}",
        "{\u{201c}name\u{201d}:1}".as_bytes(),
        deep("[").as_bytes(),
        deep("{\"a\":").as_bytes(),
        big.as_bytes(),
        spaces.as_bytes(),
    ] {
        let error = bytes(text);
        assert_eq!(error.code, Code::Decode, "{error}");
        assert!(error.msg.len() < 500 && !error.details.is_empty());
    }
}

#[test]
fn depth_is_bounded_inside_a_value_too() {
    let nested = |depth: usize| {
        let deep = "[".repeat(depth) + &"]".repeat(depth);
        format!(r#"{{"cniVersion":"1.1.0","name":"n","type":"macvlan","x":{deep}}}"#)
    };
    assert!(NetConf::parse(nested(100).as_bytes(), &Args::default()).is_ok());
    assert_eq!(bytes(nested(200).as_bytes()).code, Code::Decode);
}

#[test]
fn versions_that_we_do_not_speak() {
    for version in [
        json!("0.1.0"),
        json!("0.2.0"),
        json!("9.9.9"),
        json!("1.1"),
        json!(""),
        json!(null),
    ] {
        let error = parse(&with("bridge", &json!({"cniVersion": version}))).unwrap_err();
        assert_eq!(error.code, Code::IncompatibleVersion, "{version}");
        assert!(
            error.msg.contains("0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0"),
            "{error}"
        );
    }
    let error = bytes(br#"{"name":"n","type":"plexus-cni","provider":"bridge"}"#);
    assert!(error.msg.contains("\"0.1.0\""), "{error}");
    refused(&[(
        with("bridge", &json!({"cniVersion": 1.1})),
        7,
        "cniVersion: must be a string",
    )]);
}

#[test]
fn unknown_keys_at_every_level() {
    let ipam = |ipam: Value| with("macvlan", &json!({"ipam": ipam}));
    refused(&[
        (
            with("macvlan", &json!({"mater": "x"})),
            2,
            "mater: is not a known key: did you mean \"master\"",
        ),
        (with("macvlan", &json!({"isGateway": true})), 2, "isGateway"),
        (with("bridge", &json!({"master": "eth0"})), 2, "master"),
        (
            with("macvlan", &json!({"default-gw": "n"})),
            2,
            "default-gw",
        ),
        (with("macvlan", &json!({"interface": "x"})), 2, "interface"),
        (
            with("macvlan", &json!({"linkInContainer": true})),
            2,
            "the real macvlan plugin into \"plugins\"",
        ),
        (
            with("bridge", &json!({"vlan": 5})),
            2,
            "the real bridge plugin into \"plugins\"",
        ),
        (
            with("bridge", &json!({"ipMasqBackend": "nftables"})),
            2,
            "ipMasqBackend",
        ),
        (
            with("macvlan", &json!({"dns": {"server": []}})),
            2,
            "dns.server",
        ),
        (
            with("macvlan", &json!({"args": {"cni": {"ip": "x"}}})),
            2,
            "args.cni.ip",
        ),
        (
            with("macvlan", &json!({"runtimeConfig": {"bandwidth": {}}})),
            2,
            "runtimeConfig.bandwidth",
        ),
        (
            ipam(json!({"type": "plexus", "subnets": ["10.0.0.0/24"], "x": 1})),
            2,
            "ipam.x",
        ),
        (
            ipam(json!({"type": "host-local", "subnet": "10.0.0.0/24", "x": 1})),
            2,
            "ipam.x",
        ),
        (ipam(json!({"type": "static", "x": 1})), 2, "ipam.x"),
        (
            ipam(json!({"type": "dhcp", "daemonSocketPath": "x"})),
            2,
            "ipam.type: \"dhcp\"",
        ),
        (
            ipam(json!({"type": "static", "dns": {"x": 1}})),
            2,
            "ipam.dns.x",
        ),
        (
            with("macvlan", &json!({"x": 1, "mtu": "a"})),
            7,
            "x: is not a known key",
        ),
    ]);
}

#[test]
fn values_that_are_wrong() {
    refused(&[
        (
            with("macvlan", &json!({"name": "a/b"})),
            7,
            "name: network name \"a/b\"",
        ),
        (with("macvlan", &json!({"name": ""})), 7, "name: is missing"),
        (
            with("macvlan", &json!({"name": null})),
            7,
            "name: is missing",
        ),
        (
            with("macvlan", &json!({"type": null})),
            7,
            "type: is missing",
        ),
        (
            with("macvlan", &json!({"type": "../x"})),
            7,
            "type: plugin type",
        ),
        (
            with("macvlan", &json!({"type": "calico"})),
            7,
            "\"calico\" is neither one of our names",
        ),
        (
            with("foo", &json!({})),
            7,
            "provider: \"foo\" is not a native provider",
        ),
        (
            with("ptp", &json!({})),
            7,
            "an entry of \"networks\" with \"type\": \"ptp\"",
        ),
        (with("", &json!({})), 7, "provider: \"\""),
        (
            json!({"cniVersion": "1.0.0", "name": "n", "type": "plexus-cni", "master": "eth1"}),
            7,
            "provider: is missing",
        ),
        (
            json!({"cniVersion": "1.0.0", "name": "n", "type": "plexus-cni", "provder": "macvlan",
                "master": "eth0"}),
            7,
            "provder: is not a known key: did you mean \"provider\"",
        ),
        (
            with("macvlan", &json!({"master": "a/b"})),
            7,
            "master: interface name \"a/b\"",
        ),
        (
            with("macvlan", &json!({"master": "1234567890123456"})),
            7,
            "master",
        ),
        (
            with("macvlan", &json!({"mode": "BRIDGE"})),
            7,
            "mode: is \"BRIDGE\"",
        ),
        (
            with("macvlan", &json!({"mtu": 67})),
            7,
            "mtu: is 67: write a number from 68 to 65535",
        ),
        (with("macvlan", &json!({"mtu": 65536})), 7, "mtu: is 65536"),
        (with("macvlan", &json!({"mtu": -1})), 7, "mtu: must be"),
        (with("macvlan", &json!({"mtu": 1500.5})), 7, "mtu: must be"),
        (with("macvlan", &json!({"mtu": 1e300})), 7, "mtu: must be"),
        (
            with("macvlan", &json!({"mtu": u64::MAX})),
            7,
            "mtu: must be",
        ),
        (
            with("macvlan", &json!({"bcqueuelen": 4_294_967_296_u64})),
            7,
            "bcqueuelen: must be",
        ),
        (
            with("macvlan", &json!({"mac": "ff:ff:ff:ff:ff:ff"})),
            7,
            "mac: MAC address",
        ),
        (
            with("macvlan", &json!({"runtimeConfig": {"mac": "x"}})),
            7,
            "runtimeConfig.mac",
        ),
        (
            with("macvlan", &json!({"runtimeConfig": {"ips": ["x"]}})),
            7,
            "runtimeConfig.ips[0]",
        ),
        (
            with("macvlan", &json!({"runtimeConfig": {"ips": ["10.0.0.1"]}})),
            7,
            "ipam: is missing",
        ),
        (
            with("macvlan", &json!({"args": {"cni": {"ips": "x"}}})),
            7,
            "args.cni.ips: must be a list",
        ),
        (
            with("bridge", &json!({"bridge": ""})),
            7,
            "bridge: is empty",
        ),
        (with("bridge", &json!({"vlan": 4095})), 7, "vlan: is 4095"),
        (
            with("bridge", &json!({"hairpinMode": true, "promiscMode": true})),
            7,
            "promiscMode",
        ),
        (with("routed", &json!({})), 7, "ipam: is missing"),
        (
            with("bridge", &json!({"agentSocket": "x"})),
            7,
            "agentSocket",
        ),
        (
            with("bridge", &json!({"cniVersions": ["1.x"]})),
            7,
            "cniVersions[0]: \"1.x\"",
        ),
        (
            with("bridge", &json!({"capabilities": {"ips": "yes"}})),
            7,
            "capabilities.ips",
        ),
        (
            with("bridge", &json!({"prevResult": {"cniVersion": "3.0.0"}})),
            7,
            "prevResult.cniVersion",
        ),
        (
            with(
                "bridge",
                &json!({"prevResult": {"ips": [{"address": "x"}]}}),
            ),
            7,
            "prevResult.ips[0].address",
        ),
        (
            with("bridge", &json!({"cni.dev/valid-attachments": {}})),
            7,
            "cni.dev/valid-attachments",
        ),
        (
            with(
                "bridge",
                &json!({"cni.dev/valid-attachments": [{"containerID": "c"}]}),
            ),
            7,
            "ifname: is missing",
        ),
        (
            with(
                "bridge",
                &json!({"cni.dev/attachments": [{"containerID": "../c", "ifname": "a"}]}),
            ),
            7,
            "cni.dev/attachments[0].containerID",
        ),
    ]);
}

/// Every key with every wrong type is an error that names the key; null is as if it were absent.
#[test]
fn wrong_types_everywhere() {
    let keys = [
        "name",
        "type",
        "cniVersions",
        "disableCheck",
        "disableGC",
        "capabilities",
        "runtimeConfig",
        "args",
        "prevResult",
        "dns",
        "agentSocket",
        "cni.dev/valid-attachments",
        "cni.dev/attachments",
        "ipam",
        "sourceRouting",
        "provider",
        "networks",
        "mtu",
        "mac",
        "bridge",
        "isGateway",
        "isDefaultGateway",
        "forceAddress",
        "ipMasq",
        "hairpinMode",
        "promiscMode",
        "vlan",
        "preserveDefaultVlan",
        "macspoofchk",
        "enabledad",
        "plugins",
    ];
    let values = [
        json!(true),
        json!(1),
        json!(-1.5),
        json!("\u{0}"),
        json!([1]),
        json!({"a": 1}),
    ];
    for key in keys {
        for value in &values {
            let conf = with("bridge", &json!({key: value}));
            let right = matches!(
                (key, value),
                (_, Value::Bool(_)) if key.starts_with("disable") || key.starts_with("is")
                    || ["forceAddress", "ipMasq", "hairpinMode", "promiscMode", "sourceRouting",
                        "preserveDefaultVlan"].contains(&key)
            ) || (key == "args" && value.is_object())
                || (key == "prevResult" && value.is_object());
            match parse(&conf) {
                Ok(_) => assert!(right, "{key}: {value} was accepted"),
                Err(error) => {
                    assert!(!right, "{key}: {value}: {error}");
                    assert!(error.msg.contains(key), "{key}: {value}: {error}");
                }
            }
        }
        let absent = parse(&with("bridge", &json!({key: null})));
        assert_eq!(absent.is_ok(), !["name", "type"].contains(&key), "{key}");
    }
}

#[test]
fn a_flood_of_problems_is_cut_short() {
    let mut conf = with("bridge", &json!({}));
    for i in 0..20_000 {
        conf[format!("unknown{i}")] = json!(1);
    }
    let error = parse(&conf).unwrap_err();
    assert!(
        error.msg.contains("and 19980 more problems"),
        "{}",
        error.msg.len()
    );
    assert!(error.msg.len() < 4_000);
}
