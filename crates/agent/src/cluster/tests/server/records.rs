//! Records and the annotation.

use super::admin::{Admin, in_namespace, pods};
use super::{PodName, TestNode, report, server, until};
use serde_json::{Value, json};

const STATUS: &str = "k8s.v1.cni.cncf.io/network-status";

fn record(admin: &Admin, pod: &PodName) -> Option<Value> {
    admin.get(&in_namespace(&pod.namespace, "podattachments"), &pod.uid)
}

#[test]
fn a_pods_record_lives_as_long_as_its_attachments() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let pod = admin.pod(&team, "web", &n1, json!({"mine": "1"}));
    node.cluster
        .attached(report(&pod, "s1", &[("", "cluster-default"), (&team, "a")]));
    // Others write annotations at the same time.
    for number in 0..10 {
        let patch = json!({"metadata": {"annotations": {format!("other-{number}"): "x"}}});
        admin.edit(&pods(&team), "web", &patch);
    }
    until("record and annotation", || {
        let status =
            record(&admin, &pod).is_some_and(|made| made["status"]["sandbox"] == json!("s1"));
        let noted = admin.get(&pods(&team), "web").unwrap();
        status && noted["metadata"]["annotations"][STATUS].is_string()
    });
    let made = record(&admin, &pod).unwrap();
    assert_eq!(made["metadata"]["finalizers"], json!(["plexus.dev/agent"]));
    assert_eq!(
        made["metadata"]["ownerReferences"][0]["uid"],
        json!(pod.uid)
    );
    assert_eq!(made["metadata"]["labels"]["plexus.dev/node"], json!(n1));
    assert_eq!(
        made["spec"],
        json!({"pod": {"name": "web", "uid": pod.uid}, "node": n1})
    );
    assert_eq!(made["status"]["attachments"].as_array().unwrap().len(), 2);
    let noted = admin.get(&pods(&team), "web").unwrap();
    let annotations = noted["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations.len(), 12);

    // A second time nothing is written.
    let version = made["metadata"]["resourceVersion"].clone();
    std::thread::sleep(std::time::Duration::from_millis(500));
    node.cluster
        .attached(report(&pod, "s1", &[("", "cluster-default"), (&team, "a")]));
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(
        record(&admin, &pod).unwrap()["metadata"]["resourceVersion"],
        version
    );

    // The pod is deleted by force: the record waits for its DEL, though nobody keeps it.
    admin.delete(&in_namespace(&team, "podattachments"), &pod.uid);
    assert!(record(&admin, &pod).unwrap()["metadata"]["deletionTimestamp"].is_string());
    node.cluster.detached(&pod, "s0");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(record(&admin, &pod).is_some());
    node.cluster.detached(&pod, "s1");
    until("that the record is gone", || record(&admin, &pod).is_none());
}

#[test]
fn a_successor_of_the_same_name_is_not_touched() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let old = admin.pod(&team, "web-0", &n1, json!({}));
    admin.delete(&pods(&team), "web-0");
    until("that it is gone", || {
        admin.get(&pods(&team), "web-0").is_none()
    });
    let new = admin.pod(&team, "web-0", "elsewhere", json!({}));
    // The journal has it too: else its record is one that outlived its pod, and goes within seconds of the pod.
    *node.hooks.pods.lock().unwrap() = vec![report(&old, "s1", &[])];
    node.cluster.attached(report(&old, "s1", &[]));
    until("the record", || record(&admin, &old).is_some());
    std::thread::sleep(std::time::Duration::from_secs(1));
    let there = admin.get(&pods(&team), "web-0").unwrap();
    assert_eq!(there["metadata"]["uid"], json!(new.uid));
    assert!(there["metadata"]["annotations"][STATUS].is_null());
    node.hooks.pods.lock().unwrap().clear();
    node.cluster.detached(&old, "s1");
    until("that the record is gone", || record(&admin, &old).is_none());
}

#[test]
fn a_static_pod_is_known_by_its_mirror() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let hash = "00112233445566778899aabbccddeeff";
    let cni = PodName {
        namespace: team.clone(),
        name: "static".to_owned(),
        uid: hash.to_owned(),
        container: false,
    };
    // Its sandbox comes first, the mirror later.
    node.cluster.attached(report(&cni, "s1", &[]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mirror = admin.pod(
        &team,
        "static",
        &n1,
        json!({"kubernetes.io/config.hash": hash}),
    );
    until("the record under the API's UID", || {
        record(&admin, &mirror).is_some()
    });
    admin.delete(&pods(&team), "static");
    until("that the mirror is gone", || {
        admin.get(&pods(&team), "static").is_none()
    });
    node.cluster.detached(&cni, "s1");
    until("that the record is gone", || {
        record(&admin, &mirror).is_none()
    });
}

#[test]
fn records_follow_the_journal_after_a_restart() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let cached = admin.pod(&team, "kept", &n1, json!({}));
    let gone = admin.pod(&team, "gone", &n1, json!({}));
    let alive = admin.pod(&team, "alive", &n1, json!({}));
    for pod in [&gone, &alive] {
        node.cluster.attached(report(pod, "s1", &[]));
        until("the record", || {
            record(&admin, pod).is_some_and(|made| made["status"]["sandbox"].is_string())
        });
    }
    let TestNode {
        cluster,
        hooks,
        directory,
    } = node;
    drop(cluster);
    admin.delete(&pods(&team), "gone");
    until("that it is gone", || {
        admin.get(&pods(&team), "gone").is_none()
    });
    hooks.pods.lock().unwrap().push(report(&cached, "s2", &[]));
    let node = TestNode::again(&admin.kubeconfig, &n1, directory, hooks).synced();
    until("the missing record", || record(&admin, &cached).is_some());
    until("that the stray is gone", || record(&admin, &gone).is_none());
    assert!(
        record(&admin, &alive).is_some(),
        "its pod lives: an ADD may be under way"
    );
    node.hooks.pods.lock().unwrap().clear();
    for (pod, sandbox) in [(&cached, "s2"), (&alive, "s1")] {
        node.cluster.detached(pod, sandbox);
        until("that the record is gone", || record(&admin, pod).is_none());
    }
}

#[test]
fn a_record_that_another_node_has_made_keeps_nobodys_from_being_written() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let pod = admin.pod(&team, "web", &n1, json!({}));
    let path = in_namespace(&team, "podattachments");
    let theirs = json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "PodAttachments",
        "metadata": {"name": pod.uid, "labels": {"plexus.dev/node": "n2"}},
        "spec": {"pod": {"name": "web", "uid": pod.uid}, "node": "n2"},
    });
    admin.create(&path, &theirs);
    node.cluster.attached(report(&pod, "s1", &[]));
    let own = format!("{}-{n1}", pod.uid);
    let sandbox = |sandbox: &str| {
        let made = admin.get(&path, &own);
        made.is_some_and(|made| made["status"]["sandbox"] == json!(sandbox))
    };
    until("a record of its own", || sandbox("s1"));
    let made = admin.get(&path, &own).unwrap();
    assert_eq!(made["spec"]["pod"]["uid"], json!(pod.uid));
    assert_eq!(made["spec"]["node"], json!(n1));
    assert_eq!(record(&admin, &pod).unwrap()["spec"]["node"], json!("n2"));
    node.cluster.attached(report(&pod, "s2", &[]));
    until("news in it", || sandbox("s2"));
    node.cluster.detached(&pod, "s2");
    until("that it is gone", || admin.get(&path, &own).is_none());
    assert!(record(&admin, &pod).is_some(), "it is not ours");
}
