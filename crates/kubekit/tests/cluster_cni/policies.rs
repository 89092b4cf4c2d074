//! NetworkPolicies are nobody's yet, and that is said where people look.

use crate::common;
use crate::stage;
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Cluster, Kube, Object};
use serde_json::{Value, json};

#[test]
fn a_policy_that_nobody_enforces_is_said_aloud() {
    stage!("policies" => Need::Kinds, kube, namespace, _nodes);
    let ns = namespace.name();
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "nobody", "namespace": ns},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    });
    common::apply(kube, &[policy]);
    let object = Object::new("networking.k8s.io/v1", "NetworkPolicy", ns, "nobody");
    common::event(
        kube,
        &object,
        "NotEnforced",
        &["does not enforce", "no effect"],
    );
    let status = Object::new("v1", "ConfigMap", "plexus-system", "plexus-status");
    let output_of = |seen: &Value| condition(seen, "True", "no effect");
    kube.wait_for(&status, TIMEOUT, &output_of)
        .expect("a condition");
    common::holds("the metric", TIMEOUT, || counted(kube) >= 1.0);

    common::gone(kube, &[&object]);
    let others = kube
        .list("networking.k8s.io/v1", "NetworkPolicy", "")
        .expect("listed");
    if others.is_empty() {
        let taken_back = |seen: &Value| condition(seen, "False", "");
        kube.wait_for(&status, TIMEOUT, &taken_back)
            .expect("taken back");
    }
}

fn condition(map: &Value, status: &str, words: &str) -> bool {
    let text = map["data"]["conditions"].as_str().unwrap_or_default();
    let conditions: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    conditions.iter().any(|one| {
        one["type"] == "NetworkPolicyNotEnforced"
            && one["status"] == status
            && one["message"]
                .as_str()
                .is_some_and(|text| text.contains(words))
    })
}

/// What the acting controller counts; it listens on its node's loopback.
fn counted(kube: &Kube) -> f64 {
    let nodes = kube.nodes().expect("nodes");
    let each = nodes.iter().filter_map(|node| {
        let seen = kube.on_node(
            node,
            &["curl", "-sf", "-m", "3", "http://127.0.0.1:9092/metrics"],
        );
        let text = seen.ok()?.text().ok()?;
        let mut lines = text.lines();
        lines.find_map(|line| {
            line.strip_prefix("plexus_networkpolicies_not_enforced ")?
                .parse()
                .ok()
        })
    });
    each.fold(0.0, f64::max)
}
