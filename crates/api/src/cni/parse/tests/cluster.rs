//! Configurations that leave their networks to the cluster: the pod's, and those that name one.

use super::{over, parse, refused};
use crate::cni::{Args, Body, NetConf, Protocol};
use crate::pod::{NETWORKS, PLEXUS_NETWORKS};
use serde_json::{Value, json};

fn pod(extra: &Value) -> Value {
    over(
        &json!({"cniVersion": "1.0.0", "cniVersions": ["1.0.0", "1.1.0"], "name": "plexus",
            "type": "plexus-cni", "networks": "pod", "capabilities": {
                "portMappings": true, "io.kubernetes.cri.pod-annotations": true,
                "bandwidth": true, "dns": true, "cgroupPath": true, "ips": true, "mac": true}}),
        extra,
    )
}

fn named(extra: &Value) -> Value {
    over(
        &json!({"cniVersion": "0.3.1", "name": "network-a", "type": "contrail-k8s-cni"}),
        extra,
    )
}

/// What containerd sends.
#[test]
fn the_pods_networks() {
    let conf = parse(&pod(&json!({"runtimeConfig": {
        "io.kubernetes.cri.pod-annotations": {
            "k8s.v1.cni.cncf.io/networks": "a,b", "plexus.dev/networks": "c",
            "kubectl.kubernetes.io/last-applied-configuration": "x".repeat(200_000),
            "K8S.v1.cni.cncf.io/networks": "not this"},
        "portMappings": [
            {"HostPort": 8081, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""},
            {"HostPort": 53, "ContainerPort": 5353, "Protocol": "UDP", "HostIP": "192.0.2.1"},
            {"HostPort": 0, "ContainerPort": 9090, "Protocol": "tcp", "HostIP": ""}],
        "dns": {"Servers": ["10.96.0.10"], "Searches": [], "Options": null},
        "bandwidth": {"ingressRate": 1}, "cgroupPath": "/kubepods/x",
    }})))
    .unwrap();
    assert_eq!(conf.body, Body::Pod);
    let annotations = conf.runtime.annotations.unwrap();
    assert_eq!(annotations.len(), 2);
    assert_eq!(annotations[NETWORKS], "a,b");
    assert_eq!(annotations[PLEXUS_NETWORKS], "c");
    let ports = &conf.runtime.port_mappings;
    assert_eq!(ports.len(), 2);
    assert_eq!((ports[1].host_port, ports[1].container_port), (53, 5353));
    assert_eq!(ports[1].protocol, Protocol::Udp);
    assert_eq!(ports[1].host_ip, Some("192.0.2.1".parse().unwrap()));
    let kept: Vec<&String> = conf.runtime.raw.keys().collect();
    assert_eq!(kept, ["bandwidth", "cgroupPath", "dns", "portMappings"]);
}

/// The annotations can be large, and are kept once, however the runtime spells their key.
#[test]
fn annotations_are_read_as_go_reads_their_key() {
    for key in [
        "io.kubernetes.cri.pod-annotations",
        "IO.Kubernetes.CRI.pod-annotations",
        "io.\u{212a}ubernete\u{17f}.cri.pod-annotations",
    ] {
        let sent = json!({key: {NETWORKS: "a"}, "dns": {}});
        let conf = parse(&pod(&json!({"runtimeConfig": sent}))).unwrap();
        assert_eq!(conf.runtime.annotations.unwrap()[NETWORKS], "a", "{key}");
        assert_eq!(
            conf.runtime.raw.keys().collect::<Vec<_>>(),
            ["dns"],
            "{key}"
        );
    }
}

#[test]
fn no_annotations_are_not_empty_ones() {
    let conf = parse(&pod(&json!({}))).unwrap();
    assert_eq!(conf.runtime.annotations, None);
    let conf = parse(&pod(&json!({"runtimeConfig":
        {"io.kubernetes.cri.pod-annotations": {}, "portMappings": null}})))
    .unwrap();
    assert_eq!(conf.runtime.annotations, Some(Default::default()));
}

#[test]
fn a_network_by_its_name() {
    let conf = parse(&named(&json!({}))).unwrap();
    assert_eq!(conf.body, Body::Named(None));
    let fq = json!({"domain": "default-domain", "project": "p", "name": "n"});
    let conf = parse(&named(
        &json!({"network": fq, "contrail": {"mode": "k8s", "mtu": 1500},
        "capabilities": {"mac": true}, "runtimeConfig": {"mac": "02:00:00:00:00:01"},
        "args": {"cni": {"x": 1}}}),
    ))
    .unwrap();
    match &conf.body {
        Body::Named(Some(name)) => assert_eq!((&*name.project, &*name.name), ("p", "n")),
        other => panic!("{other:?}"),
    }
    assert!(conf.runtime.mac.is_some());
    assert!(conf.warnings[0].contains("contrail"), "{:?}", conf.warnings);
}

#[test]
fn annotations_reach_a_plugin_that_takes_them() {
    let sent = json!({"io.kubernetes.cri.pod-annotations": {"a": "b"}});
    let conf = parse(
        &json!({"cniVersion": "1.0.0", "name": "n", "type": "plexus-cni",
        "plugins": [{"type": "x", "capabilities": {"io.kubernetes.cri.pod-annotations": true}}],
        "runtimeConfig": sent}),
    )
    .unwrap();
    assert_eq!(Value::Object(conf.runtime.raw), sent);
}

#[test]
fn wrong_ones() {
    let ports = |value| pod(&json!({"runtimeConfig": {"portMappings": value}}));
    let annotated =
        |value| pod(&json!({"runtimeConfig": {"io.kubernetes.cri.pod-annotations": value}}));
    refused(&[
        (
            pod(&json!({"networks": "pods"})),
            7,
            "networks: is \"pods\": write \"pod\"",
        ),
        (pod(&json!({"networks": 1})), 7, "networks: must be a list"),
        (
            pod(&json!({"type": "macvlan"})),
            7,
            "type: macvlan has no \"networks\"",
        ),
        (pod(&json!({"provider": "bridge"})), 2, "provider"),
        (pod(&json!({"default-gw": "x"})), 2, "default-gw"),
        (pod(&json!({"sourceRouting": true})), 2, "sourceRouting"),
        (
            pod(&json!({"capabilities": {"telepathy": true}})),
            2,
            "capabilities.telepathy",
        ),
        (
            pod(&json!({"runtimeConfig": {"telepathy": 1}})),
            2,
            "runtimeConfig.telepathy",
        ),
        (ports(json!({})), 7, "portMappings: must be a list"),
        (
            ports(json!([{"HostPort": 1}])),
            7,
            "containerPort: is missing",
        ),
        (
            ports(json!([{"HostPort": 70000, "ContainerPort": 1}])),
            7,
            "is 70000",
        ),
        (
            ports(json!([{"HostPort": 1, "ContainerPort": 1, "Protocol": "x"}])),
            7,
            "tcp, udp",
        ),
        (
            ports(json!([{"HostPort": 1, "ContainerPort": 1, "HostIP": "x"}])),
            7,
            "not an IP",
        ),
        (
            ports(json!([{"HostPort": 1, "hostPort": 2, "ContainerPort": 1}])),
            7,
            "more than once",
        ),
        (annotated(json!([])), 7, "must be an object"),
        (annotated(json!({NETWORKS: 1})), 7, "must be a string"),
        (
            named(&json!({"network": "x"})),
            7,
            "network: must be an object",
        ),
        (
            named(&json!({"network": {"domain": "d", "project": "p", "name": "n"}})),
            7,
            "default-domain",
        ),
        (named(&json!({"network": [{}]})), 7, "provider: is missing"),
        (named(&json!({"contrail": {"x": 1}})), 2, "contrail.x"),
        (named(&json!({"contrail": {"mtu": [1]}})), 7, "contrail.mtu"),
        (named(&json!({"foo": 1})), 2, "foo: is not a known key"),
        (
            named(&json!({"providr": "bridge"})),
            7,
            "provider: is missing",
        ),
        (
            named(&json!({"ipam": {"type": "static"}})),
            7,
            "provider: is missing",
        ),
        (named(&json!({"mtu": 1})), 7, "provider: is missing"),
        (
            named(&json!({"type": "multi-nic", "masterNet": ["10.0.0.0/24"]})),
            2,
            "masterNet: is not a known key",
        ),
        (named(&json!({"name": ""})), 7, "name: is missing"),
    ]);
}

/// DEL with the same configurations, even broken ones, finds nothing to execute.
#[test]
fn what_remains() {
    for conf in [
        pod(&json!({})),
        named(&json!({})),
        pod(&json!({"capabilities": 1, "runtimeConfig": []})),
    ] {
        let remains = NetConf::parse_lenient(conf.to_string().as_bytes());
        assert!(remains.name.is_some() && remains.version.is_some());
        assert!(
            remains
                .networks
                .iter()
                .all(|network| network.plugins.is_empty())
        );
        assert!(
            remains
                .networks
                .iter()
                .all(|network| network.data_dir.is_none())
        );
    }
}

/// The largest that a runtime sends: 256 KiB of annotations, each byte quoted six times as long.
#[test]
fn the_largest_annotations() {
    let quoted = "\\u003c".repeat(256 << 10);
    let mut text = pod(&json!({})).to_string();
    text.pop();
    text.push_str(",\"runtimeConfig\":{\"io.kubernetes.cri.pod-annotations\":{\"a\":\"");
    text.push_str(&quoted);
    text.push_str("\"}}}");
    let conf = NetConf::parse(text.as_bytes(), &Args::default()).unwrap();
    assert_eq!(conf.runtime.annotations, Some(Default::default()));
}

/// As Podman asks for an address and a MAC.
#[test]
fn a_named_network_is_asked_by_the_arguments_too() {
    let args = Args::parse("IgnoreUnknown=1;K8S_POD_NAME=web;IP=10.1.0.7;MAC=02:00:00:00:00:07");
    let args = args.unwrap();
    let read = |extra: &Value| {
        let config = named(extra).to_string();
        NetConf::parse(config.as_bytes(), &args).unwrap().runtime
    };
    let runtime = read(&json!({}));
    assert_eq!(runtime.ips, [("10.1.0.7".parse().unwrap(), None)]);
    assert_eq!(runtime.mac.unwrap().to_string(), "02:00:00:00:00:07");
    let both = json!({"runtimeConfig": {"ips": ["10.1.0.8"], "mac": "02:00:00:00:00:08"}});
    let runtime = read(&both);
    assert_eq!(runtime.ips, [("10.1.0.8".parse().unwrap(), None)]);
    assert_eq!(runtime.mac.unwrap().to_string(), "02:00:00:00:00:08");
}
