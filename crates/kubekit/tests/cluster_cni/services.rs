//! Services through kube-proxy, both families: from another node, from the same node, from a pod to
//! itself, from a node, and from outside by a node port.

use crate::common;
use crate::stage;
use crate::web::{HttpClient, answer, node_ips, pod, pod_ips, service, service_ips};
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Cluster, Object};

#[test]
fn services_are_reached_from_everywhere_by_both_families() {
    stage!("services" => Need::Services, kube, namespace, nodes);
    let ns = namespace.name();
    common::apply(
        kube,
        &[
            pod(ns, "a", &nodes[0], &[]),
            pod(ns, "b", &nodes[1], &[]),
            service(ns, "of-a", "a", "ClusterIP"),
            service(ns, "of-b", "b", "NodePort"),
        ],
    );
    let (a, b) = (namespace.pod("a"), namespace.pod("b"));
    common::ready(kube, &[&a, &b]);
    let (of_a, of_b) = (service_ips(kube, ns, "of-a"), service_ips(kube, ns, "of-b"));
    let (ips_a, ips_b) = (pod_ips(kube, &a), pod_ips(kube, &b));
    let object = Object::new("v1", "Service", ns, "of-b");
    let seen = kube.get(&object).expect("asked").expect("is there");
    let node_port = seen["spec"]["ports"][0]["nodePort"].as_u64();
    let node_port = u16::try_from(node_port.expect("a port")).expect("a port");

    for family in [0, 1] {
        // Across nodes: nobody hides who asks.
        let seen = answer(kube, HttpClient::Pod(&a), &of_b[family], 8000);
        assert_eq!(
            (seen.name, seen.source),
            ("b".into(), ips_a[family].clone())
        );
        let seen = answer(kube, HttpClient::Pod(&b), &of_a[family], 8000);
        assert_eq!(
            (seen.name, seen.source),
            ("a".into(), ips_b[family].clone())
        );
        // To oneself: kube-proxy hides the pod from itself, else it would not answer through it.
        for (own, address) in [(&a, &of_a), (&b, &of_b)] {
            let seen = answer(kube, HttpClient::Pod(own), &address[family], 8000);
            assert_eq!(seen.name, own.name);
        }
        for node in &nodes {
            for (name, address) in [("a", &of_a), ("b", &of_b)] {
                let seen = answer(kube, HttpClient::Node(node), &address[family], 8000);
                assert_eq!(seen.name, name, "from {node}");
            }
        }
    }
    // kube-proxy opens node ports on the primary addresses, of the node with the pod and of the other.
    for node in &nodes {
        for address in node_ips(kube, node) {
            assert_eq!(
                answer(kube, HttpClient::Outside, &address, node_port).name,
                "b"
            );
        }
    }
}
