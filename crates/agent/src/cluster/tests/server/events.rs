//! What people are told.

use super::admin::{Admin, nads, pods};
use super::{TestNode, report, server, until};
use crate::cluster::Subject;
use serde_json::{Value, json};

fn events(admin: &Admin, namespace: &str, object: &str, reason: &str) -> Vec<Value> {
    let all = admin.list(&format!("/api/v1/namespaces/{namespace}/events"));
    let about = |event: &Value| {
        event["involvedObject"]["name"] == json!(object) && event["reason"] == json!(reason)
    };
    all.into_iter().filter(about).collect()
}

#[test]
fn failures_and_edits_without_effect_are_told_once() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    admin.nad(&team, "a", "{}");
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let pod = admin.pod(
        &team,
        "web",
        &n1,
        json!({"k8s.v1.cni.cncf.io/networks": "a"}),
    );
    for _ in 0..3 {
        let text = "network team/b: no such network";
        node.cluster.event(Subject::pod(&pod), "FailedAttach", text);
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    until("one Event, three times", || {
        let told = events(&admin, &team, "web", "FailedAttach");
        told.len() == 1 && told[0]["count"] == json!(3)
    });
    let told = &events(&admin, &team, "web", "FailedAttach")[0];
    assert_eq!(told["message"], json!("network team/b: no such network"));
    assert_eq!(told["involvedObject"]["uid"], json!(pod.uid));
    assert_eq!(told["source"]["component"], json!("plexus-agent"));

    // Not attached yet: whoever edits now gets what he wants.
    let edit = |value: &str| {
        let patch = json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": value}}});
        admin.edit(&pods(&team), "web", &patch);
    };
    edit("b");
    until("the edit", || {
        let seen = node
            .cluster
            .pod(&team, "web", Some(&pod.uid))
            .unwrap()
            .unwrap();
        seen.facts.annotations.values().any(|value| value == "b")
    });
    assert!(events(&admin, &team, "web", "NetworkChangedIgnored").is_empty());
    node.cluster
        .attached(report(&pod, "s1", &[("", "cluster-default"), (&team, "a")]));
    edit("c");
    until("that the edit is told", || {
        events(&admin, &team, "web", "NetworkChangedIgnored").len() == 1
    });

    let patch = json!({"spec": {"config": "{\"type\":\"bridge\"}"}});
    admin.edit(&nads(&team), "a", &patch);
    until("that the NAD's edit is told", || {
        events(&admin, &team, "a", "NetworkChangedInUse").len() == 1
            && events(&admin, &team, "web", "NetworkChangedInUse").len() == 1
    });
    admin.delete(&nads(&team), "a");
    until("that its end is told", || {
        events(&admin, &team, "a", "NetworkChangedInUse").len() == 2
    });
    node.cluster.detached(&pod, "s1");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(
        events(&admin, &team, "web", "NetworkChangedIgnored").len(),
        1
    );
}
