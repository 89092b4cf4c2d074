//! The queries of a node about its pods: by UID and by name, on the socket and on the loopback port,
//! with the field names of Contrail's agent; unknown, then complete, then unknown again.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;

use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Namespace, Object, test_cluster, wait};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Where an agent is asked.
#[derive(Debug, Clone, Copy)]
enum Endpoint {
    Socket,
    Port,
}

#[test]
fn a_pod_is_unknown_then_complete_then_unknown() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "query").expect("a namespace");
    let nodes = kube.nodes().expect("nodes");
    let (node, ns) = (&nodes[0], namespace.name());
    let blue =
        json!({"subnets": {"v4": {"cidr": "10.56.1.0/24"}, "v6": {"cidr": "fd00:56:1::/64"}}});
    let red = json!({"subnets": {"v4": {"cidr": "10.56.2.0/24"}}});
    common::apply(
        kube,
        &[
            common::network(ns, "blue", blue),
            common::network(ns, "red", red),
        ],
    );
    for name in ["blue", "red"] {
        let active = |seen: &Value| seen["status"]["phase"] == "Active";
        let object = common::network_object(ns, name);
        kube.wait_for(&object, TIMEOUT, &active).expect("active");
    }
    let by_name = format!("k8s__{ns}__asked");
    for path in ["vm-cfg", "vm"] {
        assert_eq!(ask(kube, node, Endpoint::Socket, path, &by_name).0, 404);
    }

    let asked = [(common::PLEXUS, "blue,red")];
    common::apply(kube, &[common::pod(ns, "asked", node, &asked)]);
    // As fast as can be: whatever is answered first must be all of it.
    let first = wait::until("an answer", TIMEOUT, || {
        match ask(kube, node, Endpoint::Port, "vm", &by_name) {
            (200, value) => Ok(Some(value)),
            (status, _) => {
                assert_eq!(status, 404);
                Ok(None)
            }
        }
    });
    let first = first.expect("known");
    assert_eq!(first.as_array().map(Vec::len), Some(3), "{first}");

    let pod = namespace.pod("asked");
    common::ready(kube, &[&pod]);
    let seen = kube.get(&pod).expect("asked").expect("is there");
    let uid = seen["metadata"]["uid"].as_str().expect("a UID").to_owned();
    every_door_says_the_same(kube, node, &uid, &by_name);
    the_configuration_is_complete(kube, node, &pod, &uid);
    the_state_is_what_the_pod_has(kube, node, &pod, &uid);
    others_are_unknown(kube, &nodes, &uid, ns);

    common::gone(kube, &[&pod]);
    for name in [&uid, &by_name] {
        for path in ["vm-cfg", "vm"] {
            common::holds("unknown again", TIMEOUT, || {
                ask(kube, node, Endpoint::Port, path, name).0 == 404
            });
        }
    }
}

fn every_door_says_the_same(kube: &dyn Cluster, node: &str, uid: &str, by_name: &str) {
    for path in ["vm-cfg", "vm"] {
        let (status, expected) = ask(kube, node, Endpoint::Port, path, uid);
        assert_eq!(status, 200);
        for (endpoint, name) in [
            (Endpoint::Socket, uid),
            (Endpoint::Port, by_name),
            (Endpoint::Socket, by_name),
        ] {
            let (status, value) = ask(kube, node, endpoint, path, name);
            assert_eq!(
                (status, timeless(value)),
                (200, timeless(expected.clone())),
                "{endpoint:?} {path}"
            );
        }
    }
}

fn the_configuration_is_complete(kube: &dyn Cluster, node: &str, pod: &Object, uid: &str) {
    let (_, value) = ask(kube, node, Endpoint::Port, "vm-cfg", uid);
    let all = value.as_array().expect("a list");
    let records = common::attachments(kube, pod);
    assert_eq!(all.len(), records.len());
    for (index, (one, record)) in all.iter().zip(&records).enumerate() {
        let keys = [
            "id",
            "instance-id",
            "vn-id",
            "mac-address",
            "sub-interface",
            "vlan-id",
            "annotations",
        ];
        assert_has(one, &keys);
        assert_eq!(one["id"], record["id"]);
        assert_eq!(one["instance-id"], uid);
        assert_eq!(one["mac-address"], record["mac"]);
        assert_eq!(one["sub-interface"], false);
        assert_eq!(one["vlan-id"], 65535);
        let output_of = &one["annotations"];
        let network = ["default", "blue", "red"][index];
        let expected = json!({
            "index": format!("{index}/3"), "interface": record["interface"], "network": network,
            "network-namespace": record["network"]["namespace"], "default-gw": (index == 0).to_string(),
            "cluster": "k8s", "kind": "Pod", "namespace": pod.namespace, "name": pod.name,
        });
        assert_eq!(output_of, &expected);
        if index > 0 {
            assert_eq!(one["vn-id"], record["network"]["uuid"]);
            let object = common::network_object(&pod.namespace, network);
            let object = kube.get(&object).expect("asked").expect("is there");
            assert_eq!(one["vn-id"], object["metadata"]["uid"]);
        }
    }
    let ids: BTreeSet<&str> = all.iter().filter_map(|one| one["id"].as_str()).collect();
    assert_eq!(ids.len(), 3, "{value}");
}

fn the_state_is_what_the_pod_has(kube: &dyn Cluster, node: &str, pod: &Object, uid: &str) {
    let (_, value) = ask(kube, node, Endpoint::Port, "vm", uid);
    let all = value.as_array().expect("a list");
    let records = common::attachments(kube, pod);
    let keys = [
        "id",
        "instance-id",
        "vhostuser-mode",
        "vn-id",
        "vm-project-id",
        "system-name",
        "mac-address",
        "rx-vlan-id",
        "tx-vlan-id",
        "ip-address",
        "plen",
        "dns-server",
        "gateway",
        "v6-ip-address",
        "v6-plen",
        "v6-dns-server",
        "v6-gateway",
        "author",
        "time",
    ];
    for (one, record) in all.iter().zip(&records) {
        assert_has(one, &keys);
        assert_eq!(one["id"], record["id"]);
        let interface = record["interface"].as_str().expect("a name");
        let text = common::output_of(
            kube,
            pod,
            &format!("ip -j address show {interface} scope global"),
        );
        let link: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(one["mac-address"], link[0]["address"]);
        let has = |family: &str| {
            let each = link[0]["addr_info"].as_array().into_iter().flatten();
            let mut of = each.filter(|address| address["family"] == family);
            of.next()
                .map_or(Value::Null, |address| address["local"].clone())
        };
        assert_eq!(one["ip-address"], has("inet"));
        assert_eq!(one["v6-ip-address"], or(has("inet6"), "::"));
        let gateways = record["gateways"].as_array().expect("gateways");
        assert_eq!(one["gateway"], gateways[0]);
        assert_eq!(
            one["v6-gateway"],
            or(gateways.get(1).cloned().unwrap_or_default(), "::")
        );
        // The other end is on the node, and leads to this interface.
        let end = one["system-name"].as_str().expect("a name");
        if interface == "eth0" {
            let text = kube
                .on_node(node, &["ip", "-j", "link", "show", end])
                .expect("runs");
            let text = text.text().expect("it is there");
            let outer: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(outer[0]["link_index"], link[0]["ifindex"]);
        }
        assert!(!end.is_empty());
        // One of them alone.
        let id = one["id"].as_str().expect("an id");
        let (status, alone) = ask(kube, node, Endpoint::Socket, "vm", &format!("{uid}/{id}"));
        assert_eq!((status, timeless(alone)), (200, timeless(one.clone())));
    }
    let lengths: Vec<(&Value, &Value)> = all
        .iter()
        .map(|one| (&one["plen"], &one["v6-plen"]))
        .collect();
    let (v4, v6) = cluster_lengths(kube, node);
    assert_eq!(
        lengths,
        [
            (&v4, &v6),
            (&json!(24), &json!(64)),
            (&json!(24), &json!(0))
        ]
    );
}

/// The lengths of the cluster's own subnets on a node: those of its podCIDRs, or of its network.
fn cluster_lengths(kube: &dyn Cluster, node: &str) -> (Value, Value) {
    let object = common::network_object("plexus-system", "cluster-default");
    let cidrs = match kube.get(&object).expect("asked") {
        Some(network) => network["spec"]["subnets"].clone(),
        None => {
            let node = Object::new("v1", "Node", "", node);
            let node = kube.get(&node).expect("asked").expect("is there");
            node["spec"]["podCIDRs"].clone()
        }
    };
    let text = cidrs.to_string();
    let words = text.split('"').filter(|word| word.contains('/'));
    let (v6, v4): (Vec<&str>, Vec<&str>) = words.partition(|cidr| cidr.contains(':'));
    let length = |cidrs: &[&str]| -> Value {
        let (_, length) = cidrs[0].split_once('/').expect("a prefix");
        length.parse::<u8>().expect("a length").into()
    };
    (length(&v4), length(&v6))
}

fn others_are_unknown(kube: &dyn Cluster, nodes: &[String], uid: &str, namespace: &str) {
    let unknown = [
        "5b0c2b54-0000-4000-8000-00000000000a".to_owned(),
        format!("other__{namespace}__asked"),
        format!("k8s__{namespace}__aske"),
        format!("k8s__{namespace}__asked__x"),
        "..%2f..".to_owned(),
        format!("{uid}/5b0c2b54-0000-4000-8000-00000000000a"),
    ];
    for name in &unknown {
        assert_eq!(
            ask(kube, &nodes[0], Endpoint::Port, "vm", name).0,
            404,
            "{name}"
        );
    }
    // A node knows its own pods.
    assert_eq!(ask(kube, &nodes[1], Endpoint::Socket, "vm", uid).0, 404);
}

/// Status and what was said, if it is JSON.
fn ask(kube: &dyn Cluster, node: &str, endpoint: Endpoint, path: &str, name: &str) -> (u16, Value) {
    let socket = kube.files(node).expect("known").socket;
    let mut argv = vec!["curl", "-gs", "-m", "5", "-w", "\n%{http_code}"];
    let url = match endpoint {
        Endpoint::Socket => {
            argv.extend(["--unix-socket", &socket]);
            format!("http://plexus/{path}/{name}")
        }
        Endpoint::Port => format!("http://127.0.0.1:9091/{path}/{name}"),
    };
    argv.push(&url);
    let text = kube
        .on_node(node, &argv)
        .expect("it runs")
        .text()
        .expect("an answer");
    let (body, status) = text.rsplit_once('\n').expect("a status");
    (
        status.parse().expect("a number"),
        serde_json::from_str(body).unwrap_or_default(),
    )
}

fn assert_has(one: &Value, keys: &[&str]) {
    for key in keys {
        assert!(!one[*key].is_null(), "{key} is missing: {one}");
    }
}

/// Without what differs from one moment to the next.
fn timeless(mut value: Value) -> Value {
    let each = match &mut value {
        Value::Array(all) => all.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for one in each {
        one.as_object_mut().map(|one| one.remove("time"));
    }
    value
}

fn or(value: Value, otherwise: &str) -> Value {
    if value.is_null() {
        json!(otherwise)
    } else {
        value
    }
}
