//! Containers that are no pods: the names by which runtimes find networks, and which network a call
//! by such a name means.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]
#![allow(dead_code, reason = "the cluster has more than is asked here")]

mod cluster;

use cluster::{Case, answered};
use plexus_api::cni::{Code, Error, FqName, NetworkBackend, PortMapping, Protocol, Runtime};
use plexus_core::resolve::{Objects, PodNetworks, container_network, runtime_name};
use plexus_types::IfName;
use serde_json::json;
use std::collections::BTreeSet;

fn case() -> Case {
    let overlay =
        |cidr: &str, vni: u32| json!({"spec": {"subnets": {"a": {"cidr": cidr}}}, "vni": vni});
    Case(json!({
        "namespaces": {"default": {}, "team-a": {"team": "a"}},
        "networks": {
            "default/blue": overlay("10.1.0.0/16", 1),
            "team-a/blue": overlay("10.2.0.0/16", 2),
            "default/team-a.blue": overlay("10.3.0.0/16", 3),
            "default/plexus": overlay("10.4.0.0/16", 4),
            "default/host": overlay("10.5.0.0/16", 5),
            "default/podman": overlay("10.7.0.0/16", 6),
            "default/fabric": {"spec": {"provider": "routed", "subnets": {"a": {"cidr": "10.6.0.0/24"}}}},
            "default/pending": {"spec": {}, "unusable": "Pending: waits for a number"},
            "team-a/own": {"spec": {"provider": "bridge", "allowedNamespaces": {"from": "Same"}}},
            "team-a/others": {"spec": {"provider": "bridge", "allowedNamespaces":
                {"from": "Selector", "selector": {"matchLabels": {"team": "b"}}}}},
            "default/chain": {"spec": {"provider": "delegate", "config": {"plugins": [{"type": "ptp"}]}}},
            "default/mapped": {"spec": {"provider": "delegate", "config": {"plugins":
                [{"type": "ptp"}, {"type": "portmap", "capabilities": {"portMappings": true}}]}}},
        },
        "nads": {
            "default/blue": {"config": {"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1"}},
            "default/lan": {"config": {"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1"}},
        },
        "blocks": {},
    }))
}

fn call(
    name: &str,
    fq: Option<(&str, &str)>,
    ifname: &str,
    runtime: &Runtime,
) -> Result<PodNetworks, Error> {
    let fq = fq.map(|(project, name)| FqName {
        project: project.to_owned(),
        name: name.to_owned(),
    });
    let (case, ifname) = (case(), IfName::new(ifname).unwrap());
    container_network(name, fq.as_ref(), &ifname, runtime, &case.settings(), &case)
        .map_err(|error| answered(&error))
}

fn meant(networks: &PodNetworks) -> String {
    let reference = &networks.references[0].reference;
    let provider = match &networks.references[0].networks.all()[0].backend {
        NetworkBackend::Native(native) => native.provider.name(),
        NetworkBackend::Delegate(_) => "delegate",
    };
    format!("{}/{} {provider}", reference.namespace, reference.name)
}

#[test]
fn every_network_has_a_name_of_its_own() {
    let case = case();
    let name = |namespace: &str, name: &str| {
        let object = case.network(namespace, name).unwrap();
        runtime_name(&object).unwrap().to_string()
    };
    assert_eq!(name("default", "blue"), "blue");
    assert_eq!(name("team-a", "blue"), "team-a.blue");
    assert_eq!(name("default", "team-a.blue"), "default.team-a.blue");
    // What a runtime would take for its own word, or for the configuration for pods.
    assert_eq!(name("default", "plexus"), "default.plexus");
    assert_eq!(name("default", "host"), "default.host");
    // What containers get that name no network stays what it is.
    assert_eq!(name("default", "podman"), "default.podman");
    let all = case.0["networks"].as_object().unwrap().keys();
    let names: BTreeSet<String> = all
        .map(|key| {
            let (namespace, object) = key.split_once('/').unwrap();
            name(namespace, object)
        })
        .collect();
    assert_eq!(names.len(), case.0["networks"].as_object().unwrap().len());
}

#[test]
fn the_full_name_means_a_network_and_nothing_else() {
    let nothing = Runtime::default();
    let by = |project, name| call("whatever", Some((project, name)), "eth0", &nothing);
    // There is a NAD of that name too, which is something else.
    assert_eq!(
        meant(&by("default", "blue").unwrap()),
        "default/blue overlay"
    );
    assert_eq!(meant(&by("team-a", "blue").unwrap()), "team-a/blue overlay");
    assert_eq!(meant(&by("team-a", "own").unwrap()), "team-a/own bridge");
    let refused = by("team-a", "others").unwrap_err();
    assert!(
        refused.msg.starts_with("network team-a/others: "),
        "{refused}"
    );
    assert_eq!(by("default", "lan").unwrap_err().code, Code::TryAgainLater);
    assert_eq!(
        by("default", "pending").unwrap_err().code,
        Code::TryAgainLater
    );
}

#[test]
fn a_short_name_is_of_the_default_namespace() {
    let nothing = Runtime::default();
    assert_eq!(
        meant(&call("blue", None, "eth0", &nothing).unwrap()),
        "default/blue overlay"
    );
    assert_eq!(
        meant(&call("fabric", None, "eth1", &nothing).unwrap()),
        "default/fabric routed"
    );
    let error = call("absent", None, "eth0", &nothing).unwrap_err();
    assert!(error.msg.contains("default/absent"), "{error}");
}

#[test]
fn the_first_interface_has_the_default_route() {
    let at = |ifname| {
        call(
            "x",
            Some(("default", "fabric")),
            ifname,
            &Runtime::default(),
        )
        .unwrap()
    };
    assert!(at("eth0").default_gw.is_some(), "standalone mode");
    assert!(at("eth1").default_gw.is_none(), "plugin mode");
    for ifname in ["eth0", "eth1"] {
        assert!(
            at(ifname).references[0].networks.all()[0].source_routing,
            "{ifname}"
        );
    }
}

#[test]
fn ports_that_would_lead_nowhere_are_refused() {
    let runtime = Runtime {
        port_mappings: vec![PortMapping {
            host_port: 8080,
            container_port: 80,
            protocol: Protocol::Tcp,
            host_ip: None,
        }],
        ..Runtime::default()
    };
    let on = |name, ifname| call("x", Some(("default", name)), ifname, &runtime);
    for name in ["blue", "chain"] {
        let error = on(name, "eth0").unwrap_err();
        assert_eq!(error.code, Code::UnsupportedField, "{error}");
        assert!(on(name, "eth1").is_ok(), "ports are the first interface's");
    }
    for name in ["fabric", "mapped"] {
        assert!(on(name, "eth0").is_ok(), "{name}");
    }
}

#[test]
fn what_the_runtime_asks_is_passed_on() {
    let runtime = Runtime {
        ips: vec![("10.6.0.7".parse().unwrap(), None)],
        mac: Some("02:00:00:00:00:07".parse().unwrap()),
        ..Runtime::default()
    };
    let one = call("x", Some(("default", "fabric")), "eth1", &runtime).unwrap();
    let NetworkBackend::Native(native) = &one.references[0].networks.all()[0].backend else {
        panic!("{one:?}")
    };
    assert_eq!((native.mac, native.ips.len()), (runtime.mac, 1));
}
