//! The annotation `network-status`: what it says is what the pod has, it has one writer, and nobody
//! loses an annotation because of it.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;

use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Namespace, Object, test_cluster};
use serde_json::{Value, json};

const STATUS: &str = "k8s.v1.cni.cncf.io/network-status";
const EDITS: usize = 50;

#[test]
fn network_status_says_what_the_pod_has_and_survives_others() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "status").expect("a namespace");
    let nodes = kube.nodes().expect("nodes");
    let ns = namespace.name();
    let blue =
        json!({"subnets": {"v4": {"cidr": "10.57.1.0/24"}, "v6": {"cidr": "fd00:57:1::/64"}}});
    let bridge = r#"{"cniVersion":"1.0.0","type":"bridge","bridge":"stat0","mtu":1400,"capabilities":{"mac":true},"ipam":{"type":"host-local",
        "subnet":"10.57.2.0/24","gateway":"10.57.2.9"},"dns":{"nameservers":["10.57.2.53"],"search":["a.b"]}}"#;
    common::apply(
        kube,
        &[
            common::network(ns, "blue", blue),
            common::nad(ns, "wire", &[], bridge),
        ],
    );
    let active = |seen: &Value| seen["status"]["phase"] == "Active";
    kube.wait_for(&common::network_object(ns, "blue"), TIMEOUT, &active)
        .expect("active");
    let asked = r#"[{"name": "wire", "interface": "wire0", "mac": "02:00:00:57:00:01"}]"#;
    let asked = [
        (common::NETWORKS, asked),
        (common::PLEXUS, "blue"),
        ("a.b/c", "kept"),
    ];
    common::apply(kube, &[common::pod(ns, "p", &nodes[0], &asked)]);
    let pod = namespace.pod("p");
    // While its interfaces are made and written down, others write.
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let pod = &pod;
            scope.spawn(move || {
                for number in (worker..EDITS).step_by(2) {
                    let key = format!("edit.example/{number}");
                    let patch = json!({"metadata": {"annotations": {key: number.to_string()}}});
                    kube.api().merge(pod, &patch).expect("patched");
                }
            });
        }
    });
    common::ready(kube, &[&pod]);
    let seen = kube.wait_for(&pod, TIMEOUT, &|pod| {
        pod["metadata"]["annotations"][STATUS].is_string()
    });
    let seen = seen.expect("network-status");
    let annotations = &seen["metadata"]["annotations"];
    for number in 0..EDITS {
        assert_eq!(
            annotations[format!("edit.example/{number}")],
            number.to_string()
        );
    }
    for (key, value) in asked {
        assert_eq!(annotations[key], value);
    }
    one_writer(kube, &pod);
    let text = annotations[STATUS].as_str().expect("a text");
    let output_of: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(output_of, expected(kube, &pod), "{output_of:#}");
    let dns = &output_of[1]["dns"];
    assert_eq!(
        dns,
        &json!({"nameservers": ["10.57.2.53"], "search": ["a.b"]}),
        "{output_of:#}"
    );
}

/// What it must say, by the kernel and by what was asked.
fn expected(kube: &dyn Cluster, pod: &Object) -> Value {
    let record = common::attachments(kube, pod);
    let text = common::output_of(kube, pod, "ip -j address");
    let links: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let ns = &pod.namespace;
    let named = [
        ("cluster-default".to_owned(), "eth0", json!({})),
        (
            format!("{ns}/wire"),
            "wire0",
            json!({"nameservers": ["10.57.2.53"], "search": ["a.b"]}),
        ),
        (format!("{ns}/blue"), "net2", json!({})),
    ];
    let each = named.iter().enumerate().map(|(index, (name, interface, dns))| {
        let link = links.iter().find(|link| link["ifname"] == *interface).expect("the interface");
        let addresses = link["addr_info"].as_array().into_iter().flatten();
        let global = addresses.filter(|address| address["scope"] == "global");
        let mut ips: Vec<&Value> = global.map(|address| &address["local"]).collect();
        ips.sort_by_key(|ip| ip.as_str().is_some_and(|ip| ip.contains(':')));
        json!({
            "name": name, "interface": interface, "ips": ips, "mac": link["address"],
            "mtu": link["mtu"], "default": index == 0, "gateway": record[index]["gateways"], "dns": dns,
        })
    });
    each.collect()
}

/// The API server keeps who wrote what: nobody but the agent wrote it, and it wrote nothing else.
fn one_writer(kube: &dyn Cluster, pod: &Object) {
    let arguments = [
        "get",
        "pod",
        "-n",
        &pod.namespace,
        &pod.name,
        "-o",
        "json",
        "--show-managed-fields",
    ];
    let text = kube
        .kubectl(&arguments, "")
        .expect("it runs")
        .text()
        .expect("it is there");
    let seen: Value = serde_json::from_str(&text).expect("JSON");
    let managers = seen["metadata"]["managedFields"]
        .as_array()
        .expect("managers");
    let writes = |entry: &&Value| {
        let of = &entry["fieldsV1"]["f:metadata"]["f:annotations"];
        !of[format!("f:{STATUS}")].is_null()
    };
    let writers: Vec<&Value> = managers.iter().filter(writes).collect();
    assert_eq!(writers.len(), 1, "{managers:?}");
    assert_eq!(writers[0]["manager"], "plexus-agent");
    let fields = &writers[0]["fieldsV1"];
    assert_eq!(
        fields["f:metadata"].as_object().map(serde_json::Map::len),
        Some(1),
        "{fields}"
    );
    let annotations = fields["f:metadata"]["f:annotations"]
        .as_object()
        .expect("annotations");
    let others = annotations
        .keys()
        .filter(|key| *key != "." && **key != format!("f:{STATUS}"));
    assert_eq!(others.count(), 0, "{fields}");
    assert_eq!(
        fields.as_object().map(serde_json::Map::len),
        Some(1),
        "{fields}"
    );
}
