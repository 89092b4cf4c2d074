//! Pods end as on Kubernetes: one that is on a node when its node says so.

use crate::common::{TestServer, version};
use plexus_embedded::Server;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str, node: Option<&str>) -> Value {
    let mut pod = json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    pod
}

#[test]
fn one_that_is_on_a_node_waits_for_its_node() {
    let test = TestServer::new("grace");
    let _server = test.start();
    let mut client = test.client();
    let made = client.post(PODS, &pod("a", Some("n1"))).ok();
    let path = format!("{PODS}/a");
    let dying = client.delete(&path).ok();
    assert_eq!(dying["kind"], "Pod");
    assert_eq!(dying["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(dying["metadata"]["deletionTimestamp"].is_string());
    assert!(version(&dying) > version(&made));
    let again = client.delete(&path).ok();
    assert_eq!(
        version(&again),
        version(&dying),
        "the second time changes nothing"
    );
    let options = json!({"gracePeriodSeconds": 5});
    let sooner = client
        .send("DELETE", &path, "application/json", Some(&options))
        .unwrap()
        .ok();
    assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], 5);
    let now = json!({"gracePeriodSeconds": 0});
    client
        .send("DELETE", &path, "application/json", Some(&now))
        .unwrap()
        .ok();
    client.get(&path).refused(404);
}

#[test]
fn one_that_nobody_runs_goes_at_once() {
    let test = TestServer::new("at-once");
    let _server = test.start();
    let mut client = test.client();
    client.post(PODS, &pod("a", None)).ok();
    assert_eq!(client.delete(&format!("{PODS}/a")).ok()["kind"], "Pod");
    client.get(&format!("{PODS}/a")).refused(404);
    client.post(PODS, &pod("b", Some("n1"))).ok();
    let done = json!({"status": {"phase": "Succeeded"}});
    client.merge(&format!("{PODS}/b/status"), &done).ok();
    client.delete(&format!("{PODS}/b")).ok();
    client.get(&format!("{PODS}/b")).refused(404);
}

#[test]
fn nobody_waits_if_the_server_is_told_so() {
    let test = TestServer::new("no-wait");
    let mut options = test.options();
    options.pods_wait = false;
    let _server = Server::start(options).unwrap();
    let mut client = test.client();
    client.post(PODS, &pod("a", Some("n1"))).ok();
    client.delete(&format!("{PODS}/a")).ok();
    client.get(&format!("{PODS}/a")).refused(404);
}

#[test]
fn the_networks_of_seed_004_are_taken_as_written() {
    let test = TestServer::new("networks");
    let _server = test.start();
    let mut client = test.client();
    let mut written = pod("a", None);
    written["spec"]["networks"] = json!(["net1"]);
    let path = format!("{PODS}?fieldValidation=Strict");
    let made = client.post(&path, &written).ok();
    assert_eq!(made["spec"]["networks"], json!(["net1"]));
}
