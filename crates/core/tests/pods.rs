//! From a pod's annotations to its networks: which, in which order, under which names, and whose
//! the default route is; and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

mod cluster;

use cluster::{Case, answered};
use plexus_api::cni::{
    Args, Code, Error, FqName, Ipam, Native, NetConf, NetworkBackend, Provider, Runtime,
};
use plexus_core::attach::preview::sandbox;
use plexus_core::attach::{Attach, AttachError};
use plexus_core::resolve::{Objects, PodNetworks, Reference, block_network, named_network};
use plexus_types::{IfName, chain};
use proptest::prelude::*;
use serde_json::{Value, json};

fn cluster() -> Value {
    json!({
        "namespaces": {"default": {"team": "a"}, "team-a": {}, "k8s-literal": {}, "literal": {}},
        "networks": {
            "team-a/blue": {"spec": {"subnets": {"a": {"cidr": "10.1.0.0/16"}}}, "vni": 4097},
            "default/red": {"spec": {"uuid": "given", "subnets": {"a": {"cidr": "10.2.0.0/24"}}, "snat": true}, "vni": 4098},
            "default/fabric": {"spec": {"provider": "routed", "subnets": {"a": {"cidr": "10.3.0.0/24"}}, "sourceCheck": false}},
            "default/from-nad": {"spec": {"subnets": {"a": {"cidr": "10.5.0.0/24"}}}, "vni": 5},
            "default/l2": {"spec": {"provider": "bridge", "config": {"bridge": "l2br"}}},
            "k8s-literal/blue": {"spec": {"subnets": {"a": {"cidr": "10.6.0.0/24"}}}, "vni": 6},
            "literal/blue": {"spec": {"subnets": {"a": {"cidr": "10.7.0.0/24"}}}, "vni": 7},
            "default/pending": {"spec": {}, "unusable": "Pending: waits for a number"},
            "default/failed": {"spec": {}, "unusable": "Failed: its subnets overlap"},
            "default/bare": {"spec": {}, "vni": 9},
            "default/unnumbered": {"spec": {"subnets": {"a": {"cidr": "10.8.0.0/24"}}}},
            "default/external": {"spec": {"provider": "mycorp/fancy-network-provider"}},
            "team-a/private": {"spec": {"provider": "bridge", "allowedNamespaces": {"from": "Same"}}},
            "team-a/team": {"spec": {"provider": "bridge", "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}}},
            "team-a/other-team": {"spec": {"provider": "bridge", "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "b"}}}}},
            "team-a/expressed": {"spec": {"provider": "bridge", "allowedNamespaces": {"from": "Selector", "selector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}}}},
            "team-a/not-ours": {"spec": {"provider": "bridge", "allowedNamespaces": {"from": "Selector", "selector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}}}},
            "team-a/nobody": {"spec": {"provider": "bridge", "allowedNamespaces": {"from": "Selector", "selector": {}}}},
            "default/chain": {"spec": {"provider": "delegate", "config": {"plugins": [{"type": "vlan"}, {"type": "tuning", "capabilities": {"mac": true}}]}}},
        },
        "nads": {
            "default/net-a": {"config": {"cniVersion": "0.3.1", "type": "macvlan", "master": "eth1", "capabilities": {"ips": true, "mac": true},
                                         "ipam": {"type": "host-local", "subnet": "10.9.0.0/24"}}},
            "default/wide": {"config": {"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1", "capabilities": {"ips": true},
                                        "ipam": {"type": "whereabouts", "range": "10.40.0.0/24"}}},
            "other-ns/net-c": {"config": {"cniVersion": "0.3.1", "name": "c-net", "type": "sriov"}},
            "default/from-nad": {"config": "{“cniVersion”: “0.3.1”, “type”: “contrail-k8s-cni”}", "annotations": {"opencontrail.org/cidr": "['10.5.0.0/24']"}},
            "default/refers": {"config": {"cniVersion": "0.3.1", "type": "contrail-k8s-cni"},
                               "annotations": {"opencontrail.org/network": "{\"domain\": \"default-domain\", \"project\": \"team-a\", \"name\": \"blue\"}"}},
            "default/too-early": {"config": {"cniVersion": "0.3.1", "type": "contrail-k8s-cni"}, "annotations": {"opencontrail.org/cidr": "10.77.0.0/24"}},
            "default/inline": {"config": {"cniVersion": "1.0.0", "type": "plexus-cni", "provider": "bridge", "bridge": "inl0"}},
            "default/on-node": {},
            "default/red": {},
            "default/nowhere": {},
            "default/device": {"config": {"cniVersion": "1.0.0", "type": "sriov", "capabilities": {"deviceID": true}}, "annotations": {"k8s.v1.cni.cncf.io/resourceName": "intel.com/sriov"}},
            "default/sriov": {"config": {"cniVersion": "1.0.0", "type": "sriov"}, "annotations": {"k8s.v1.cni.cncf.io/resourceName": "intel.com/sriov"}},
            "kube-system/lan": {"config": {"cniVersion": "1.0.0", "type": "bridge", "bridge": "lan0", "ipam": {"type": "host-local", "subnet": "10.66.0.0/24"}}},
            "default/blue": {"config": {"cniVersion": "1.0.0", "type": "plexus-cni"}},
            "team-a/blue": {"config": {"cniVersion": "1.0.0", "type": "plexus-cni"}},
            "broken/json": {"config": "{"},
        },
        "onDisk": {"on-node": {"cniVersion": "1.0.0", "name": "on-node", "plugins": [{"type": "macvlan", "master": "eth0"}, {"type": "tuning"}]}},
        "blocks": {"uid-blue": ["10.1.0.64/26"], "uid-red": ["10.2.0.0/26"]},
    })
}

fn case(annotations: Value) -> Case {
    let mut cluster = cluster();
    cluster["annotations"] = annotations;
    Case::read(cluster.to_string().as_bytes())
}

fn plain_conf(runtime: Value) -> NetConf {
    let text = json!({"cniVersion": "1.1.0", "name": "plexus", "type": "plexus-cni", "networks": "pod", "runtimeConfig": runtime});
    NetConf::parse(text.to_string().as_bytes(), &Args::default()).unwrap()
}

fn pod(annotations: Value) -> Result<PodNetworks, Error> {
    case(annotations).networks(&plain_conf(json!({})))
}

fn npwg(text: &str) -> Result<PodNetworks, Error> {
    pod(json!({"k8s.v1.cni.cncf.io/networks": text}))
}

fn ours(text: &str) -> Result<PodNetworks, Error> {
    pod(json!({"plexus.dev/networks": text}))
}

/// Reference and interface of each.
fn names(networks: &PodNetworks) -> Vec<String> {
    let each = networks.references.iter();
    each.map(|one| {
        let (reference, network) = (&one.reference, &one.networks.all()[0]);
        let interface = network.interface.as_ref().map_or("-", IfName::as_str);
        let Reference {
            index,
            total,
            namespace,
            name,
            ..
        } = reference;
        format!("{index}/{total} {namespace}/{name} {interface}")
    })
    .collect()
}

fn native(networks: &PodNetworks, index: usize) -> &Native {
    match &networks.references[index].networks.all()[0].backend {
        NetworkBackend::Native(native) => native,
        NetworkBackend::Delegate(chain) => panic!("{chain:?}"),
    }
}

fn default_gw(networks: &PodNetworks) -> (Option<&str>, Option<&str>) {
    let default_gw = networks.default_gw.as_ref().unwrap();
    (default_gw.v4.as_deref(), default_gw.v6.as_deref())
}

#[track_caller]
fn refused(result: Result<PodNetworks, Error>, code: Code, words: &[&str]) {
    let error = result.unwrap_err();
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in: {error}");
    }
    assert_eq!(error.code, code, "{error}");
}

#[test]
fn a_pod_that_asks_for_nothing_has_the_first_interface() {
    assert_eq!(names(&pod(json!({})).unwrap()), ["0/1 /cluster-default -"]);
}

#[test]
fn all_annotations_in_order_duplicates_included() {
    let all = pod(json!({
        "plexus.dev/networks": "team-a/blue, red",
        "opencontrail.org/network": "[{'domain': 'default-domain', 'project': 'default', 'name': 'red'}]",
        "k8s.v1.cni.cncf.io/networks": "net-a,other-ns/net-c@sriov0,net-a",
    }))
    .unwrap();
    assert_eq!(
        names(&all),
        [
            "0/7 /cluster-default -",
            "1/7 default/net-a net1",
            "2/7 other-ns/net-c sriov0",
            "3/7 default/net-a net3",
            "4/7 default/red eth4",
            "5/7 team-a/blue net5",
            "6/7 default/red net6",
        ]
    );
    let sources: Vec<&str> = all
        .references
        .iter()
        .map(|r| &*r.reference.source)
        .collect();
    assert_eq!(sources[1], "k8s.v1.cni.cncf.io/networks");
    assert_eq!(sources[4], "opencontrail.org/network");
    assert_eq!(sources[5], "plexus.dev/networks");
    let cni: Vec<&str> = all
        .references
        .iter()
        .map(|r| r.networks.all()[0].name.as_str())
        .collect();
    assert_eq!(
        cni,
        [
            "cluster-default",
            "net-a",
            "c-net",
            "net-a",
            "default.red",
            "team-a.blue",
            "default.red"
        ]
    );
    assert_eq!(all.references[4].reference.uuid, "given");
    assert_eq!(all.references[5].reference.uuid, "uid-blue");
    assert_eq!(all.references[5].reference.subnets.len(), 1);
}

#[test]
fn a_network_object_becomes_what_its_provider_says() {
    let all = ours("team-a/blue, fabric, l2, chain, red").unwrap();
    let Provider::Overlay(overlay) = &native(&all, 1).provider else {
        panic!()
    };
    assert_eq!(
        (overlay.vni, overlay.snat, overlay.source_check),
        (4097, false, true)
    );
    let Some(Ipam::Blocks(ipam)) = &native(&all, 1).ipam else {
        panic!()
    };
    assert_eq!(ipam.uid, "uid-blue");
    assert_eq!(ipam.subnets[0].block_length, Some(26));
    let Provider::Routed(routed) = &native(&all, 2).provider else {
        panic!()
    };
    assert!(!routed.source_check && !routed.ip_masq);
    assert_eq!(routed.not_masq.len(), 3);
    assert!(native(&all, 3).ipam.is_none());
    assert!(
        matches!(&all.references[4].networks.all()[0].backend, NetworkBackend::Delegate(chain) if chain.plugins.len() == 2)
    );
    assert!(matches!(&native(&all, 5).provider, Provider::Overlay(overlay) if overlay.snat));
}

#[test]
fn what_a_network_object_cannot_do() {
    refused(
        ours("pending"),
        Code::TryAgainLater,
        &["default/pending", "waits for a number", "number 1"],
    );
    refused(ours("failed"), Code::Failed, &["overlap"]);
    refused(
        ours("bare"),
        Code::InvalidConfig,
        &["no subnets", "overlay"],
    );
    refused(ours("unnumbered"), Code::TryAgainLater, &["number"]);
    refused(
        ours("external"),
        Code::TryAgainLater,
        &["mycorp/fancy-network-provider"],
    );
    refused(
        ours("team-a/private"),
        Code::InvalidConfig,
        &["its own namespace", "default"],
    );
    refused(ours("team-a/other-team"), Code::InvalidConfig, &["team=b"]);
    refused(
        ours("team-a/not-ours"),
        Code::InvalidConfig,
        &["team notin (a)"],
    );
    refused(
        ours("team-a/nobody"),
        Code::InvalidConfig,
        &["selector is empty"],
    );
    refused(
        ours("absent"),
        Code::TryAgainLater,
        &["no Network default/absent"],
    );
    refused(
        ours("team-a/red"),
        Code::TryAgainLater,
        &["did you mean default/red"],
    );
    refused(
        ours("net-a"),
        Code::TryAgainLater,
        &["k8s.v1.cni.cncf.io/networks"],
    );
    assert_eq!(ours("team-a/team").unwrap().references.len(), 2);
    assert_eq!(ours("team-a/expressed").unwrap().references.len(), 2);
    // Whose labels are not known: a namespace without the label, perhaps, and perhaps not.
    let mut unknown = case(json!({"plexus.dev/networks": "team-a/not-ours"}));
    unknown.0["namespaces"] = json!({});
    let found = unknown.networks(&plain_conf(json!({})));
    refused(found, Code::InvalidConfig, &["team notin (a)"]);
}

#[test]
fn nads_of_every_kind() {
    let all = npwg("net-a,refers,from-nad,inline,on-node,red,sriov").unwrap();
    assert!(matches!(native(&all, 1).provider, Provider::Macvlan(_)));
    assert!(matches!(&native(&all, 2).provider, Provider::Overlay(overlay) if overlay.vni == 4097));
    assert_eq!(all.references[2].reference.name, "refers");
    assert_eq!(all.references[2].reference.uuid, "uid-blue");
    assert!(matches!(&native(&all, 3).provider, Provider::Overlay(overlay) if overlay.vni == 5));
    assert!(
        matches!(&native(&all, 4).provider, Provider::Bridge(bridge) if bridge.bridge.as_str() == "inl0")
    );
    assert_eq!(all.references[4].reference.uuid, "uid-nad-inline");
    assert!(
        matches!(&all.references[5].networks.all()[0].backend, NetworkBackend::Delegate(chain) if chain.plugins.len() == 2)
    );
    assert!(matches!(&native(&all, 6).provider, Provider::Overlay(overlay) if overlay.snat));
    let warnings = all.warnings.join("\n");
    assert!(warnings.contains("intel.com/sriov"), "{warnings}");
    assert!(warnings.contains("default/from-nad"), "{warnings}");

    refused(
        npwg("absent"),
        Code::TryAgainLater,
        &["no NetworkAttachmentDefinition default/absent"],
    );
    refused(
        npwg("fabric"),
        Code::TryAgainLater,
        &["plexus.dev/networks"],
    );
    refused(
        npwg("too-early"),
        Code::TryAgainLater,
        &["default/too-early", "controller"],
    );
    refused(
        npwg("nowhere"),
        Code::TryAgainLater,
        &["no config", "nowhere"],
    );
    refused(npwg("broken/json"), Code::InvalidConfig, &["broken/json"]);
}

#[test]
fn what_a_pod_asks_of_a_network() {
    let all = npwg(r#"[{"name": "net-a", "ips": ["10.9.0.7"], "mac": "02:00:00:00:00:07", "interface": "lan"}]"#).unwrap();
    assert_eq!(native(&all, 1).ips, [("10.9.0.7".parse().unwrap(), None)]);
    assert_eq!(
        native(&all, 1).mac.unwrap().to_string(),
        "02:00:00:00:00:07"
    );
    let all = ours(r#"[{"name": "red", "ips": ["10.2.0.7"]}]"#).unwrap();
    assert_eq!(native(&all, 1).ips, [("10.2.0.7".parse().unwrap(), None)]);
    refused(
        npwg(r#"[{"name": "net-a", "bandwidth": {"ingressRate": 1}}]"#),
        Code::UnsupportedField,
        &["bandwidth"],
    );
}

/// Devices of a resource are its device plugin's to give, also where the plugin takes `deviceID`.
#[test]
fn a_pod_names_no_device_of_a_resource() {
    assert!(npwg("device").is_ok());
    refused(
        npwg(r#"[{"name": "device", "deviceID": "0000:03:02.1"}]"#),
        Code::InvalidConfig,
        &["0000:03:02.1", "default/device", "intel.com/sriov"],
    );
}

/// Contrail calls the namespace `literal` `k8s-literal`; here is a namespace of that name besides.
#[test]
fn a_project_captures_no_pod_of_another_namespace() {
    let by = |home: &str, project: &str| {
        let text = json!({"domain": "default-domain", "project": project, "name": "blue"});
        let mut cluster = cluster();
        cluster["namespace"] = json!(home);
        cluster["annotations"] = json!({"opencontrail.org/network": text.to_string()});
        let case = Case::read(cluster.to_string().as_bytes());
        case.networks(&plain_conf(json!({})))
    };
    let vni = |home: &str, project: &str| match &native(&by(home, project).unwrap(), 1).provider {
        Provider::Overlay(overlay) => overlay.vni,
        other => panic!("{other:?}"),
    };
    for home in ["default", "team-a"] {
        assert_eq!(vni(home, "team-a"), 4097);
        assert_eq!(vni(home, "k8s-team-a"), 4097);
        assert_eq!(vni(home, "literal"), 7);
        refused(
            by(home, "k8s-literal"),
            Code::InvalidConfig,
            &["namespace k8s-literal", "namespace literal", "literal/blue"],
        );
    }
    assert_eq!(vni("literal", "k8s-literal"), 7);
    assert_eq!(vni("k8s-literal", "k8s-literal"), 6);
    refused(
        by("default", "k8s-nobody"),
        Code::TryAgainLater,
        &["k8s-nobody", "nor in nobody"],
    );
    refused(
        by("default", "nobody"),
        Code::TryAgainLater,
        &["in namespace nobody", "k8s-<namespace>"],
    );
}

#[test]
fn the_default_route_by_name_of_network_or_interface() {
    let with = |choice: &str| {
        pod(
            json!({"plexus.dev/networks": "team-a/blue,red", "opencontrail.org/default-gw": choice}),
        )
    };
    for (choice, chosen) in [
        ("eth0", "eth0"),
        ("cluster-default", "eth0"),
        ("net2", "net2"),
        ("red", "net2"),
        ("blue", "net1"),
        ("team-a/blue", "net1"),
        ("team-a.blue", "net1"),
    ] {
        let all = with(choice).unwrap();
        assert_eq!(default_gw(&all), (Some(chosen), Some(chosen)), "{choice}");
        let moved = chosen != "eth0";
        assert_eq!(
            all.references[0].networks.all()[0].source_routing,
            moved,
            "{choice}"
        );
        let Some(Ipam::Blocks(first)) = &native(&all, 0).ipam else {
            panic!()
        };
        let stays: Vec<String> = first.routes.iter().map(|r| r.dst.to_string()).collect();
        let cluster: &[&str] = if moved {
            &["10.244.0.0/16", "10.96.0.0/12"]
        } else {
            &[]
        };
        assert_eq!(stays, cluster, "{choice}");
    }
    refused(
        with("rde"),
        Code::InvalidConfig,
        &["\"rde\"", "default/red (net2)"],
    );
    refused(
        with(""),
        Code::InvalidConfig,
        &["opencontrail.org/default-gw"],
    );
}

#[test]
fn default_route_of_the_working_group() {
    let all = npwg(r#"[{"name": "net-a", "default-route": ["10.9.0.254"]}]"#).unwrap();
    assert_eq!(default_gw(&all), (Some("net1"), None));
    let Some(Ipam::HostLocal(ipam)) = &native(&all, 1).ipam else {
        panic!()
    };
    assert_eq!(ipam.routes[0].gw, Some("10.9.0.254".parse().unwrap()));
    // Which attachment has it is said; by which gateway is left to the network.
    let all = npwg(r#"[{"name": "net-a", "default-route": []}]"#).unwrap();
    assert_eq!(default_gw(&all), (Some("net1"), Some("net1")));

    let two = pod(json!({
        "k8s.v1.cni.cncf.io/networks": r#"[{"name": "net-a", "default-route": ["10.9.0.254"]}]"#,
        "plexus.dev/networks": r#"[{"name": "red", "default-route": ["10.2.0.254"]}]"#,
    }));
    refused(two, Code::InvalidConfig, &["IPv4 default route", "net1"]);
    let two = r#"[{"name": "net-a", "default-route": ["10.9.0.254"]}, {"name": "net-a", "default-route": []}]"#;
    refused(npwg(two), Code::InvalidConfig, &["[1].default-route"]);
    let ecmp = r#"[{"name": "net-a", "default-route": ["10.9.0.254", "10.9.0.253"]}]"#;
    refused(npwg(ecmp), Code::UnsupportedField, &["10.9.0.253"]);
    let executed = r#"[{"name": "sriov", "default-route": ["10.9.0.254"]}]"#;
    refused(
        npwg(executed),
        Code::UnsupportedField,
        &["executed plugins"],
    );
    let both = |choice: &str| {
        pod(json!({
            "k8s.v1.cni.cncf.io/networks": r#"[{"name": "net-a", "default-route": ["10.9.0.254"]}]"#,
            "opencontrail.org/default-gw": choice,
        }))
    };
    assert_eq!(
        default_gw(&both("net1").unwrap()),
        (Some("net1"), Some("net1"))
    );
    refused(both("eth0"), Code::InvalidConfig, &["eth0"]);
}

/// Who gives the addresses is asked later: it gets what the pod asks, and the gateway replaces its own.
#[test]
fn an_ipam_plugin_that_is_executed_gets_what_the_pod_asks() {
    let asks = r#"[{"name": "wide", "ips": ["10.40.0.7/24"], "default-route": ["10.40.0.254"]}]"#;
    let all = npwg(asks).unwrap();
    assert_eq!(default_gw(&all), (Some("net1"), None));
    let Some(Ipam::Executed(ipam)) = &native(&all, 1).ipam else {
        panic!("{:?}", native(&all, 1).ipam)
    };
    assert_eq!(ipam.routes[0].gw, Some("10.40.0.254".parse().unwrap()));
    let runtime = all.references[1].networks.all()[0]
        .runtime
        .as_ref()
        .unwrap();
    assert_eq!(runtime["ips"], json!(["10.40.0.7/24"]));
    // As the first network, it keeps the cluster's prefixes if the default route is elsewhere.
    let moved = pod(json!({"v1.multus-cni.io/default-network": "default/wide",
        "plexus.dev/networks": "red", "opencontrail.org/default-gw": "red"}));
    let all = moved.unwrap();
    let Some(Ipam::Executed(ipam)) = &native(&all, 0).ipam else {
        panic!()
    };
    let stays: Vec<String> = ipam.routes.iter().map(|r| r.dst.to_string()).collect();
    let cluster = ["10.244.0.0/16", "10.96.0.0/12", "fd00:244::/48"];
    assert_eq!(
        stays, cluster,
        "of both families: which it gives is not known yet"
    );
    assert!(all.references[0].networks.all()[0].source_routing);
}

#[test]
fn multus_default_network_replaces_the_first() {
    let all = pod(json!({"v1.multus-cni.io/default-network": "lan"})).unwrap();
    assert_eq!(names(&all), ["0/1 kube-system/lan -"]);
    assert!(matches!(native(&all, 0).provider, Provider::Bridge(_)));
    let all = pod(json!({"v1.multus-cni.io/default-network": "default/net-a"})).unwrap();
    assert_eq!(names(&all), ["0/1 default/net-a -"]);
    refused(
        pod(json!({"v1.multus-cni.io/default-network": "lan@eth7"})),
        Code::UnsupportedField,
        &["default-network"],
    );
    let conf = plain_conf(json!({"portMappings": [{"hostPort": 1, "containerPort": 1}]}));
    let all = case(json!({"v1.multus-cni.io/default-network": "default/sriov"}))
        .networks(&conf)
        .unwrap();
    let runtime = all.references[0].networks.all()[0]
        .runtime
        .as_ref()
        .unwrap();
    assert!(runtime.contains_key("portMappings"));
}

#[test]
fn what_the_runtime_sends_is_for_the_first_interface() {
    let conf = plain_conf(
        json!({"portMappings": [{"hostPort": 1, "containerPort": 1}], "bandwidth": {"ingressRate": 1}}),
    );
    let all = case(json!({"k8s.v1.cni.cncf.io/networks": "sriov"}))
        .networks(&conf)
        .unwrap();
    assert_eq!(
        all.references[1].networks.all()[0].runtime,
        Some(Default::default())
    );
    assert!(
        all.warnings
            .iter()
            .any(|warning| warning.contains("bandwidth"))
    );
}

/// Of a pod whose annotation is this.
fn attach(networks: &str) -> Result<Attach, AttachError> {
    let case = case(json!({"k8s.v1.cni.cncf.io/networks": networks}));
    Attach::new(case.request(sandbox("c1").unwrap()).unwrap())
}

#[test]
fn interface_names_that_clash_are_refused_with_both_named() {
    let error = chain(&attach("net-a@net2,net-a").unwrap_err());
    assert!(error.contains("net2"), "{error}");
    assert!(attach("net-a@eth0").is_err());
}

#[test]
fn more_networks_than_anyone_gives_a_pod() {
    let many = vec!["red"; 60].join(",");
    let all = pod(
        json!({"plexus.dev/networks": many, "k8s.v1.cni.cncf.io/networks": vec!["net-a"; 60].join(",")}),
    );
    refused(all, Code::InvalidConfig, &["120"]);
}

fn call(
    annotations: Value,
    name: &str,
    ifname: &str,
    fq: Option<FqName>,
    runtime: &Runtime,
) -> Result<PodNetworks, Error> {
    let case = case(annotations);
    let ifname = IfName::new(ifname).unwrap();
    named_network(
        &case.pod(),
        name,
        fq.as_ref(),
        &ifname,
        runtime,
        &case.settings(),
        &case,
    )
    .map_err(|error| answered(&error))
}

fn under_multus(networks: &str, name: &str, ifname: &str) -> Result<PodNetworks, Error> {
    call(
        json!({"k8s.v1.cni.cncf.io/networks": networks}),
        name,
        ifname,
        None,
        &Runtime::default(),
    )
}

#[test]
fn equally_named_networks_of_two_namespaces_under_multus() {
    let mut cluster = cluster();
    cluster["networks"]["default/blue"] =
        json!({"spec": {"subnets": {"a": {"cidr": "10.11.0.0/24"}}}, "vni": 11});
    cluster["annotations"] =
        json!({"k8s.v1.cni.cncf.io/networks": "blue,team-a/blue,team-a/blue@mine"});
    let case = Case(cluster);
    let at = |ifname: &str| {
        let ifname = IfName::new(ifname).unwrap();
        named_network(
            &case.pod(),
            "blue",
            None,
            &ifname,
            &Runtime::default(),
            &case.settings(),
            &case,
        )
        .map_err(|error| answered(&error))
    };
    for (ifname, meant) in [
        ("net1", "1/4 default/blue -"),
        ("net2", "2/4 team-a/blue -"),
        ("mine", "3/4 team-a/blue -"),
    ] {
        assert_eq!(names(&at(ifname).unwrap()), [meant], "{ifname}");
    }
    refused(
        at("net3"),
        Code::InvalidConfig,
        &["default/blue or team-a/blue"],
    );
    refused(at("strange"), Code::InvalidConfig, &["nothing tells which"]);
}

#[test]
fn a_call_for_one_network() {
    assert_eq!(
        names(&under_multus("refers", "refers", "net1").unwrap()),
        ["1/2 default/refers -"]
    );
    assert_eq!(
        names(&under_multus("net-a,from-nad", "from-nad", "net2").unwrap()),
        ["2/3 default/from-nad -"]
    );
    // Not the one at that place: the only one of that name.
    assert_eq!(
        names(&under_multus("team-a/blue", "blue", "net7").unwrap()),
        ["1/2 team-a/blue -"]
    );
    // No list at all, as CNI-Genie has it: the pod's own namespace.
    let nothing = Runtime::default();
    let alone = call(json!({}), "red", "eth1", None, &nothing).unwrap();
    assert_eq!(names(&alone), ["0/1 default/red -"]);
    // Nobody knows whether it comes twice; where there is a list, it says so.
    let by_source =
        |networks: &PodNetworks| networks.references[0].networks.all()[0].source_routing;
    assert!(by_source(&alone));
    for (list, twice) in [("team-a/blue", false), ("team-a/blue,team-a/blue", true)] {
        assert_eq!(
            by_source(&under_multus(list, "blue", "net1").unwrap()),
            twice
        );
    }
    assert!(alone.default_gw.is_none(), "plugin mode");
    let fq = FqName {
        project: "k8s-team-a".to_owned(),
        name: "blue".to_owned(),
    };
    let by_fq = call(json!({}), "anything", "eth1", Some(fq), &nothing).unwrap();
    assert_eq!(names(&by_fq), ["0/1 team-a/blue -"]);
    refused(
        under_multus("too-early", "too-early", "net1"),
        Code::TryAgainLater,
        &["too-early"],
    );
    refused(
        call(json!({}), "absent", "eth1", None, &nothing),
        Code::TryAgainLater,
        &["default/absent"],
    );
}

#[test]
fn what_multus_passes_on_wins_over_the_annotation() {
    let runtime = Runtime {
        mac: Some("02:00:00:00:00:09".parse().unwrap()),
        ..Runtime::default()
    };
    let list = r#"[{"name": "red", "mac": "02:00:00:00:00:01", "ips": ["10.2.0.9"], "default-route": ["10.2.0.254"], "interface": "x0"}]"#;
    let one = call(
        json!({"k8s.v1.cni.cncf.io/networks": list}),
        "red",
        "x0",
        None,
        &runtime,
    )
    .unwrap();
    assert_eq!(native(&one, 0).mac, runtime.mac);
    assert_eq!(native(&one, 0).ips, [("10.2.0.9".parse().unwrap(), None)]);
}

#[test]
fn the_cluster_wide_default_network_of_an_object() {
    let case = case(json!({}));
    let object = case.network("team-a", "blue").unwrap();
    let (network, reference) = block_network(&object, &[]).unwrap();
    assert_eq!(
        (reference.uuid.as_str(), network.name.as_str()),
        ("uid-blue", "team-a.blue")
    );
    let (_, gateway) = reference.subnets[0];
    assert_eq!(gateway.unwrap().to_string(), "10.1.255.254");
    assert!(block_network(&case.network("default", "pending").unwrap(), &[]).is_err());
}

proptest! {
    /// Whatever stands in the annotations: an answer with one reference per network, or an error.
    #[test]
    fn hostile_annotations(
        networks in r#"[\[{"' a-z/@,:\]}\n0-9]{0,40}"#,
        contrail in r#"[\[{"' a-z/@,:\]}]{0,40}"#,
        gw in r#"[{"' a-z0-9/:}]{0,20}"#,
    ) {
        let result = pod(json!({
            "k8s.v1.cni.cncf.io/networks": networks,
            "opencontrail.org/network": contrail,
            "plexus.dev/networks": gw,
            "opencontrail.org/default-gw": gw,
        }));
        match result {
            Ok(all) => prop_assert!(all.references.iter().all(|one| one.networks.all().len() == 1)),
            Err(error) => prop_assert!(!error.msg.is_empty()),
        }
    }
}
