//! Pods that ask for devices on a lab, which has no driver for any.

use crate::machine::Lab;
use crate::said::{example, json, ok};

/// A pod never starts without what it asked for: neither of our driver, nor of another, nor on a node that it
/// names.
#[test]
fn pods_wait_for_their_claims() {
    let lab = &Lab::up('m', 1);
    ok(lab, &["apply", "-f", &example("seed-001")]);
    lab.apply(
        r#"
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: trains, namespace: default}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: c, image: none}]
---
apiVersion: v1
kind: Pod
metadata: {name: pinned, namespace: default}
spec:
  nodeName: n1
  resourceClaims: [{name: net, resourceClaimName: nosuch}]
  containers: [{name: c, image: none}]
---
apiVersion: v1
kind: Pod
metadata: {name: after, namespace: default}
spec: {nodeName: n1, containers: [{name: c, image: none}]}
"#,
    );
    let pods = [
        ("claims-inline", "demo-a"),
        ("claims-by-name", "demo-b"),
        ("claims-by-name", "demo-c"),
        ("default", "trains"),
        ("default", "pinned"),
    ];
    for (namespace, name) in pods {
        lab.eventually(&format!("{name} says what it waits for"), || {
            let pod = lab.get(&["pod", name, "-n", namespace]);
            let conditions = pod["status"]["conditions"].to_string();
            pod["status"]["phase"] == "Pending" && conditions.contains("a lab has no DRA driver")
        });
        let described = ok(lab, &["describe", "pod", "-n", namespace, name]);
        assert!(described.contains("a lab has no DRA driver"), "{described}");
    }
    // Whatever was to become of them has: one that came after them runs.
    lab.eventually("a pod without claims runs", || {
        lab.get(&["pod", "after"])["status"]["phase"] == "Running"
    });
    let status = lab.status();
    let sandboxes = status["pods"].as_array().unwrap();
    for (namespace, name) in pods {
        assert_eq!(
            lab.get(&["pod", name, "-n", namespace])["status"]["phase"],
            "Pending"
        );
        let is_it = |pod: &&serde_json::Value| pod["namespace"] == namespace && pod["name"] == name;
        assert_eq!(sandboxes.iter().find(is_it), None, "{namespace}/{name}");
    }
    assert!(
        sandboxes.iter().any(|pod| pod["name"] == "after"),
        "{status:#}"
    );
    let answers = |name: &str| {
        let explained = json(lab, &["explain", "pod", name, "-o", "json"]);
        let answers = explained["answers"].as_array().unwrap().clone();
        let kinds = answers
            .iter()
            .map(|answer| answer["kind"].as_str().unwrap().to_owned());
        (kinds.collect::<Vec<_>>(), explained.to_string())
    };
    let (kinds, text) = answers("trains");
    assert_eq!(kinds, ["not-scheduled"], "{text}");
    assert!(
        text.contains("it waits for ResourceClaim gpu: a lab has no DRA driver"),
        "{text}"
    );
    let (kinds, text) = answers("pinned");
    assert_eq!(kinds, ["claim-missing", "sandbox-failed"], "{text}");
    // Said once, by the keeper that is there now.
    let events = lab.get(&["pod", "pinned"]);
    let uid = events["metadata"]["uid"].as_str().unwrap().to_owned();
    let path = "/api/v1/namespaces/default/events";
    let request = format!("GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n");
    let socket = lab.file("server.sock");
    let answer =
        plexus_testkit::exchange(std::path::Path::new(&socket), request.as_bytes()).unwrap();
    let list: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let about: Vec<_> = items
        .filter(|event| event["involvedObject"]["uid"] == uid.as_str())
        .collect();
    assert_eq!(about.len(), 1, "{about:#?}");
    assert_eq!(about[0]["reason"], "FailedPrepareDynamicResources");
    assert_eq!(about[0]["count"], 1, "{about:#?}");
    // They can go.
    let gone = ok(
        lab,
        &[
            "delete",
            "pod",
            "default/trains",
            "pinned",
            "claims-inline/demo-a",
        ],
    );
    assert_eq!(gone.matches(" deleted\n").count(), 3, "{gone}");
}
