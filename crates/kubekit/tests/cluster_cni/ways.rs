//! Where packets of a pod's first interface go, and from whom they seem to come when they arrive.

use crate::common;
use crate::stage;
use crate::web::{Answer, HttpClient, Server, answer, node_ips, pod, pod_ips};
use plexus_kubekit::layout::{OUTSIDE_V4, OUTSIDE_V6};
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Cluster, Kube, Object, test_cluster};
use serde_json::{Value, json};

const PORT: u16 = 18_181;

#[test]
fn pods_see_each_other_as_they_are_and_the_outside_sees_the_node() {
    stage!("ways" => kube, namespace, nodes);
    let ns = namespace.name();
    let (one, two) = (&nodes[0], &nodes[1]);
    common::apply(
        kube,
        &[
            pod(ns, "a", one, &[]),
            pod(ns, "b", two, &[]),
            pod(ns, "c", one, &[]),
        ],
    );
    let [a, b, c] = ["a", "b", "c"].map(|name| namespace.pod(name));
    common::ready(kube, &[&a, &b, &c]);
    both_families_are_on_eth0(kube, &a);
    let ips = pod_ips(kube, &a);
    for (to, name) in [(&b, "b"), (&c, "c")] {
        for (address, own) in pod_ips(kube, to).iter().zip(&ips) {
            let seen = answer(kube, HttpClient::Pod(&a), address, 80);
            assert_eq!(seen, answer_of(name, own), "not masqueraded to {address}");
        }
    }
    // Nodes reach pods, their own and others'.
    for node in &nodes {
        for address in &ips {
            assert_eq!(answer(kube, HttpClient::Node(node), address, 80).name, "a");
        }
    }

    let _servers = [
        Server::start(kube, None, PORT),
        Server::start(kube, Some(one), PORT),
        Server::start(kube, Some(two), PORT),
    ];
    let own = node_ips(kube, one);
    for outside in [[OUTSIDE_V4, OUTSIDE_V6], kube.outside_addresses()] {
        for (address, node) in outside.iter().zip(&own) {
            let seen = answer(kube, HttpClient::Pod(&a), address, PORT);
            assert_eq!(&seen.source, node, "masqueraded to {address}");
        }
    }
    for (address, node) in node_ips(kube, two).iter().zip(&own) {
        let seen = answer(kube, HttpClient::Pod(&a), address, PORT);
        assert_eq!((&seen.name, &seen.source), (two, node));
    }
    for address in &own {
        assert_eq!(&answer(kube, HttpClient::Pod(&a), address, PORT).name, one);
    }
    if let Some(kube) = test_cluster::kubernetes(Need::Services).expect("a lab") {
        assert_reaches_api_server(kube, &a);
    }
}

#[test]
fn pods_of_the_host_network_are_left_alone() {
    stage!("hostnet" => kube, namespace, nodes);
    let ns = namespace.name();
    // It would fail if anybody looked for the network.
    let mut host = common::pod(ns, "host", &nodes[0], &[(common::NETWORKS, "not-there")]);
    host["spec"]["hostNetwork"] = json!(true);
    host["spec"]["containers"][0]["command"] = json!(["sleep", "3600"]);
    common::apply(kube, &[host, pod(ns, "other", &nodes[0], &[])]);
    let (host, other) = (namespace.pod("host"), namespace.pod("other"));
    common::ready(kube, &[&host, &other]);
    assert_eq!(pod_ips(kube, &host), node_ips(kube, &nodes[0]));
    // The other's record is written, so this one's would be too.
    common::attachments(kube, &other);
    let records = kube.list("plexus.dev/v1alpha1", "PodAttachments", ns);
    let records = records.expect("listed");
    let of: Vec<&Value> = records
        .iter()
        .map(|one| &one["spec"]["pod"]["name"])
        .collect();
    assert_eq!(of, ["other"]);
    let seen = kube.get(&host).expect("asked").expect("is there");
    let status = &seen["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"];
    assert!(status.is_null(), "{status}");
    assert_eq!(
        common::messages(kube, &host)
            .iter()
            .filter(|(why, _)| why == "FailedAttach")
            .count(),
        0
    );
}

fn answer_of(name: &str, source: &str) -> Answer {
    Answer {
        name: name.to_owned(),
        source: source.to_owned(),
    }
}

/// What the API says, what the record says and what the kernel has are the same.
fn both_families_are_on_eth0(kube: &dyn Cluster, pod: &Object) {
    let ips = pod_ips(kube, pod);
    assert_eq!(ips.len(), 2, "{ips:?}");
    for (v6, ip) in [(false, &ips[0]), (true, &ips[1])] {
        assert_eq!(&common::address(kube, pod, "eth0", v6), ip);
    }
    let text = common::output_of(kube, pod, "ip -j address show eth0 scope global");
    let links: Value = serde_json::from_str(&text).expect("JSON");
    let has = links[0]["addr_info"].as_array().expect("addresses");
    let mut has: Vec<&str> = has.iter().filter_map(|one| one["local"].as_str()).collect();
    has.sort_by_key(|ip| ip.contains(':'));
    assert_eq!(has, ips);
}

/// As programs in pods do: the Service's address, the pod's own token, the server's certificate.
fn assert_reaches_api_server(kube: &Kube, pod: &Object) {
    let dir = "/var/run/secrets/kubernetes.io/serviceaccount";
    let token = kube
        .exec(pod, &["cat", &format!("{dir}/token")])
        .expect("it runs");
    let token = token.text().expect("a token");
    let authority = kube.lab().layout().pki().join("ca.crt");
    let script = format!(
        "curl -s -m 10 --cacert {} -H 'Authorization: Bearer {}' https://10.96.0.1/apis/authentication.k8s.io/v1/selfsubjectreviews \
         -H 'Content-Type: application/json' -d '{{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}}'",
        authority.display(),
        token.trim()
    );
    let text = common::output_of(kube, pod, &script);
    let expected = format!("system:serviceaccount:{}:default", pod.namespace);
    assert!(text.contains(&expected), "{text}");
}
