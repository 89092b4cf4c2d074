//! Configurations of `ipvlan`.

use super::{chain, native, of_plugin, over, parse, refused, with};
use crate::cni::{Ipvlan, IpvlanMode, Provider};
use serde_json::{Value, json};

fn addressed(extra: &Value) -> Value {
    let ipam = json!({"type": "host-local", "subnet": "10.1.2.0/24"});
    over(&json!({"ipam": ipam}), extra)
}

#[test]
fn every_mode_is_native() {
    for (written, mode) in [
        ("", IpvlanMode::L2),
        ("l2", IpvlanMode::L2),
        ("l3", IpvlanMode::L3),
        ("l3s", IpvlanMode::L3s),
    ] {
        let options = addressed(&json!({"mode": written, "master": "eth1"}));
        let conf = parse(&of_plugin("ipvlan", &options)).unwrap();
        let ipvlan = Ipvlan {
            master: Some("eth1".parse().unwrap()),
            mode,
        };
        let native = native(&conf.body.networks()[0]);
        assert_eq!(native.provider, Provider::Ipvlan(ipvlan));
    }
}

#[test]
fn what_is_not_native_is_executed() {
    let previous = json!({"cniVersion": "1.1.0"});
    for (options, key) in [
        (
            addressed(&json!({"linkInContainer": true})),
            "linkInContainer",
        ),
        (
            json!({"prevResult": previous, "master": "eth1"}),
            "prevResult",
        ),
        (addressed(&json!({"prevResult": previous})), "prevResult"),
    ] {
        let conf = parse(&of_plugin("ipvlan", &options)).unwrap();
        let chain = chain(&conf.body.networks()[0]);
        assert_eq!(chain.unsupported_key.as_deref(), Some(key), "{options}");
    }
}

#[test]
fn wrong_options_are_refused() {
    refused(&[
        (
            with("ipvlan", &addressed(&json!({"mode": "L2"}))),
            7,
            "mode: is \"L2\": write l2, l3 or l3s",
        ),
        (with("ipvlan", &json!({})), 7, "ipam"),
        (
            with(
                "ipvlan",
                &addressed(&json!({"capabilities": {"ips": true},
                    "args": {"cni": {"mac": "02:00:00:00:00:01"}}})),
            ),
            7,
            "every ipvlan has the MAC of its master",
        ),
        (
            with(
                "ipvlan",
                &addressed(&json!({"capabilities": {"mac": true}})),
            ),
            2,
            "capabilities.mac",
        ),
        (
            with("ipvlan", &addressed(&json!({"linkInContainer": true}))),
            2,
            "linkInContainer: is true, which is not native",
        ),
    ]);
}
