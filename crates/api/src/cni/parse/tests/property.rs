//! Whatever comes in, an answer comes out.

use super::{over, with};
use crate::cni::{Args, NetConf, Outcome, Version};
use plexus_types::IfName;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Words that the parser looks for, so that arbitrary input gets past the first gate.
const WORDS: [&str; 47] = [
    "cniVersion",
    "name",
    "type",
    "provider",
    "plugins",
    "networks",
    "default-gw",
    "ipam",
    "dns",
    "args",
    "cni",
    "runtimeConfig",
    "ips",
    "mac",
    "prevResult",
    "interfaces",
    "routes",
    "dst",
    "gw",
    "address",
    "addresses",
    "gateway",
    "subnets",
    "exclude",
    "subnet",
    "ranges",
    "rangeStart",
    "rangeEnd",
    "capabilities",
    "4",
    "6",
    "interface",
    "sandbox",
    "bridge",
    "macvlan",
    "routed",
    "plexus",
    "plexus-cni",
    "host-local",
    "static",
    "delegate",
    "1.1.0",
    "0.4.0",
    "10.0.0.0/24",
    "::/0",
    "fd00::1",
    "0.0.0.0/0",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![8 => prop::sample::select(WORDS.to_vec()).prop_map(str::to_owned), 1 => ".{0,20}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(word(), value(), 0..10)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn check(conf: &Value) {
    let text = conf.to_string();
    let args = Args::parse("IP=10.0.0.5/24;MAC=02:00:00:00:00:01").unwrap();
    for args in [&args, &Args::default()] {
        match NetConf::parse(text.as_bytes(), args) {
            Ok(conf) => {
                let _ = conf.body.check_names(&IfName::new("eth0").unwrap());
                assert!(!conf.body.networks().is_empty());
            }
            Err(error) => assert!(!error.msg.is_empty() && error.msg.len() < 20_000),
        }
    }
    NetConf::parse_lenient(text.as_bytes());
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = NetConf::parse(&bytes, &Args::default());
        NetConf::parse_lenient(&bytes);
    }

    #[test]
    fn any_json(conf in value()) {
        check(&conf);
    }

    #[test]
    fn any_options(provider in "macvlan|bridge|routed|delegate", extra in object()) {
        check(&with(&provider, &extra));
    }

    #[test]
    fn any_network(entries in prop::collection::vec(object(), 0..4), gw in value()) {
        let conf = json!({"cniVersion": "1.1.0", "name": "n", "type": "plexus-cni",
            "networks": entries, "default-gw": gw});
        check(&conf);
    }

    #[test]
    fn any_ipam(kind in "host-local|static|plexus", extra in object()) {
        check(&with("bridge", &json!({"ipam": over(&extra, &json!({"type": kind}))})));
    }

    #[test]
    fn any_result(extra in object(), version in prop::sample::select(Version::ALL.to_vec())) {
        let result = over(&extra, &json!({"cniVersion": version.as_str()}));
        if let Ok(outcome) = Outcome::from_value(&result) {
            let again: Value = serde_json::from_str(&outcome.to_json(version)).unwrap();
            prop_assert_eq!(Outcome::from_value(&again).unwrap(), outcome);
        }
    }

    #[test]
    fn any_arguments(text in "([A-Za-z0-9_]{0,8}[=;]?.{0,8};?){0,6}") {
        let _ = Args::parse(&text);
    }
}
