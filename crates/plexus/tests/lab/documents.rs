//! The documents' examples on a lab: all are taken, and those of seed 004 do as written what they say.

use crate::machine::Lab;
use plexus_testkit::{example, examples, send};
use serde_json::json;
use std::path::Path;

#[test]
fn every_example_is_taken() {
    let lab = Lab::up('e', 1);
    for file in examples() {
        let mut apply = lab.plexus(&["apply", "-f"]);
        let output = apply.arg(&file).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {printed}", file.display());
    }
}

#[test]
fn a_pod_has_the_networks_of_its_spec() {
    let lab = Lab::up('d', 2);
    let post = |path: &str, object: &serde_json::Value| {
        let socket = lab.file("server.sock");
        let answer = send(
            Path::new(&socket),
            "POST",
            path,
            object.to_string().as_bytes(),
        );
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status, 201, "{}", answer.body);
    };
    // As the document writes them, sent as they are: nobody but the server reads them.
    let network = json!({"apiVersion": "v1", "kind": "Network", "metadata": {"name": "net1"},
        "spec": {"subnets": {"subnet1": {"cidr": "192.168.0.0/24", "gateway": "192.168.0.1"}}}});
    post("/api/v1/namespaces/default/networks", &network);
    let pod = |name: &str, node: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"networks": ["net1"], "nodeName": node,
                "containers": [{"name": "c", "image": "busybox"}]}})
    };
    for (name, node) in [("one", "n1"), ("two", "n2")] {
        post("/api/v1/namespaces/default/pods", &pod(name, node));
    }
    for file in ["seed-004/20-tenants.yaml", "seed-004/original/pod.yaml"] {
        lab.apply(&std::fs::read_to_string(example(file)).unwrap());
    }
    let runs = |namespace: &str, name: &str| {
        let pod = lab.get(&["pod", name, "-n", namespace]);
        pod["status"]["phase"] == "Running"
    };
    for (namespace, name) in [
        ("default", "one"),
        ("default", "two"),
        ("tenant-a", "pod-with-networks"),
    ] {
        lab.eventually(&format!("{namespace}/{name} runs"), || {
            runs(namespace, name)
        });
        let show = [
            "exec", name, "-n", namespace, "--", "ip", "-br", "-4", "addr",
        ];
        let listed = lab.ok(&show);
        let line = listed.lines().find(|line| line.starts_with("net1@"));
        assert!(
            line.is_some_and(|line| line.contains("192.168.0.")),
            "{listed}"
        );
    }
    let two = lab.ok(&[
        "exec", "two", "--", "ip", "-br", "-4", "addr", "show", "net1",
    ]);
    let address = two
        .split_whitespace()
        .nth(2)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    lab.eventually("they reach each other on it", || {
        let ping = [
            "exec", "one", "--", "ping", "-c", "1", "-W", "1", "-I", "net1", address,
        ];
        lab.run(&ping).status.success()
    });
}
