//! In front of another CNI: `bridge` and `host-local` make the first interface, through their own
//! configuration, and Plexus the others.

use crate::common;
use crate::own_lab::OwnLab;
use crate::web::{
    HttpClient, Server, answer, node_ips, pod, pod_ips, service, service_ips, wait_silent,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::layout::OUTSIDE_V4;
use plexus_kubekit::spec::Cni;
use plexus_kubekit::{Cluster, Kube, Object};
use serde_json::{Value, json};

const PORT: u16 = 18_484;

#[test]
fn another_cni_makes_the_first_interface_and_plexus_the_others() {
    let mut manifest = None;
    // Up with that CNI alone, as a cluster to which Plexus comes later.
    let lab = OwnLab::up("del", |spec| {
        spec.cni = Cni::Bridge;
        manifest = spec.manifest.take();
    });
    let kube = &lab.kube;
    let text = std::fs::read_to_string(manifest.expect("a manifest")).expect("read");
    assert!(text.contains("--cluster-network=own"));
    kube.apply(&text.replace("--cluster-network=own", "--cluster-network=delegate"))
        .expect("applied");
    for (kind, name) in [
        ("DaemonSet", "plexus-agent"),
        ("Deployment", "plexus-controller"),
    ] {
        let object = Object::new("apps/v1", kind, "plexus-system", name);
        kube.wait_rolled_out(&object).expect("rolled out");
    }

    let (namespace, nodes) = lab.stage("delegate");
    let ns = namespace.name();
    let blue = json!({"subnets": {"v4": {"cidr": "10.60.1.0/24"}}});
    common::apply(kube, &[common::network(ns, "blue", blue)]);
    let active = |seen: &Value| seen["status"]["phase"] == "Active";
    let network = common::network_object(ns, "blue");
    kube.wait_for(&network, TIMEOUT, &active).expect("active");
    let asked = [(common::PLEXUS, "blue")];
    let mut first = pod(ns, "a", &nodes[0], &asked);
    first["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": PORT}]);
    let second = pod(ns, "b", &nodes[1], &asked);
    common::apply(
        kube,
        &[first, second, service(ns, "of-b", "b", "ClusterIP")],
    );
    let (a, b) = (namespace.pod("a"), namespace.pod("b"));
    common::ready(kube, &[&a, &b]);

    first_is_the_others(kube, &a, &nodes[0]);
    for address in service_ips(kube, ns, "of-b") {
        assert_eq!(answer(kube, HttpClient::Pod(&a), &address, 8000).name, "b");
    }
    let far = common::address(kube, &b, "net1", false);
    let seen = answer(kube, HttpClient::Pod(&a), &far, 80);
    assert_eq!(
        (seen.name.as_str(), seen.source),
        ("b", common::address(kube, &a, "net1", false))
    );
    let own = node_ips(kube, &nodes[0]);
    assert_eq!(answer(kube, HttpClient::Outside, &own[0], PORT).name, "a");
    {
        let _server = Server::start(kube, None, PORT);
        assert_eq!(
            answer(kube, HttpClient::Pod(&a), OUTSIDE_V4, PORT).source,
            own[0]
        );
    }

    let held = pod_ips(kube, &a);
    common::gone(kube, &[&a]);
    common::holds("its addresses are free", TIMEOUT, || {
        held.iter().all(|ip| !is_held(kube, &nodes[0], ip))
    });
    wait_silent(kube, HttpClient::Outside, &own[0], PORT);
}

/// A port of that CNI's bridge, an address of its pool, and first in the pod's record and status.
fn first_is_the_others(kube: &Kube, pod: &Object, node: &str) {
    let names = common::interfaces(kube, pod);
    let names: Vec<&str> = names
        .iter()
        .map(|(interface, _)| interface.as_str())
        .collect();
    assert_eq!(names, ["eth0", "net1"]);
    let ips = pod_ips(kube, pod);
    assert_eq!(ips.len(), 2);
    for ip in &ips {
        assert!(is_held(kube, node, ip), "host-local has {ip}");
    }
    let link = common::output_of(kube, pod, "ip -j link show eth0");
    let link: Value = serde_json::from_str(&link).expect("JSON");
    let bridged = kube
        .on_node(node, &["ip", "-j", "link", "show", "master", "cni0"])
        .expect("runs");
    let bridged: Vec<Value> =
        serde_json::from_str(&bridged.text().expect("a bridge")).expect("JSON");
    assert!(
        bridged
            .iter()
            .any(|port| port["ifindex"] == link[0]["link_index"]),
        "{bridged:?}"
    );
    let status = "k8s.v1.cni.cncf.io/network-status";
    let seen = kube.wait_for(pod, TIMEOUT, &|pod| {
        pod["metadata"]["annotations"][status].is_string()
    });
    let seen = seen.expect("network-status");
    let output_of = seen["metadata"]["annotations"][status]
        .as_str()
        .unwrap_or_default();
    let output_of: Value = serde_json::from_str(output_of).expect("JSON");
    assert_eq!(output_of[0]["default"], true, "{output_of}");
    assert_eq!(output_of[0]["interface"], "eth0");
    assert_eq!(output_of[0]["ips"], json!(ips));
    assert_eq!(output_of[0]["mac"], link[0]["address"]);
    assert_eq!(output_of[1]["name"], format!("{}/blue", pod.namespace));
}

/// Whether `host-local` has a file for the address.
fn is_held(kube: &Kube, node: &str, ip: &str) -> bool {
    let path = format!("/var/lib/cni/networks/bridge/{ip}");
    kube.on_node(node, &["test", "-e", &path])
        .expect("runs")
        .ok()
}
