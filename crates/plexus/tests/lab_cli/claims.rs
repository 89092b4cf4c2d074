//! Pods that ask for devices on a lab, which has no driver for any.

use crate::diagnose::FaultyLab;
use crate::machine::Lab;
use crate::output::{example, json, ok, plexus};
use plexus_cli::diagnose::Reason;
use serde_json::Value;

pub(crate) const LEADS_TO: &[Reason] = &[
    Reason::ClaimMissing,
    Reason::ClassUnknown,
    Reason::Later,
    Reason::NotScheduled,
    Reason::SandboxFailed,
];

/// A pod never starts without what it asked for: neither of our driver, nor of another, nor on a node that it
/// names.
#[test]
fn pods_wait_for_their_claims() {
    let faulty = FaultyLab::up('m', 1, LEADS_TO);
    let lab = &faulty.lab;
    ok(lab, &["apply", "-f", &example("seed-001")]);
    lab.apply(
        r#"
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
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
        let is_it = |pod: &&Value| pod["namespace"] == namespace && pod["name"] == name;
        assert_eq!(sandboxes.iter().find(is_it), None, "{namespace}/{name}");
    }
    assert!(
        sandboxes.iter().any(|pod| pod["name"] == "after"),
        "{status:#}"
    );
    let answers = |name: &str| {
        let diagnosed = json(lab, &["diagnose", "pod", name, "-o", "json"]);
        let answers = diagnosed["answers"].as_array().unwrap().clone();
        let kinds = answers
            .iter()
            .map(|answer| answer["kind"].as_str().unwrap().to_owned());
        (kinds.collect::<Vec<_>>(), diagnosed.to_string())
    };
    faulty.comes_to(&["pod", "trains"], Reason::NotScheduled, "waits");
    let (kinds, text) = answers("trains");
    assert_eq!(kinds, ["not-scheduled"], "{text}");
    assert!(
        text.contains("it waits for ResourceClaim gpu: a lab has no DRA driver"),
        "{text}"
    );
    faulty.comes_to(&["pod", "pinned"], Reason::ClaimMissing, "wrong");
    faulty.comes_to(&["pod", "pinned"], Reason::SandboxFailed, "waits");
    let (kinds, text) = answers("pinned");
    assert_eq!(kinds, ["claim-missing", "sandbox-failed"], "{text}");
    // Said once, by the keeper that is there now.
    let about = events_about(lab, &lab.get(&["pod", "pinned"]));
    assert_eq!(about.len(), 1, "{about:#?}");
    assert_eq!(about[0]["reason"], "FailedPrepareDynamicResources");
    assert_eq!(about[0]["count"], 1, "{about:#?}");
    claims_by_class(&faulty);
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
    faulty.end();
}

/// A claim is ours by an administrator's class as soon as that leads to our driver, whichever came first.
fn claims_by_class(faulty: &FaultyLab) {
    let lab = &faulty.lab;
    let claim = |name: &str| {
        let request = "{name: nic, exactly: {deviceClassName: fast-nic}}";
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n\
             metadata: {{name: {name}, namespace: default}}\nspec: {{devices: {{requests: [{request}]}}}}\n"
        )
    };
    lab.apply(&claim("before"));
    let unknown = Reason::ClassUnknown;
    faulty.comes_to(&["resourceclaim", "before"], unknown, "waits");
    let listed = ok(lab, &["get", "resourceclaims", "before"]);
    assert!(listed.contains(" not known "), "{listed}");
    assert!(
        listed.contains("DeviceClass fast-nic is not there"),
        "{listed}"
    );
    lab.apply(
        r#"
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fast-nic}
spec: {selectors: [{cel: {expression: device.driver == "cni.dra.networking.x-k8s.io"}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: wired, namespace: default}
spec:
  resourceClaims: [{name: nic, resourceClaimName: before}]
  containers: [{name: c, image: none}]
"#,
    );
    // The class is on the server only.
    let file = std::env::temp_dir().join(format!("plexus-claim-{}.yaml", std::process::id()));
    std::fs::write(&file, claim("late")).unwrap();
    let applied = plexus(lab, &["apply", "-f", &file.display().to_string()]);
    std::fs::remove_file(&file).unwrap();
    assert!(
        applied.error.contains("it is kept, and waits"),
        "{applied:#?}"
    );
    for name in ["before", "late"] {
        let object = lab.get(&["resourceclaims", name]);
        lab.eventually(&format!("an Event on {name}"), || {
            !events_about(lab, &object).is_empty()
        });
        let about = events_about(lab, &object);
        assert_eq!(about.len(), 1, "{about:#?}");
        assert_eq!(about[0]["reason"], "Waiting");
    }
    let listed = ok(lab, &["get", "resourceclaims"]);
    let state = |name: &str| {
        let mut lines = listed.lines().map(str::split_whitespace);
        lines.find_map(|mut words| (words.next()? == name).then(|| words.next())?)
    };
    for (name, wanted) in [("before", "waits"), ("late", "waits"), ("gpu", "not")] {
        assert_eq!(state(name), Some(wanted), "{name}:\n{listed}");
    }
    assert!(
        listed.contains("it is for another driver than ours, if there is one"),
        "{listed}"
    );
    faulty.comes_to(&["resourceclaim", "before"], Reason::Later, "waits");
    let diagnosed = json(lab, &["diagnose", "pod", "wired", "-o", "json"]).to_string();
    assert!(
        diagnosed.contains("ResourceClaim default/before")
            && diagnosed.contains("it is kept, and waits"),
        "{diagnosed}"
    );
}

/// The Events about an object of namespace `default`.
fn events_about(lab: &Lab, object: &Value) -> Vec<Value> {
    let uid = object["metadata"]["uid"].as_str().unwrap();
    let path = "/api/v1/namespaces/default/events";
    let request = format!("GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n");
    let socket = lab.file("server.sock");
    let answer =
        plexus_testkit::exchange(std::path::Path::new(&socket), request.as_bytes()).unwrap();
    let list: Value = serde_json::from_str(&answer.body).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let about = items.filter(|event| event["involvedObject"]["uid"] == uid);
    about.cloned().collect()
}
