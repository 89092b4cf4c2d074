//! When a configuration is done natively and when its plugin is executed.

use super::{chain, of_plugin, over, parse, refused, with};
use crate::cni::{NetConf, Version};
use serde_json::{Value, json};

fn ours(extra: &Value) -> Value {
    over(
        &json!({"cniVersion": "1.0.0", "name": "n", "type": "plexus-cni"}),
        extra,
    )
}

#[test]
fn a_foreign_key_makes_us_execute_the_plugin() {
    let subnet = json!({"type": "host-local", "subnet": "10.0.0.0/24"});
    for (plugin, key, value, because) in [
        ("bridge", "vlan", json!(7), "vlan"),
        ("bridge", "vlanTrunk", json!([]), "vlanTrunk"),
        ("bridge", "macspoofchk", json!(true), "macspoofchk"),
        ("bridge", "enabledad", json!(true), "enabledad"),
        ("bridge", "portIsolation", json!(true), "portIsolation"),
        (
            "bridge",
            "disableContainerInterface",
            json!(true),
            "disableContainerInterface",
        ),
        (
            "bridge",
            "ipMasqBackend",
            json!("nftables"),
            "ipMasqBackend",
        ),
        ("bridge", "mac", json!("02:00:00:00:00:01"), "mac"),
        (
            "bridge",
            "capabilities",
            json!({"ipRanges": true}),
            "capabilities.ipRanges",
        ),
        ("macvlan", "linkInContainer", json!(true), "linkInContainer"),
        ("macvlan", "Master", json!("eth1"), "Master"),
        (
            "macvlan",
            "ipam",
            json!({"type": "dhcp", "daemonSocketPath": "/x"}),
            "ipam.type",
        ),
        ("macvlan", "args", json!({"cni": {"x": 1}}), "args.cni.x"),
    ] {
        let conf = of_plugin(
            plugin,
            &over(&json!({"ipam": subnet}), &json!({key: value})),
        );
        let conf = parse(&conf).unwrap();
        let chain = chain(&conf.body.networks()[0]);
        assert_eq!(chain.unsupported_key.as_deref(), Some(because));
        assert_eq!(chain.plugins.len(), 1);
        assert_eq!(chain.plugins[0]["type"], plugin);
        assert_eq!(chain.plugins[0][key], value);
    }
}

#[test]
fn the_plugin_gets_its_configuration_as_written() {
    let options = json!({"master": "eth1", "mode": "l2", "ipam": {"type": "dhcp"}, "odd": [1, null],
        "capabilities": {"portMappings": true}, "dns": {"search": ["a"]}, "args": {"cni": {"x": 1}}});
    let conf = over(
        &options,
        &json!({"prevResult": {"cniVersion": "1.1.0"}, "cniVersions": ["1.0.0"],
        "runtimeConfig": {"portMappings": [{"HostPort": 1}]}, "agentSocket": "/x",
        "disableGC": true, "cni.dev/valid-attachments": []}),
    );
    let conf = parse(&of_plugin("ptp", &conf)).unwrap();
    let chain = chain(&conf.body.networks()[0]);
    let expected = over(&options, &json!({"type": "ptp"}));
    assert_eq!(Value::Object(chain.plugins[0].clone()), expected);
    assert_eq!(
        (chain.version, &chain.unsupported_key),
        (Version::V1_1_0, &None)
    );
    assert!(conf.runtime.raw.contains_key("portMappings"));
}

#[test]
fn chains() {
    let plugins = json!([
        {"type": "ptp", "cniVersion": "0.3.1", "name": "x", "ipam": {"type": "whereabouts"}},
        {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true},
    ]);
    for extra in [
        json!({"plugins": plugins}),
        json!({"plugins": plugins, "provider": "delegate"}),
        json!({"plugins": plugins, "capabilities": {"portMappings": true, "ips": true},
            "runtimeConfig": {"PortMappings": [{"HostPort": 80, "HostIP": ""}]}}),
    ] {
        let conf = parse(&ours(&extra)).unwrap();
        let chain = chain(&conf.body.networks()[0]);
        assert_eq!(chain.version, Version::V1_0_0);
        let types: Vec<_> = chain.plugins.iter().map(|plugin| &plugin["type"]).collect();
        assert_eq!(types, ["ptp", "portmap"]);
        assert!(!chain.plugins[0].contains_key("cniVersion"));
        assert!(!chain.plugins[0].contains_key("name"));
        assert!(conf.body.takes("portmappings") && !conf.body.takes("bandwidth"));
    }
    let conf = ours(&json!({"plugins": plugins, "args": {"cni": {"x": 1}}}));
    let conf = parse(&conf).unwrap();
    let chain = chain(&conf.body.networks()[0]);
    assert!(
        chain
            .plugins
            .iter()
            .all(|plugin| plugin["args"] == json!({"cni": {"x": 1}}))
    );
}

#[test]
fn chains_that_are_refused() {
    let plugins = |plugins: Value| ours(&json!({"plugins": plugins}));
    let portmap = json!([{"type": "portmap", "capabilities": {"portMappings": true}}]);
    let many: Vec<Value> = (0..33).map(|_| json!({"type": "tuning"})).collect();
    refused(&[
        (plugins(json!([])), 7, "plugins: is empty"),
        (plugins(json!({})), 7, "plugins: must be a list"),
        (
            plugins(json!(["tuning"])),
            7,
            "plugins[0]: must be an object",
        ),
        (plugins(json!([{}])), 7, "plugins[0].type: is missing"),
        (
            plugins(json!([{"type": "../x"}])),
            7,
            "plugins[0].type: plugin type \"../x\"",
        ),
        (plugins(json!([{"type": "/bin/sh"}])), 7, "plugins[0].type"),
        (plugins(json!([{"type": "a/b"}])), 7, "not a path"),
        (
            plugins(json!([{"type": 1}])),
            7,
            "plugins[0].type: must be a string",
        ),
        (plugins(json!([{"type": "plexus-cni"}])), 7, "Plexus itself"),
        (
            plugins(json!([{"type": "ptp"}, {"type": "multi-nic"}])),
            7,
            "plugins[1].type",
        ),
        (
            plugins(json!([{"type": "ptp", "ipam": {"type": "multi-nic-ipam"}}])),
            7,
            "plugins[0].ipam",
        ),
        (
            plugins(json!([{"type": "ptp", "ipam": {"type": "a/b"}}])),
            7,
            "plugins[0].ipam.type",
        ),
        (
            plugins(json!([{"type": "ptp", "prevResult": {}}])),
            7,
            "plugins[0].prevResult",
        ),
        (
            plugins(json!([{"type": "ptp", "capabilities": {"x": 1}}])),
            7,
            "capabilities.x",
        ),
        (plugins(json!(many)), 7, "plugins: has 33"),
        (
            ours(&json!({"plugins": portmap, "master": "eth0"})),
            2,
            "master: is not a known key",
        ),
        (
            ours(&json!({"plugins": portmap, "provider": "bridge"})),
            7,
            "exclude each other",
        ),
        (
            ours(&json!({"plugins": portmap, "sourceRouting": true})),
            2,
            "sourceRouting",
        ),
        (
            ours(&json!({"provider": "delegate"})),
            7,
            "plugins: is missing",
        ),
        (
            ours(&json!({"plugins": portmap, "runtimeConfig": {"bandwidth": {}}})),
            2,
            "runtimeConfig.bandwidth: is taken by no plugin",
        ),
        (
            ours(&json!({"plugins": portmap, "runtimeConfig": {"ips": ["10.0.0.1"]}})),
            2,
            "runtimeConfig.ips: is taken by no plugin",
        ),
        (
            ours(&json!({"plugins": portmap, "capabilities": {"bandwidth": true}})),
            2,
            "capabilities.bandwidth: is taken by no plugin",
        ),
        (
            with("bridge", &json!({"runtimeConfig": {"portMappings": []}})),
            2,
            "runtimeConfig.portMappings: is taken by no plugin",
        ),
        (
            with("bridge", &json!({"capabilities": {"dns": true}})),
            2,
            "capabilities.dns",
        ),
        (
            of_plugin("bridge", &json!({"plugins": portmap})),
            7,
            "plugins: and \"type\": \"bridge\"",
        ),
        (
            of_plugin("bridge", &json!({"provider": "bridge"})),
            7,
            "exclude each other",
        ),
        (
            of_plugin("bridge", &json!({"vlan": 5, "sourceRouting": true})),
            2,
            "sourceRouting",
        ),
    ]);
}

#[test]
fn a_wrong_value_is_an_error_not_a_reason_to_execute() {
    refused(&[
        (
            of_plugin("macvlan", &json!({"mode": "foo", "other": 1})),
            7,
            "mode: is \"foo\"",
        ),
        (
            of_plugin("macvlan", &json!({"mtu": "1500"})),
            7,
            "mtu: must be a whole number",
        ),
        (
            of_plugin("bridge", &json!({"vlan": 4095})),
            7,
            "vlan: is 4095",
        ),
        (
            of_plugin("bridge", &json!({"bridge": "a/b"})),
            7,
            "bridge: interface name",
        ),
        (
            of_plugin(
                "bridge",
                &json!({"ipam": {"type": "host-local", "subnet": "x"}}),
            ),
            7,
            "ipam.subnet",
        ),
        (
            of_plugin(
                "bridge",
                &json!({"vlan": 5,
                "ipam": {"type": "plexus", "subnets": ["10.0.0.0/24"]}}),
            ),
            2,
            "vlan: is 5, which is not native",
        ),
    ]);
}

#[test]
fn del_knows_the_interfaces_of_a_broken_configuration() {
    let conf = json!({"type": "plexus-cni", "networks": [
        {"name": "a", "interface": "ignored"}, {"name": "b"}, "broken",
        {"name": "c", "interface": "storage0"}, {"name": "d", "interface": "a/b"},
    ]});
    let remains = NetConf::parse_lenient(conf.to_string().as_bytes());
    let interfaces: Vec<Option<&str>> = remains
        .networks
        .iter()
        .map(|network| network.interface.as_ref().map(|name| name.as_str()))
        .collect();
    assert_eq!(
        interfaces,
        [None, Some("net1"), Some("storage0"), Some("net4")]
    );
    let conf = json!({"name": "n", "type": "macvlan", "interface": "x"});
    let remains = NetConf::parse_lenient(conf.to_string().as_bytes());
    assert_eq!(remains.networks[0].interface, None, "plugin mode");
}

#[test]
fn what_del_can_use_of_a_broken_configuration() {
    let conf = json!({"cniVersion": "0.4.0", "name": "n", "type": "macvlan", "mode": 5, "odd": {},
        "ipam": {"type": "host-local", "subnet": "bad", "dataDir": "/run/x"},
        "prevResult": {"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.0.0.2/24"}]}});
    assert!(parse(&conf).is_err());
    let remains = NetConf::parse_lenient(conf.to_string().as_bytes());
    assert_eq!(remains.version, Some(Version::V0_4_0));
    assert_eq!(remains.name.unwrap().as_str(), "n");
    assert_eq!(
        remains.networks[0].data_dir.as_ref().unwrap().to_str(),
        Some("/run/x")
    );
    assert_eq!(remains.networks[0].plugins[0]["mode"], 5);
    assert_eq!(
        remains.prev_result.unwrap().ips[0].address.to_string(),
        "10.0.0.2/24"
    );

    let conf = json!({"name": "n", "type": "plexus-cni", "networks": [
        {"name": "a", "provider": "x", "ipam": {"type": "host-local"}},
        7,
        {"name": "../b", "plugins": [{"type": "ptp", "name": "q"}, {"type": "plexus-cni"}, {"type": "/x"}]},
    ]});
    let remains = NetConf::parse_lenient(conf.to_string().as_bytes());
    assert_eq!(remains.version, None);
    let dir = remains.networks[0].data_dir.as_ref().unwrap();
    assert_eq!(dir.to_str(), Some("/var/lib/cni/networks"));
    assert_eq!(remains.networks[1].name, None);
    assert_eq!(remains.networks[1].index, 2, "a broken entry counts");
    assert_eq!(
        remains.networks[1].plugins,
        [json!({"type": "ptp"}).as_object().unwrap().clone()]
    );

    for bytes in [&b""[..], b"[]", b"{", b"\xff", &b"[".repeat(1 << 20)] {
        assert_eq!(
            NetConf::parse_lenient(bytes),
            crate::cni::Remains::default()
        );
    }
}

/// What a DEL executes without a journal is what an ADD would have: keys are read as Go reads them.
#[test]
fn del_executes_what_an_add_would_however_keys_are_spelled() {
    let remains = |plugins: &Value| {
        let conf =
            json!({"cniVersion": "1.0.0", "name": "n", "type": "plexus-cni", "plugins": plugins});
        let mut networks = NetConf::parse_lenient(conf.to_string().as_bytes()).networks;
        json!(networks.remove(0).plugins)
    };
    let spelled =
        json!([{"Type": "ptp", "IPAM": {"TYPE": "whereabouts"}, "RuntimeConfig": {}, "Name": "x"}]);
    assert_eq!(
        remains(&spelled),
        json!([{"type": "ptp", "ipam": {"type": "whereabouts"}}])
    );
    for unclear in [
        json!([{"type": "ptp", "Type": "tuning"}]),
        json!([{"type": "ptp", "ipam": {"type": "static"}, "IPAM": {"type": "whereabouts"}}]),
        json!([{"type": "ptp", "ipam": {"type": "../x"}}]),
        json!([{"type": "ptp", "ipam": {"Type": "plexus-cni"}}]),
    ] {
        assert_eq!(remains(&unclear), json!([]), "{unclear}");
    }
}

/// Plugins in Go do not care for case: what decides what is executed is read as they read it.
#[test]
fn keys_of_plugins_are_read_as_go_reads_them() {
    let conf = ours(&json!({"plugins": [
        {"Type": "ptp", "IPAM": {"TYPE": "whereabouts", "Range": "10.0.0.0/24"}, "Odd": 1, "argſ": {"cni": {}}}]}));
    let conf = parse(&conf).unwrap();
    let plugin = Value::Object(chain(&conf.body.networks()[0]).plugins[0].clone());
    let expected = json!({"type": "ptp", "ipam": {"type": "whereabouts", "Range": "10.0.0.0/24"},
        "Odd": 1, "args": {"cni": {}}});
    assert_eq!(plugin, expected);

    let entry = json!({"type": "ptp", "Ipam": {"tYpe": "whereabouts"}, "PrevResult": {}, "RuntimeConfig": {}});
    let conf = parse(&of_plugin("ptp", &entry)).unwrap();
    let plugin = Value::Object(chain(&conf.body.networks()[0]).plugins[0].clone());
    assert_eq!(
        plugin,
        json!({"type": "ptp", "ipam": {"type": "whereabouts"}})
    );

    // So are the capabilities that they declare, and what the runtime sends.
    let plugin = json!({"type": "ptp", "capabilities": {"ipſ": true, "MAC": true}});
    let sent = json!({"IPſ": ["10.0.0.7/24"], "mac": "02:00:00:00:00:01"});
    let conf = ours(&json!({"plugins": [plugin], "runtimeConfig": sent}));
    let conf = parse(&conf).unwrap();
    assert_eq!(conf.runtime.ips, [("10.0.0.7".parse().unwrap(), Some(24))]);

    for (plugin, problem) in [
        (
            json!({"type": "ptp", "Type": "evil"}),
            "plugins[0].type: occurs more than once",
        ),
        (
            json!({"type": "ptp", "ipam": {"type": "static"}, "IPAM": {"type": "evil"}}),
            "plugins[0].ipam: occurs more than once",
        ),
        (
            json!({"type": "ptp", "ipam": {"type": "static", "Type": "evil"}}),
            "plugins[0].ipam.type: occurs more than once",
        ),
        (
            json!({"type": "ptp", "prevreſult": {}}),
            "plugins[0].prevResult: is inserted",
        ),
        (
            json!({"type": "ptp", "RUNTIMECONFIG": {}}),
            "plugins[0].runtimeConfig: is inserted",
        ),
        (
            json!({"type": "ptp", "IPAM": {"type": "plexus-cni"}}),
            "is Plexus itself",
        ),
    ] {
        refused(&[(ours(&json!({"plugins": [plugin]})), 7, problem)]);
    }
}
