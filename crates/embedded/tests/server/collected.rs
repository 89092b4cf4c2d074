//! Namespaces that end, and owners that are gone, also while the server was.

use crate::common::{MAPS, TestServer, map, until};
use plexus_embedded::Server;
use serde_json::{Value, json};

const NAMESPACES: &str = "/api/v1/namespaces";

fn namespace(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[test]
fn a_namespace_takes_everything_along_and_takes_nothing_new() {
    let test = TestServer::new("namespace");
    let _server = test.start();
    let mut client = test.client();
    client.post(NAMESPACES, &namespace("team")).ok();
    let maps = format!("{NAMESPACES}/team/configmaps");
    for count in 0..30 {
        client.post(&maps, &map(&format!("m-{count}"), "1")).ok();
    }
    let mut held = map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    client.post(&maps, &held).ok();
    let networks = "/apis/plexus.dev/v1alpha1/namespaces/team/networks";
    client
        .post(networks, &json!({"metadata": {"name": "n"}, "spec": {}}))
        .ok();
    let dying = client.delete(&format!("{NAMESPACES}/team")).ok();
    assert_eq!(dying["status"]["phase"], "Terminating");
    let refused = client.post(&maps, &map("new", "1"));
    assert_eq!(
        refused.body["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    refused.refused(403);
    until("only what is held is left", || {
        let left = client.get(&maps).ok();
        let networks = client.get(networks).ok();
        let left = left["items"].as_array().unwrap().len();
        (left == 1 && networks["items"].as_array().unwrap().is_empty()).then_some(())
    });
    client.get(&format!("{NAMESPACES}/team")).ok();
    let none = json!({"metadata": {"finalizers": null}});
    client.merge(&format!("{maps}/held"), &none).ok();
    until("the namespace is gone", || {
        (client.get(&format!("{NAMESPACES}/team")).code == 404).then_some(())
    });
    client.post(NAMESPACES, &namespace("team")).ok();
    client.post(&maps, &map("new", "1")).ok();
}

/// Of those with finalizers no end is heard of that would make the collector look again.
#[test]
fn a_namespace_full_of_what_is_held_ends_in_one_go() {
    const HELD: usize = 3600;
    let test = TestServer::new("held");
    let _server = test.start();
    let mut client = test.client();
    client.post(NAMESPACES, &namespace("team")).ok();
    let maps = format!("{NAMESPACES}/team/configmaps");
    for count in 0..HELD {
        let mut held = map(&format!("m-{count}"), "1");
        held["metadata"]["finalizers"] = json!(["example.com/x"]);
        client.post(&maps, &held).ok();
    }
    client.delete(&format!("{NAMESPACES}/team")).ok();
    until("all are being deleted", || {
        let all = client.get(&maps).ok();
        let all = all["items"].as_array().unwrap();
        let dying = |held: &&Value| held["metadata"]["deletionTimestamp"].is_string();
        (all.iter().filter(dying).count() == HELD).then_some(())
    });
}

#[test]
fn some_namespaces_stay() {
    let test = TestServer::new("stay");
    let mut options = test.options();
    options.namespaces = vec!["needed".to_owned()];
    let _server = Server::start(options).unwrap();
    let mut client = test.client();
    for name in ["default", "kube-system", "kube-public", "needed"] {
        let message = client.delete(&format!("{NAMESPACES}/{name}")).refused(403);
        assert!(message.contains("may not be deleted"), "{message}");
    }
}

#[test]
fn what_was_left_undone_is_done_after_a_restart() {
    let test = TestServer::new("undone");
    let server = test.start();
    let mut client = test.client();
    client.post(NAMESPACES, &namespace("team")).ok();
    let maps = format!("{NAMESPACES}/team/configmaps");
    let mut held = map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    client.post(&maps, &held).ok();
    client.delete(&format!("{NAMESPACES}/team")).ok();
    let owner = client.post(MAPS, &map("owner", "1")).ok();
    let mut child = map("child", "1");
    child["metadata"]["finalizers"] = json!(["example.com/x"]);
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    client.post(MAPS, &child).ok();
    let foreground = json!({"propagationPolicy": "Foreground"});
    let path = format!("{MAPS}/owner");
    client
        .send("DELETE", &path, "application/json", Some(&foreground))
        .unwrap()
        .ok();
    server.stop();

    let _server = test.start();
    let mut client = test.client();
    let none = json!({"metadata": {"finalizers": null}});
    client.merge(&format!("{maps}/held"), &none).ok();
    until("the child is being deleted", || {
        let child = client.get(&format!("{MAPS}/child")).ok();
        child["metadata"]["deletionTimestamp"]
            .is_string()
            .then_some(())
    });
    client.merge(&format!("{MAPS}/child"), &none).ok();
    for path in [
        format!("{NAMESPACES}/team"),
        format!("{MAPS}/owner"),
        format!("{MAPS}/child"),
    ] {
        until(&format!("{path} is gone"), || {
            (client.get(&path).code == 404).then_some(())
        });
    }
}

#[test]
fn owners_of_kinds_that_nobody_knows_are_left_alone() {
    let test = TestServer::new("foreign");
    let _server = test.start();
    let mut client = test.client();
    let uid = "5b0c2b54-0000-4000-8000-000000000009";
    let mut child = map("child", "1");
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid}]);
    client.post(MAPS, &child).ok();
    let mut orphan = map("orphan", "1");
    orphan["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "r", "uid": uid}]);
    client.post(MAPS, &orphan).ok();
    until("the other one is gone", || {
        (client.get(&format!("{MAPS}/orphan")).code == 404).then_some(())
    });
    client.get(&format!("{MAPS}/child")).ok();
}
