//! Configurations of `vlan`.

use super::{chain, native, of_plugin, parse, refused, with};
use crate::cni::{Provider, Vlan};
use serde_json::json;

#[test]
fn every_number_of_a_vlan_is_native() {
    for (written, vlan_id) in [
        (json!(null), 0),
        (json!(0), 0),
        (json!(5), 5),
        (json!(4094), 4094),
    ] {
        let options = json!({"vlanId": written, "master": "eth1"});
        let conf = parse(&of_plugin("vlan", &options)).unwrap();
        let vlan = Vlan {
            master: "eth1".parse().unwrap(),
            vlan_id,
        };
        let native = native(&conf.body.networks()[0]);
        assert_eq!(native.provider, Provider::Vlan(vlan));
    }
}

#[test]
fn a_master_in_the_container_is_the_plugins_business() {
    let options = json!({"master": "eth0", "vlanId": 5, "linkInContainer": true});
    let conf = parse(&of_plugin("vlan", &options)).unwrap();
    let chain = chain(&conf.body.networks()[0]);
    assert_eq!(chain.unsupported_key.as_deref(), Some("linkInContainer"));
}

#[test]
fn wrong_options_are_refused() {
    let of = |vlan_id: i64| with("vlan", &json!({"master": "eth1", "vlanId": vlan_id}));
    let range = "vlanId: is 4095: write a number from 0 to 4094";
    let mac = json!({"master": "eth1", "args": {"cni": {"mac": "02:00:00:00:00:01"}}});
    refused(&[
        (of(4095), 7, range),
        (of(-1), 7, "vlanId"),
        (with("vlan", &json!({"vlanId": 5})), 7, "master"),
        (
            with("vlan", &mac),
            7,
            "every vlan has the MAC of its master",
        ),
    ]);
}
