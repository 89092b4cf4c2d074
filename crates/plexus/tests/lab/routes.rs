//! Networks that would take traffic of the nodes: whatever is written straight to the API, also a status that says Active
//! and blocks of nodes, no node makes a route of it and no pod starts on it.

use crate::machine::Lab;
use plexus_testkit::send;
use serde_json::{Value, json};
use std::path::Path;

const GROUP: &str = "/apis/plexus.dev/v1alpha1";
const NETWORKS: &str = "/apis/plexus.dev/v1alpha1/namespaces/default/networks";

/// Straight to the server's socket; gives what it made.
#[track_caller]
fn post(lab: &Lab, path: &str, object: &Value) -> Value {
    let socket = lab.file("server.sock");
    let body = object.to_string();
    let answer = send(Path::new(&socket), "POST", path, body.as_bytes());
    let answer = answer.expect("the server answers");
    assert_eq!(answer.status, 201, "{path}: {}", answer.body);
    answer.json()
}

/// A `routed` Network; gives its UID.
fn network(lab: &Lab, name: &str, cidr: &str) -> String {
    let object = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"provider": "routed", "subnets": {"a": {"cidr": cidr}}}});
    let made = post(lab, NETWORKS, &object);
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn block(lab: &Lab, (name, uid): (&str, &str), cidr: &str, hex: &str, node: &str) {
    let length = cidr.rsplit('/').next().unwrap();
    let object = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
        "metadata": {"name": format!("{uid}-{hex}-{length}")},
        "spec": {"network": {"namespace": "default", "name": name, "uid": uid}, "cidr": cidr,
            "node": node, "nodeUID": "nobody"}});
    post(lab, &format!("{GROUP}/blocks"), &object);
}

/// Reason and message of a Network that waits.
fn waits(lab: &Lab, name: &str) -> Option<(String, String)> {
    let status = &lab.get(&["network", name])["status"];
    let conditions = status["conditions"].as_array()?;
    let ready = conditions.iter().find(|one| one["type"] == "Ready")?;
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    (status["phase"] == "Pending").then(|| (text("reason"), text("message")))
}

fn routes(lab: &Lab, node: &str) -> String {
    lab.ok(&[
        "exec", "--node", node, "--", "ip", "route", "show", "table", "all",
    ])
}

#[test]
fn no_network_takes_what_is_not_its_own() {
    let lab = Lab::up('r', 2);
    let public = network(&lab, "public", "8.8.8.0/24");
    // The API server is 10.200.0.254; no node is in there.
    let server = network(&lab, "server", "10.200.0.248/29");
    let fine = network(&lab, "fine", "10.77.0.0/16");
    for (name, reason, words) in [
        ("public", "SubnetNotAllowed", "8.8.8.0/24"),
        ("server", "SubnetConflict", "the API server"),
    ] {
        lab.eventually("the controller keeps it waiting", || {
            waits(&lab, name).is_some_and(|(why, message)| why == reason && message.contains(words))
        });
    }
    // Now nobody says so any more, and whoever can write statuses and blocks does.
    lab.ok(&["kill", "controller", "--hold"]);
    for name in ["public", "server", "fine"] {
        let active = json!({"status": {"phase": "Active", "conditions": []}});
        lab.patch(&format!("{NETWORKS}/{name}/status"), &active);
    }
    block(&lab, ("public", &public), "8.8.8.0/26", "08080800", "n1");
    block(&lab, ("public", &public), "8.8.8.64/26", "08080840", "n2");
    block(
        &lab,
        ("server", &server),
        "10.200.0.248/29",
        "0ac800f8",
        "n2",
    );
    block(&lab, ("fine", &fine), "10.77.0.0/26", "0a4d0000", "n1");
    block(&lab, ("fine", &fine), "10.77.0.64/26", "0a4d0040", "n2");
    // What came last has arrived, and so have the others.
    lab.eventually(
        "the nodes have the routes of the network that is fine",
        || {
            let has = |node: &str, text: &str| routes(&lab, node).contains(text);
            has("n1", "10.77.0.64/26 via 10.200.0.2") && has("n2", "10.77.0.0/26 via 10.200.0.1")
        },
    );
    for node in ["n1", "n2"] {
        let routes = routes(&lab, node);
        for text in ["8.8.8.", "10.200.0.248"] {
            assert!(!routes.contains(text), "{node} has {text}:\n{routes}");
        }
    }
    for (pod, name, words) in [
        ("p1", "public", "--allowed-subnets"),
        ("p2", "server", "10.200.0.254 of the API server"),
    ] {
        let words_of_run = [
            "run",
            pod,
            "--node",
            "n1",
            "--network",
            name,
            "--timeout",
            "10",
        ];
        let error = lab.fails(&words_of_run);
        assert!(error.contains(words), "{error}");
        assert!(!routes(&lab, "n1").contains("8.8.8."), "{pod}");
    }
    lab.ok(&["start", "controller"]);
}

/// The administrator's word counts on all nodes.
#[test]
fn what_the_administrator_allows_is_made() {
    let lab = Lab::named('r');
    lab.ok(&[
        "up",
        "--nodes",
        "1",
        "--nics",
        "0",
        "--allowed-subnets",
        "198.51.100.0/24",
    ]);
    network(&lab, "public", "198.51.100.0/25");
    network(&lab, "private", "10.77.0.0/16");
    let printed = lab.ok(&["run", "web", "--node", "n1", "--network", "public"]);
    assert!(printed.contains("ready on n1"), "{printed}");
    lab.eventually("the other range is not allowed here", || {
        waits(&lab, "private").is_some_and(|(reason, _)| reason == "SubnetNotAllowed")
    });
}
