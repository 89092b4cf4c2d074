//! A network that was read once gives what reading it together with the request gives.

use super::*;
use serde_json::json;

/// What pods ask, each with a name.
fn requests() -> Vec<(&'static str, NetworkSelection)> {
    let of = |keys: Value| {
        let mut element = json!({"name": "nad"});
        for (key, value) in keys.as_object().unwrap() {
            element[key] = value.clone();
        }
        let text = json!([element]).to_string();
        crate::pod::networks(&text, "ns").unwrap().remove(0)
    };
    vec![
        ("nothing", of(json!({}))),
        ("interface", of(json!({"interface": "blue0"}))),
        ("ips", of(json!({"ips": ["10.1.0.7"]}))),
        ("ips with prefix", of(json!({"ips": ["10.1.0.7/16"]}))),
        ("mac", of(json!({"mac": "02:00:00:00:00:07"}))),
        (
            "both",
            of(json!({"ips": ["10.1.0.7"], "mac": "02:00:00:00:00:07"})),
        ),
        ("bandwidth", of(json!({"bandwidth": {"ingressRate": 8}}))),
        ("device", of(json!({"deviceID": "0000:03:02.0"}))),
        ("claim", of(json!({"ipam-claim-reference": "c"}))),
        ("args", of(json!({"cni-args": {"ips": ["10.1.0.9/16"]}}))),
        ("unknown args", of(json!({"cni-args": {"colour": "blue"}}))),
        ("another's", of(json!({"example.org/key": 1}))),
    ]
}

fn configs() -> Vec<Value> {
    let pool = json!({"type": "host-local", "subnet": "10.1.0.0/16"});
    let fixed = json!({"type": "static", "addresses": [{"address": "10.1.0.5/16"}]});
    let takes = json!({"ips": true, "mac": true});
    vec![
        json!({"type": "macvlan", "master": "eth1"}),
        json!({"type": "macvlan", "master": "eth1", "capabilities": takes}),
        json!({"type": "macvlan", "master": "eth1", "capabilities": takes, "ipam": pool}),
        json!({"type": "macvlan", "master": "eth1", "capabilities": takes, "ipam": fixed}),
        json!({"type": "macvlan", "master": "eth1", "capabilities": takes, "ipam": {"type": "static"}}),
        json!({"type": "macvlan", "master": "eth1", "ipam": pool, "args": {"cni": {"ips": ["10.1.0.3"]}},
            "capabilities": takes}),
        json!({"type": "bridge", "bridge": "br1", "ipam": pool, "capabilities": takes, "vlanTrunk": [{"id": 3}]}),
        json!({"type": "plexus-cni", "provider": "bridge", "ipam": {"type": "plexus", "subnets": ["10.1.0.0/16"]}}),
        json!({"type": "plexus-cni", "provider": "routed", "ipam": {"type": "plexus", "subnets": ["10.1.0.0/16"]}}),
        json!({"name": "x", "plugins": [{"type": "calico"}, {"type": "bandwidth",
            "capabilities": {"bandwidth": true}}]}),
        json!({"type": "sriov", "capabilities": {"deviceID": true, "ips": true}}),
        json!({"type": "macvlan", "master": "eth1", "mode": "wrong"}),
        json!({"type": "sriov", "capabilities": takes, "ipam": fixed}),
        json!({"type": "macvlan", "master": "eth1", "capabilities": takes, "ipam": {"type": "whereabouts"}}),
    ]
}

fn specs() -> Vec<Value> {
    let subnets = json!({"a": {"cidr": "10.1.0.0/16"}});
    vec![
        json!({"subnets": subnets}),
        json!({"provider": "routed", "subnets": subnets, "snat": true}),
        json!({"provider": "macvlan", "config": {"master": "eth1"}}),
        json!({"provider": "bridge", "subnets": subnets, "mtu": 1400}),
        json!({"provider": "delegate", "config": {"type": "calico", "capabilities": {"ips": true}}}),
        json!({"provider": "macvlan", "config": {"master": "eth1", "mode": "wrong"}}),
    ]
}

fn facts() -> ObjectFacts {
    ObjectFacts {
        uid: "uid-1".to_owned(),
        vni: Some(4097),
        not_masq: vec!["10.9.0.0/16".parse().unwrap()],
    }
}

/// The names of the requests that were added without reading again; what they give must be the same.
fn added(
    parsed: Result<ParsedNetwork, Error>,
    finish: impl Fn(&mut Network),
    read: impl Fn(&NetworkSelection) -> Result<Network, Error>,
) -> Vec<&'static str> {
    let mut added = Vec::new();
    for (what, request) in requests() {
        let together = read(&request);
        let Ok(parsed) = &parsed else {
            assert!(what != "nothing" || together.is_err());
            continue;
        };
        let Some(mut network) = parsed.with_request(&request) else {
            continue;
        };
        finish(&mut network);
        assert_eq!(Ok(network), together, "{what}");
        added.push(what);
    }
    added
}

#[test]
fn a_configuration_that_was_read_once_is_as_one_that_is_read_with_the_request() {
    let name = NetworkName::new("nad").unwrap();
    let mut all = Vec::new();
    for config in configs() {
        let config = config.as_object().unwrap();
        let read = |request: &NetworkSelection| Network::from_config(&name, config, request);
        all.push(added(ParsedNetwork::of_config(&name, config), |_| (), read));
    }
    let plain = ["nothing", "interface"];
    let with_mac = ["nothing", "interface", "mac"];
    let pool = [
        "nothing",
        "interface",
        "ips",
        "ips with prefix",
        "mac",
        "both",
    ];
    let expected: Vec<&[&str]> = vec![
        &plain,
        &with_mac,
        &pool,
        &with_mac,
        &with_mac,
        &pool,
        &[
            "nothing",
            "interface",
            "ips",
            "ips with prefix",
            "mac",
            "both",
            "claim",
        ],
        &pool,
        &pool,
        &["nothing", "interface", "bandwidth", "claim"],
        &[
            "nothing",
            "interface",
            "ips",
            "ips with prefix",
            "device",
            "claim",
        ],
        &[],
        &["nothing", "interface", "mac", "claim"],
        &[
            "nothing",
            "interface",
            "ips",
            "ips with prefix",
            "mac",
            "both",
            "claim",
        ],
    ];
    assert_eq!(all, expected);
}

#[test]
fn an_object_that_was_read_once_is_as_one_that_is_read_with_the_request() {
    let name = NetworkName::new("a.blue").unwrap();
    let mut all = Vec::new();
    for spec in specs() {
        let spec: NetworkSpec = serde_json::from_value(spec).unwrap();
        let read = |request: &NetworkSelection| Network::from_spec(&name, &spec, &facts(), request);
        // What the cluster knows is added per pod.
        let without = ObjectFacts {
            not_masq: Vec::new(),
            ..facts()
        };
        let parsed = ParsedNetwork::of_spec(&name, &spec, &without);
        let finish = |network: &mut Network| network.set_object_facts(&spec, &facts());
        all.push(added(parsed, finish, read).len());
    }
    assert_eq!(all, [6, 6, 3, 6, 5, 0]);
}
