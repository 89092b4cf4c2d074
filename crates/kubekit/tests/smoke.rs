//! The lab itself works, whoever connects the pods: they get ready on every node, programs run in
//! them, a Service answers, and so does the API server.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Kube, Namespace, Object};
use serde_json::Value;

#[test]
fn pods_on_every_node_reach_a_service_and_the_api_server() {
    let kube = Kube::shared().expect("a lab");
    let namespace = Namespace::create(kube, "smoke").expect("a namespace");
    let nodes = kube.nodes().expect("nodes");
    kube.apply(&manifest(namespace.name(), &nodes))
        .expect("applied");
    let pods: Vec<Object> = nodes.iter().map(|node| namespace.pod(node)).collect();
    for pod in &pods {
        kube.wait_ready(pod, TIMEOUT).expect("ready");
    }

    for (pod, node) in pods.iter().zip(&nodes) {
        let name = kube
            .exec(pod, &["hostname"])
            .expect("runs")
            .text()
            .expect("succeeds");
        assert_eq!(name.trim(), node);
        let name = kube
            .kubectl_exec(pod, &["hostname"])
            .expect("runs")
            .text()
            .expect("succeeds");
        assert_eq!(name.trim(), node);
        let links = kube
            .in_netns(pod, &["ip", "-br", "link"])
            .expect("runs")
            .text()
            .expect("succeeds");
        assert!(links.contains("eth0"), "{links}");
    }
    let refused = kube.exec(&pods[0], &["false"]).expect("runs");
    assert_ne!(refused.status, 0);

    let service = kube
        .get(&Object::new("v1", "Service", namespace.name(), "web"))
        .expect("asked")
        .expect("is there");
    let addresses = service
        .pointer("/spec/clusterIPs")
        .and_then(Value::as_array)
        .expect("addresses");
    assert_eq!(addresses.len(), 2, "{service}");
    for pod in &pods {
        for address in addresses.iter().filter_map(Value::as_str) {
            assert_answers(kube, pod, address);
        }
        // Plain HTTP to the API server's port is answered, with a complaint.
        let text = fetched(kube, pod, "10.96.0.1", "443");
        assert!(text.contains("400"), "{text}");
    }
}

fn assert_answers(kube: &Kube, pod: &Object, address: &str) {
    // The rules of a new Service come a moment after its pods.
    let answered = plexus_kubekit::wait::until(&format!("{address} from {pod}"), TIMEOUT, || {
        Ok(fetched(kube, pod, address, "80")
            .contains("hello")
            .then_some(()))
    });
    answered.expect("answers");
}

fn fetched(kube: &Kube, pod: &Object, address: &str, port: &str) -> String {
    let script = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {address} {port}");
    let output = kube.exec(pod, &["sh", "-c", &script]).expect("runs");
    output.stdout
}

/// A pod on each node, and a Service of those on the last one.
fn manifest(namespace: &str, nodes: &[String]) -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web, namespace: {namespace}}}\n\
         spec:\n  ipFamilyPolicy: RequireDualStack\n  selector: {{web: 'yes'}}\n  ports: [{{port: 80}}]\n"
    );
    for (index, node) in nodes.iter().enumerate() {
        let web = if index + 1 == nodes.len() {
            "yes"
        } else {
            "no"
        };
        text.push_str(&format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {node}, namespace: {namespace}, labels: {{web: '{web}'}}}}\n\
             spec:\n  nodeName: {node}\n  terminationGracePeriodSeconds: 0\n  containers:\n  - name: web\n    \
             image: localhost/busybox:1\n    command: [sh, -c, 'mkdir /www; echo hello >/www/index.html; exec httpd -f -h /www']\n"
        ));
    }
    text
}
