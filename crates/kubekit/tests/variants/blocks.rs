//! kube-proxy in iptables mode, nodes without podCIDRs: pods get addresses of blocks that Plexus
//! claims, and reach everything all the same.

use crate::audit::Audit;
use crate::common;
use crate::own_lab::OwnLab;
use crate::web::{
    HttpClient, Server, answer, node_ips, pod, pod_ips, service, service_ips, wait_silent,
};
use plexus_kubekit::layout::{CONTROL_PLANE_V4, CONTROL_PLANE_V6, OUTSIDE_V4, OUTSIDE_V6};
use plexus_kubekit::spec::{PodCidrs, ProxyMode};
use plexus_kubekit::{Cluster, Kube, Namespace, Object};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const PORT: u16 = 18_383;

#[test]
fn with_iptables_and_claimed_blocks_pods_reach_what_they_must() {
    let audit = Audit::new();
    let lab = OwnLab::up("blk", |spec| {
        spec.proxy = ProxyMode::Iptables;
        spec.pod_cidrs = PodCidrs::None;
        spec.edits = vec![(
            "--own-cidrs=node".to_owned(),
            "--own-cidrs=blocks".to_owned(),
        )];
        spec.api_flags = audit.flags();
    });
    let kube = &lab.kube;
    let (namespace, nodes) = lab.stage("blocks");
    let ns = namespace.name();
    let mut first = pod(ns, "a", &nodes[0], &[]);
    first["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": PORT}]);
    common::apply(
        kube,
        &[
            first,
            pod(ns, "b", &nodes[1], &[]),
            service(ns, "of-a", "a", "ClusterIP"),
            service(ns, "of-b", "b", "ClusterIP"),
        ],
    );
    let (a, b) = (namespace.pod("a"), namespace.pod("b"));
    common::ready(kube, &[&a, &b]);
    assert_addresses_are_of_own_blocks(kube, &[&a, &b]);
    assert_services(kube, &namespace, &a, &b);
    assert_ways_out(kube, &nodes[0], &a);

    let node = node_ips(kube, &nodes[0]);
    for (address, outside) in node.iter().zip([CONTROL_PLANE_V4, CONTROL_PLANE_V6]) {
        let seen = answer(kube, HttpClient::Outside, address, PORT);
        assert_eq!((seen.name.as_str(), seen.source.as_str()), ("a", outside));
    }
    common::gone(kube, &[&a]);
    wait_silent(kube, HttpClient::Outside, &node[0], PORT);
    audit.assert_agents_watch_their_own_pods(&nodes);
}

/// No podCIDRs, a Network that the controller made, and a block of it for each family and node.
fn assert_addresses_are_of_own_blocks(kube: &Kube, pods: &[&Object]) {
    let network = common::network_object("plexus-system", "cluster-default");
    let network = kube
        .get(&network)
        .expect("asked")
        .expect("the controller made it");
    let uid = &network["metadata"]["uid"];
    let mut owners = BTreeSet::new();
    let blocks = kube
        .list("plexus.dev/v1alpha1", "Block", "")
        .expect("listed");
    for pod in pods {
        let node = kube.node_of(pod).expect("a node");
        let object = Object::new("v1", "Node", "", &node);
        let seen = kube.get(&object).expect("asked").expect("is there");
        assert!(seen["spec"]["podCIDRs"].is_null(), "{seen}");
        let ips = pod_ips(kube, pod);
        assert_eq!(ips.len(), 2, "{ips:?}");
        for ip in ips {
            let ip: std::net::IpAddr = ip.parse().expect("an address");
            let of = |block: &&Value| {
                let cidr = block["spec"]["cidr"]
                    .as_str()
                    .and_then(|cidr| cidr.parse().ok());
                cidr.is_some_and(|cidr: ipnet::IpNet| cidr.contains(&ip))
            };
            let block = blocks.iter().find(of).expect("a block");
            assert_eq!(&block["spec"]["network"]["uid"], uid);
            assert_eq!(block["spec"]["node"], node.as_str());
            owners.insert(block["spec"]["cidr"].to_string());
        }
    }
    assert_eq!(owners.len(), 4, "one a node and family: {owners:?}");
}

fn assert_services(kube: &Kube, namespace: &Namespace<'_>, a: &Object, b: &Object) {
    let ns = namespace.name();
    let (of_a, of_b) = (service_ips(kube, ns, "of-a"), service_ips(kube, ns, "of-b"));
    let (ips_a, ips_b) = (pod_ips(kube, a), pod_ips(kube, b));
    for family in [0, 1] {
        let seen = answer(kube, HttpClient::Pod(a), &of_b[family], 8000);
        assert_eq!((seen.name.as_str(), &seen.source), ("b", &ips_a[family]));
        // To oneself, and across nodes without a Service: nobody is hidden there.
        let seen = answer(kube, HttpClient::Pod(a), &of_a[family], 8000);
        assert_eq!(seen.name, "a");
        let seen = answer(kube, HttpClient::Pod(b), &ips_a[family], 80);
        assert_eq!((seen.name.as_str(), &seen.source), ("a", &ips_b[family]));
    }
}

fn assert_ways_out(kube: &Kube, node: &str, pod: &Object) {
    let _server = Server::start(kube, None, PORT);
    for (address, own) in [OUTSIDE_V4, OUTSIDE_V6].iter().zip(node_ips(kube, node)) {
        assert_eq!(
            answer(kube, HttpClient::Pod(pod), address, PORT).source,
            own
        );
    }
}
