//! Native networks whose IPAM plugin is executed: which they are, and what the plugin gets.

use super::{chain, native, of_plugin, over, parse, refused, with};
use crate::cni::{Args, Executable, ExecutedIpam, Ipam, NetConf, Network, Version};
use serde_json::{Value, json};

fn wide() -> Value {
    json!({"ipam": {"type": "whereabouts", "range": "10.0.0.0/24", "odd": [1, null]}})
}

fn executed(network: &Network) -> &ExecutedIpam {
    let native = native(network);
    assert!(native.ips.is_empty(), "the plugin gets them");
    match &native.ipam {
        Some(Ipam::Executed(ipam)) => ipam,
        other => panic!("{other:?}"),
    }
}

/// What the one plugin of the first network gets.
fn plugin(conf: &NetConf) -> Value {
    let ipam = executed(&conf.body.networks()[0]);
    assert_eq!(ipam.chain.executable, Executable::IpamType);
    assert_eq!(ipam.chain.plugins.len(), 1);
    assert!(ipam.routes.is_empty());
    Value::Object(ipam.chain.plugins[0].clone())
}

#[test]
fn every_provider_has_it_in_both_ways_of_writing() {
    for provider in ["macvlan", "bridge", "routed"] {
        let conf = parse(&with(provider, &wide())).unwrap();
        let network = &conf.body.networks()[0];
        let ipam = native(network).ipam.as_ref().unwrap();
        assert_eq!(ipam.name(), "whereabouts");
        let chain = network.backend.executed().unwrap();
        assert_eq!(chain.executables().collect::<Vec<_>>(), ["whereabouts"]);
        assert_eq!(chain.version, Version::V1_1_0);
    }
    for name in ["macvlan", "bridge"] {
        let conf = parse(&of_plugin(name, &wide())).unwrap();
        assert_eq!(plugin(&conf)["ipam"], wide()["ipam"]);
        assert_eq!(native(&conf.body.networks()[0]).provider.name(), name);
    }
    let conf = json!({"cniVersion": "1.0.0", "name": "n", "type": "plexus-cni", "networks": [
        over(&json!({"name": "a", "type": "macvlan", "interface": "x0"}), &wide()),
        over(&json!({"name": "b", "provider": "bridge", "interface": "x1"}), &wide())]});
    let conf = parse(&conf).unwrap();
    let a = &executed(&conf.body.networks()[0]).chain.plugins[0];
    assert_eq!(
        Value::Object(a.clone()),
        over(&json!({"type": "macvlan"}), &wide())
    );
    let b = &executed(&conf.body.networks()[1]).chain.plugins[0];
    let expected = json!({"type": "bridge", "provider": "bridge", "capabilities": {"ips": true}});
    assert_eq!(Value::Object(b.clone()), over(&expected, &wide()));
}

#[test]
fn the_plugin_gets_the_whole_configuration_as_written() {
    let options = json!({"master": "eth1", "mode": "bridge", "capabilities": {"ips": true, "mac": true},
        "dns": {"search": ["a"]}, "args": {"cni": {"x": 1, "ips": ["10.0.0.9"]}, "other": {}}});
    let options = over(&options, &wide());
    let sent = json!({"prevResult": {"cniVersion": "1.1.0"}, "cniVersions": ["1.0.0"],
        "runtimeConfig": {"ips": ["10.0.0.7/24"], "mac": "02:00:00:00:00:01"}, "agentSocket": "/x",
        "disableGC": true, "sourceRouting": true, "cni.dev/valid-attachments": []});
    let conf = parse(&of_plugin("macvlan", &over(&options, &sent))).unwrap();
    assert_eq!(plugin(&conf), over(&options, &json!({"type": "macvlan"})));
    assert!(conf.runtime.raw.contains_key("ips"));
    let network = &conf.body.networks()[0];
    assert!(network.source_routing);
    assert!(
        native(network).mac.is_some(),
        "the link's MAC is ours to set"
    );
}

#[test]
fn addresses_that_are_asked_for_are_the_plugins() {
    let args = Args::parse("IgnoreUnknown=1;IP=10.0.0.5;GATEWAY=10.0.0.1").unwrap();
    let conf = of_plugin("macvlan", &wide()).to_string();
    let conf = NetConf::parse(conf.as_bytes(), &args).unwrap();
    executed(&conf.body.networks()[0]);
    // Written for us, it has the capability without saying so.
    let ips = json!({"runtimeConfig": {"ips": ["10.0.0.7/24"]}});
    let conf = parse(&with("macvlan", &over(&wide(), &ips))).unwrap();
    assert_eq!(plugin(&conf)["capabilities"]["ips"], true);
    refused(&[(
        of_plugin("macvlan", &over(&wide(), &ips)),
        2,
        "runtimeConfig.ips: is taken by no plugin",
    )]);
}

#[test]
fn dhcp_and_foreign_keys_are_done_by_the_real_plugin() {
    let dhcp = json!({"ipam": {"type": "dhcp"}});
    for (extra, because) in [
        (dhcp, "ipam.type"),
        (
            over(&wide(), &json!({"linkInContainer": true})),
            "linkInContainer",
        ),
        (
            over(&wide(), &json!({"capabilities": {"ipRanges": true}})),
            "capabilities.ipRanges",
        ),
    ] {
        let conf = parse(&of_plugin("macvlan", &extra)).unwrap();
        let chain = chain(&conf.body.networks()[0]);
        assert_eq!(chain.unsupported_key.as_deref(), Some(because));
        assert_eq!(chain.executable, Executable::Type);
        assert_eq!(chain.executables().collect::<Vec<_>>(), ["macvlan"]);
    }
    // Nobody knows whether that is a plugin's name: the node does.
    let conf = of_plugin("macvlan", &json!({"ipam": {"type": "hostlocal"}}));
    assert_eq!(plugin(&parse(&conf).unwrap())["ipam"]["type"], "hostlocal");
}

#[test]
fn names_that_are_refused() {
    let named = |name: &str| json!({"ipam": {"type": name, "range": "10.0.0.0/24"}});
    let long = "x".repeat(1 << 16);
    let mut table = Vec::new();
    for name in ["../x", "/bin/sh", "a/b", "a\0b", ".", long.as_str()] {
        table.push((with("macvlan", &named(name)), 7, "ipam.type"));
        table.push((of_plugin("macvlan", &named(name)), 7, "ipam.type"));
    }
    for name in ["plexus-cni", "multi-nic-ipam"] {
        table.push((with("bridge", &named(name)), 7, "Plexus itself"));
        table.push((of_plugin("bridge", &named(name)), 7, "Plexus itself"));
    }
    for (name, cause) in [
        ("hostlocal", "did you mean \"host-local\"?"),
        ("Static", "did you mean \"static\"?"),
        ("plexsu", "did you mean \"plexus\"?"),
        ("dhcp", "\"dhcp\" is not native"),
    ] {
        table.push((with("macvlan", &named(name)), 2, cause));
    }
    refused(&table);
}
