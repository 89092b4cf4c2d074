//! Results in each wire version, written and read back.

use crate::cni::{Code, Dns, Interface, Ip, Outcome, Route, Version};
use serde_json::{Value, json};

fn full() -> Outcome {
    Outcome {
        interfaces: vec![
            Interface {
                name: "px0".into(),
                ..Interface::default()
            },
            Interface {
                name: "eth0".into(),
                mac: Some("02:00:00:00:00:01".into()),
                mtu: Some(1400),
                sandbox: Some("/run/netns/a".into()),
                socket_path: Some("/run/s".into()),
                pci_id: Some("0000:00:1f.6".into()),
            },
        ],
        ips: vec![
            Ip {
                address: "10.1.2.7/24".parse().unwrap(),
                gateway: Some("10.1.2.1".parse().unwrap()),
                interface: Some(1),
            },
            Ip {
                address: "fd00:1::4/64".parse().unwrap(),
                gateway: None,
                interface: None,
            },
        ],
        routes: vec![
            route("0.0.0.0/0"),
            Route {
                gw: Some("10.1.2.254".parse().unwrap()),
                mtu: Some(1400),
                advmss: Some(1300),
                priority: Some(50),
                table: Some(100),
                scope: Some(0),
                ..route("10.9.0.0/16")
            },
        ],
        dns: Dns {
            nameservers: vec!["1.1.1.1".into()],
            domain: Some("x.y".into()),
            search: vec!["x.y".into()],
            options: vec!["ndots:5".into()],
        },
    }
}

fn route(dst: &str) -> Route {
    Route {
        dst: dst.parse().unwrap(),
        gw: None,
        mtu: None,
        advmss: None,
        priority: None,
        table: None,
        scope: None,
    }
}

/// What a version has no field for.
fn without_novelties(mut outcome: Outcome) -> Outcome {
    for interface in &mut outcome.interfaces {
        (interface.mtu, interface.socket_path, interface.pci_id) = (None, None, None);
    }
    outcome
}

fn value(outcome: &Outcome, version: Version) -> Value {
    serde_json::from_str(&outcome.to_json(version)).unwrap()
}

#[test]
fn round_trip_in_every_version() {
    for outcome in [full(), Outcome::default()] {
        for version in Version::ALL {
            let wire = value(&outcome, version);
            assert_eq!(wire["cniVersion"], version.as_str());
            let expected = match version {
                Version::V1_1_0 => outcome.clone(),
                _ => without_novelties(outcome.clone()),
            };
            assert_eq!(Outcome::from_value(&wire).unwrap(), expected, "{version}");
        }
    }
}

#[test]
fn shapes_are_the_reference_plugins_own() {
    let routes = json!([
        {"dst": "0.0.0.0/0"},
        {"dst": "10.9.0.0/16", "gw": "10.1.2.254", "mtu": 1400, "advmss": 1300, "priority": 50,
         "table": 100, "scope": 0},
    ]);
    let dns = json!({"nameservers": ["1.1.1.1"], "domain": "x.y", "search": ["x.y"],
        "options": ["ndots:5"]});
    let plain = json!([
        {"name": "px0"},
        {"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/run/netns/a"},
    ]);
    for version in [Version::V0_3_0, Version::V0_3_1, Version::V0_4_0] {
        let expected = json!({
            "cniVersion": version.as_str(), "interfaces": plain, "routes": routes, "dns": dns,
            "ips": [
                {"version": "4", "interface": 1, "address": "10.1.2.7/24", "gateway": "10.1.2.1"},
                {"version": "6", "address": "fd00:1::4/64"},
            ],
        });
        assert_eq!(value(&full(), version), expected);
    }
    let ips = json!([
        {"interface": 1, "address": "10.1.2.7/24", "gateway": "10.1.2.1"},
        {"address": "fd00:1::4/64"},
    ]);
    let expected = json!({"cniVersion": "1.0.0", "interfaces": plain, "routes": routes,
        "dns": dns, "ips": ips});
    assert_eq!(value(&full(), Version::V1_0_0), expected);
    let rich = json!([
        {"name": "px0"},
        {"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/run/netns/a", "mtu": 1400,
         "socketPath": "/run/s", "pciID": "0000:00:1f.6"},
    ]);
    let expected = json!({"cniVersion": "1.1.0", "interfaces": rich, "routes": routes,
        "dns": dns, "ips": ips});
    assert_eq!(value(&full(), Version::V1_1_0), expected);
}

#[test]
fn an_empty_result_differs_by_version() {
    let empty = Outcome::default();
    assert_eq!(
        value(&empty, Version::V0_4_0),
        json!({"cniVersion": "0.4.0", "dns": {}})
    );
    assert_eq!(
        value(&empty, Version::V1_0_0),
        json!({"cniVersion": "1.0.0"})
    );
    assert_eq!(
        value(&empty, Version::V1_1_0),
        json!({"cniVersion": "1.1.0"})
    );
}

#[test]
fn results_of_others_are_read_kindly() {
    let outcome = Outcome::from_value(&json!({
        "cniVersion": "1.0.0", "ips": null, "dns": null, "vendor": 1,
        "interfaces": [{"name": "a", "mac": "", "vendor": {}}],
        "routes": [{"dst": "10.0.0.5/24", "gw": ""}],
    }))
    .unwrap();
    assert_eq!(outcome.interfaces[0].mac, None);
    assert_eq!(outcome.routes, [route("10.0.0.5/24")]);
}

#[test]
fn broken_results_are_refused_with_a_path() {
    for (wire, cause) in [
        (json!([]), "not a JSON object"),
        (
            json!({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5"}]}),
            "ips[0].address",
        ),
        (
            json!({"cniVersion": "1.0.0", "ips": [{}]}),
            "ips[0].address: is missing",
        ),
        (
            json!({"cniVersion": "1.0.0", "ips": {}}),
            "ips: must be a list",
        ),
        (
            json!({"cniVersion": "1.0.0", "interfaces": [null]}),
            "interfaces[0]",
        ),
        (
            json!({"cniVersion": "1.0.0", "interfaces": [{}]}),
            "interfaces[0].name: is missing",
        ),
        (
            json!({"cniVersion": "1.0.0", "routes": [{"gw": "10.0.0.1"}]}),
            "routes[0].dst",
        ),
        (
            json!({"cniVersion": "1.0.0", "dns": []}),
            "dns: must be an object",
        ),
        (
            json!({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24", "interface": 0}]}),
            "ips[0].interface: is 0, but there are 0",
        ),
        (
            json!({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24", "interface": -1}]}),
            "ips[0].interface: must be a whole number",
        ),
    ] {
        let error = Outcome::from_value(&wire).unwrap_err();
        assert_eq!(error.code, Code::Decode);
        assert!(error.msg.contains(cause), "{wire}: {error}");
    }
    for version in [json!("0.2.0"), json!("2.0.0"), json!(1), json!(null)] {
        let error = Outcome::from_value(&json!({"cniVersion": version})).unwrap_err();
        assert_eq!(error.code, Code::IncompatibleVersion, "{version}");
    }
}
