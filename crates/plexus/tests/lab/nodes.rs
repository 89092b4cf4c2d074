//! Nodes come and go.

use crate::machine::Lab;
use plexus_testkit::get;
use serde_json::{Value, json};
use std::path::Path;

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect()
}

/// A network whose addresses are files of the node.
pub(crate) fn lan(name: &str) -> String {
    let config = format!(
        r#"{{"cniVersion": "1.0.0", "name": "{name}", "type": "macvlan", "master": "eth1",
             "ipam": {{"type": "host-local", "subnet": "10.77.0.0/24"}}}}"#
    );
    let object = serde_json::json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"config": config}});
    object.to_string()
}

pub(crate) fn pod_on_lan(name: &str) -> String {
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "goes", "namespace": "default",
            "annotations": {"k8s.v1.cni.cncf.io/networks": name}},
        "spec": {"nodeName": "n2", "containers": [{"name": "main", "image": "none"}]}});
    object.to_string()
}

/// The addresses that are taken on a node.
fn leases(lab: &Lab, node: &str) -> Vec<String> {
    let dir = format!("{node}/plugins/networks/{}", lab.name());
    let files = std::fs::read_dir(lab.file(&dir))
        .into_iter()
        .flatten()
        .flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    names.filter(|name| name.starts_with("10.77.")).collect()
}

#[test]
fn a_removal_that_was_cut_short_is_finished() {
    let lab = Lab::up('c', 2);
    lab.ok(&["run", "goes", "--node", "n2"]);
    // The keeper cannot delete the Node, and dies; so does whoever waits for it.
    lab.ok(&["kill", "server", "--hold"]);
    let mut removing = lab.command(&["remove-node", "n2"]).spawn().unwrap();
    lab.eventually("the lab has a node less", || {
        let spec = std::fs::read_to_string(lab.file("lab.json")).unwrap_or_default();
        spec.contains("n1") && !spec.contains("n2")
    });
    lab.kill("/keeper");
    removing.kill().unwrap();
    removing.wait().unwrap();
    assert!(std::fs::exists(lab.file("n2")).unwrap());

    lab.ok(&["up"]);
    assert_eq!(
        names(&lab.get(&["nodes"])),
        ["n1"],
        "the next keeper did it"
    );
    lab.eventually("its pod is gone", || names(&lab.get(&["pods"])).is_empty());
    lab.ok(&["remove-node", "n2"]);
    assert!(!std::fs::exists(lab.file("n2")).unwrap());
    let n2 = format!("px-{}-n2", lab.name());
    assert!(!lab.traces().iter().any(|line| line.contains(&n2)));
    let error = lab.fails(&["remove-node", "n2"]);
    assert!(error.contains("has no node n2: it has n1"), "{error}");
}

#[test]
fn a_namespace_of_somebody_else_is_not_taken() {
    let lab = Lab::named('o');
    let theirs = format!("px-{}-n1", lab.name());
    let ip = |verb: &str| {
        let mut command = std::process::Command::new("ip");
        assert!(
            command
                .args(["netns", verb, &theirs])
                .status()
                .unwrap()
                .success()
        );
    };
    ip("add");
    let error = lab.fails(&["up", "--nodes", "1"]);
    assert!(error.contains("has not made"), "{error}");
    ip("delete");
}

#[test]
fn a_node_is_added_and_another_one_is_switched_off() {
    let lab = Lab::up('n', 1);
    // One that names a node which comes later waits for it.
    lab.apply(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "early", "namespace": "default"},
            "spec": {"nodeName": "n2", "containers": [{"name": "main", "image": "none"}]}}"#,
    );
    lab.ok(&["run", "before"]);
    let guards_tunnels = |node: &str| {
        let list = ["nft", "list", "chain", "inet", "plexus", "through"];
        let listed = lab.run(&[&["exec", "--node", node, "--"][..], &list].concat());
        String::from_utf8_lossy(&listed.stdout).contains("ip daddr @peers4 drop")
    };
    assert!(!guards_tunnels("n1"), "there is no other node");
    assert_eq!(lab.ok(&["add-node"]), "n2 ready\n");
    lab.eventually(
        "nodes without overlay pods guard the other's tunnels",
        || guards_tunnels("n1") && guards_tunnels("n2"),
    );
    lab.eventually("the pod that was early runs", || {
        lab.get(&["pod", "early"])["status"]["phase"] == "Running"
    });
    for name in ["early", "before"] {
        lab.delete_pod(name, 0);
    }
    lab.ok(&["run", "stays", "--node", "n1"]);
    lab.apply(&lan(lab.name()));
    lab.apply(&pod_on_lan(lab.name()));
    lab.eventually("the pod runs", || {
        lab.get(&["pod", "goes"])["status"]["phase"] == "Running"
    });
    assert_eq!(leases(&lab, "n2").len(), 1);
    let dir = format!("/var/lib/cni/networks/{}", lab.name());
    let seen = |node: &str| {
        lab.run(&["exec", "--node", node, "--", "ls", &dir])
            .status
            .success()
    };
    assert!(seen("n2") && !seen("n1"), "programs on a node see its own");
    assert_eq!(
        leases(&lab, "n1"),
        Vec::<String>::new(),
        "each node has its own"
    );
    lab.all_reach();
    assert_eq!(names(&lab.get(&["nodes"])), ["n1", "n2"]);

    lab.ok(&["remove-node", "n2"]);
    assert_eq!(names(&lab.get(&["nodes"])), ["n1"]);
    lab.eventually("its pod is gone", || {
        names(&lab.get(&["pods"])) == ["stays"]
    });
    let n2 = format!("px-{}-n2", lab.name());
    let left: Vec<String> = lab
        .traces()
        .into_iter()
        .filter(|line| line.contains(&n2))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert!(!std::fs::exists(lab.file("n2")).unwrap());
    // Its blocks return when the controller is sure: after the grace period.
    lab.eventually("its blocks return", || {
        let blocks = lab.get(&["blocks"]);
        let items = blocks["items"].as_array().cloned().unwrap_or_default();
        !items.is_empty() && items.iter().all(|block| block["spec"]["node"] == "n1")
    });
    let error = lab.fails(&["remove-node", "n2"]);
    assert!(error.contains("has no node n2: it has n1"), "{error}");
    // `up` with as many nodes as it had brings another one under that number.
    lab.ok(&["up", "--nodes", "2"]);
    lab.ok(&["run", "again", "--node", "n2"]);
    lab.all_reach();
}

/// A pod of one container with this spec; it may name a node, or none.
fn make_pod(lab: &Lab, name: &str, mut spec: Value) {
    spec["containers"] = json!([{"name": "main", "image": "none"}]);
    let metadata = json!({"name": name, "namespace": "default"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    lab.apply(&pod.to_string());
}

#[track_caller]
fn runs_on(lab: &Lab, name: &str, node: &str) {
    let mut seen = Value::Null;
    lab.eventually(&format!("{name} runs"), || {
        seen = lab.get(&["pod", name]);
        seen["status"]["phase"] == "Running"
    });
    assert_eq!(seen["spec"]["nodeName"], node, "{name}");
}

/// Waits until an Event says that a pod has no node, with these words.
#[track_caller]
fn has_no_node(lab: &Lab, name: &str, words: &str) {
    lab.eventually(&format!("{name} waits: {words}"), || {
        let socket = lab.file("server.sock");
        let events = get(Path::new(&socket), "/api/v1/namespaces/default/events");
        let events = events.map_or(Value::Null, |answer| answer.json());
        let mut events = events["items"].as_array().into_iter().flatten();
        events.any(|event| {
            let message = event["message"].as_str().unwrap_or_default();
            event["reason"] == "FailedScheduling"
                && event["involvedObject"]["name"] == name
                && message.contains(words)
        })
    });
    assert_eq!(lab.get(&["pod", name])["spec"]["nodeName"], Value::Null);
}

#[test]
fn pods_go_where_labels_cordons_and_taints_of_nodes_let_them() {
    const N1: &str = "/api/v1/nodes/n1";
    let lab = Lab::up('s', 2);
    // From now on n1 has fewer pods than n2: a pod that minds nothing goes there.
    for name in ["one", "two", "three", "four"] {
        lab.ok(&["run", name, "--node", "n2"]);
    }
    let on_ssd = json!({"nodeSelector": {"disk": "ssd"}});
    make_pod(&lab, "ssd", on_ssd.clone());
    has_no_node(&lab, "ssd", "0/2 nodes are available: none has the labels");
    lab.patch(N1, &json!({"metadata": {"labels": {"disk": "ssd"}}}));
    runs_on(&lab, "ssd", "n1");

    lab.patch(N1, &json!({"spec": {"unschedulable": true}}));
    make_pod(&lab, "free", json!({}));
    runs_on(&lab, "free", "n2");
    let taint = json!({"key": "only", "value": "db", "effect": "NoSchedule"});
    let mut tolerant = on_ssd;
    tolerant["tolerations"] = json!([{"key": "only", "operator": "Equal", "value": "db"}]);
    make_pod(&lab, "db", tolerant);
    has_no_node(&lab, "db", "nodeSelector, 1 cordoned");
    // Who names its node asks nobody.
    make_pod(&lab, "named", json!({"nodeName": "n1"}));
    runs_on(&lab, "named", "n1");

    lab.patch(
        N1,
        &json!({"spec": {"unschedulable": null, "taints": [taint]}}),
    );
    runs_on(&lab, "db", "n1");
    make_pod(&lab, "plain", json!({}));
    runs_on(&lab, "plain", "n2");
    lab.patch(N1, &json!({"spec": {"taints": null}}));
    make_pod(&lab, "last", json!({}));
    runs_on(&lab, "last", "n1");
}
