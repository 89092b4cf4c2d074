//! The API server goes away and comes back.

use super::admin::in_namespace;
use super::relay::Relay;
use super::{TestNode, report, server, until};
use crate::cluster::{ClaimError, ClaimRequest, network_ref};
use ipnet::IpNet;
use plexus_core::resolve::{NetworkObject, Objects};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn claim(node: &TestNode, network: &NetworkObject) -> Result<IpNet, ClaimError> {
    let subnet = plexus_api::cni::BlockSubnet {
        cidr: "10.7.0.0/25".parse().unwrap(),
        gateway: "10.7.0.126".parse().ok(),
        exclude: Vec::new(),
        block_length: Some(26),
    };
    node.cluster.claim(&ClaimRequest {
        network: network_ref(network),
        subnet,
        containing: None,
        have: Vec::new(),
        ask: false,
        until: Instant::now() + Duration::from_secs(60),
    })
}

#[test]
fn an_agent_restarted_without_the_api_serves_from_its_disk() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    let uid = admin.network(
        &team,
        "blue",
        &json!({"subnets": {"a": {"cidr": "10.7.0.0/25"}}}),
    );
    admin.nad(&team, "a", "{}");
    let pod = admin.pod(&team, "web", &n1, json!({"plexus.dev/networks": "blue"}));
    let first = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    until("the pod", || {
        first
            .cluster
            .pod(&team, "web", Some(&pod.uid))
            .unwrap()
            .is_some()
    });
    let TestNode {
        cluster,
        hooks,
        directory,
    } = first;
    std::thread::sleep(Duration::from_millis(1200));
    drop(cluster);
    std::thread::sleep(Duration::from_millis(200));

    let relay = Relay::to(&admin.kubeconfig, &directory);
    relay.cut();
    let start = Instant::now();
    let node = TestNode::again(&relay.kubeconfig, &n1, directory, Arc::clone(&hooks));
    assert!(!node.cluster.synced());
    let node = node.synced();
    assert!(
        start.elapsed() >= Duration::from_secs(3),
        "the API was not waited for"
    );
    assert!(start.elapsed() < Duration::from_secs(6));
    assert!(!node.cluster.is_live());
    let network = node.cluster.network(&team, "blue").unwrap();
    assert_eq!(network.uid, uid);
    assert!(node.cluster.nad(&team, "a").is_some());
    assert!(node.cluster.own_node().is_some());
    let known = node
        .cluster
        .pod(&team, "web", Some(&pod.uid))
        .unwrap()
        .unwrap();
    assert_eq!(known.facts.annotations["plexus.dev/networks"], "blue");
    // What is not known is an error, never "there is none".
    assert!(node.cluster.pod(&team, "nobody", None).is_err());
    assert!(claim(&node, &network).is_err());
    node.cluster
        .attached(report(&pod, "s1", &[(&team, "blue")]));

    // Meanwhile the world changes.
    admin.network(&team, "new", &json!({"provider": "bridge"}));
    admin.delete(&in_namespace(&team, "networks"), "blue");
    relay.mend();
    until("the truth", || {
        node.cluster.is_live()
            && node.cluster.network(&team, "new").is_some()
            && node.cluster.network(&team, "blue").is_none()
    });
    let path = in_namespace(&team, "podattachments");
    until("the record that waited", || {
        admin.get(&path, &pod.uid).is_some()
    });
    // And again, while it runs.
    relay.cut();
    until("that it is noticed", || !node.cluster.is_live());
    assert!(node.cluster.network(&team, "new").is_some() && node.cluster.synced());
    node.cluster.detached(&pod, "s1");
    relay.mend();
    until("that the record is gone", || {
        admin.get(&path, &pod.uid).is_none()
    });
}

#[test]
fn without_a_disk_and_without_the_api_nothing_is_served() {
    let admin = server();
    let n1 = admin.name("n1");
    let directory = std::env::temp_dir().join(format!("plexus-cluster-{n1}"));
    let relay = Relay::to(&admin.kubeconfig, &directory);
    relay.cut();
    let node = TestNode::again(&relay.kubeconfig, &n1, directory, Arc::default());
    assert!(!node.cluster.wait_synced(Duration::from_secs(5)));
}
