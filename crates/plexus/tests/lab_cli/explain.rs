//! Why pods do not start, each reason made to happen.

use crate::machine::Lab;
use crate::said::{json, ok, plexus};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// `plexus apply`, whatever this program thinks of it.
fn apply(lab: &Lab, yaml: &str) {
    let mut command = lab.plexus(&["apply", "--skip-validation", "-f", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(yaml.as_bytes()).unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success(), "{yaml}");
}

fn pod(name: &str, node: &str, annotation: &str, networks: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, annotations: {{{annotation}: '{networks}'}}}}\n\
         spec: {{nodeName: {node}, containers: [{{name: a, image: busybox}}]}}\n"
    )
}

/// The answers about an object are of that kind and state, sooner or later; every one that is not ok
/// says what to do, or waits for somebody else.
#[track_caller]
fn comes_to(lab: &Lab, about: &[&str], kind: &str, state: &str) {
    let words = [&["explain"], about, &["-o", "json"]].concat();
    let mut last = Value::Null;
    lab.eventually(&format!("{about:?}: {kind}"), || {
        last = json(lab, &words);
        let answers = last["answers"].as_array().unwrap();
        answers
            .iter()
            .any(|answer| answer["kind"] == kind && answer["state"] == state)
    });
    for answer in last["answers"].as_array().unwrap() {
        let told = answer["next"] != "" || answer["state"] != "wrong";
        assert!(told && answer["why"] != "", "{answer:#}");
    }
}

const ANNOTATION: &str = "plexus.dev/networks";

#[test]
fn what_pods_ask_for_and_cannot_have() {
    let lab = Lab::up('x', 2);
    apply(
        &lab,
        "apiVersion: plexus.dev/v1alpha1\nkind: Network\nmetadata: {name: tiny, namespace: default}\n\
         spec: {subnets: {a: {cidr: 10.9.0.0/30}}, blockSize: {ipv4: 30}}\n---\n\
         apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\n\
         apiVersion: plexus.dev/v1alpha1\nkind: Network\nmetadata: {name: private, namespace: other}\n\
         spec: {subnets: {a: {cidr: 10.8.0.0/24}}, allowedNamespaces: {from: Same}}\n---\n\
         apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n\
         metadata: {name: broken, namespace: default}\nspec: {config: '{'}\n---\n\
         apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n\
         metadata: {name: wrong, namespace: default}\nspec: {config: '{\"type\": \"macvlan\", \"mode\": \"loud\"}'}\n---\n\
         apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n\
         metadata: {name: unknown, namespace: default}\n\
         spec: {config: '{\"cniVersion\": \"1.0.0\", \"name\": \"x\", \"type\": \"no-such-plugin\"}'}\n",
    );
    let nads = "k8s.v1.cni.cncf.io/networks";
    for (name, annotation, networks, kind, state) in [
        ("missing", ANNOTATION, "nosuch", "network-missing", "wrong"),
        ("no-nad", nads, "nosuch", "nad-missing", "wrong"),
        ("odd", ANNOTATION, "a,,b", "bad-annotation", "wrong"),
        ("broken", nads, "broken", "nad-unreadable", "wrong"),
        ("invalid", nads, "wrong", "nad-invalid", "wrong"),
        ("plugin", nads, "unknown", "unknown-plugin", "wrong"),
        (
            "foreign",
            ANNOTATION,
            "other/private",
            "not-allowed",
            "wrong",
        ),
    ] {
        apply(&lab, &pod(name, "n1", annotation, networks));
        comes_to(&lab, &["pod", name], kind, state);
    }
    apply(&lab, &pod("nowhere", "n9", ANNOTATION, "tiny"));
    comes_to(&lab, &["pod", "nowhere"], "node-gone", "wrong");

    // One address, which the first has; the other node may not have any either.
    apply(&lab, &pod("first", "n1", ANNOTATION, "tiny"));
    comes_to(&lab, &["pod", "first"], "attached", "ok");
    apply(&lab, &pod("second", "n1", ANNOTATION, "tiny"));
    comes_to(&lab, &["pod", "second"], "no-addresses", "wrong");
    comes_to(&lab, &["network", "tiny"], "no-addresses", "wrong");

    // Networks of a pod that runs.
    apply(&lab, &pod("first", "n1", ANNOTATION, "tiny,tiny"));
    comes_to(&lab, &["pod", "first"], "changed", "wrong");

    // What is missing comes: the pod starts by itself.
    ok(
        &lab,
        &["create", "network", "nosuch", "--subnet", "10.7.0.0/24"],
    );
    comes_to(&lab, &["pod", "missing"], "attached", "ok");
    let said = plexus(&lab, &["delete", "network", "nosuch", "--wait", "0"]);
    assert_eq!(said.code, Some(0), "{said:#?}");
    comes_to(&lab, &["network", "nosuch"], "network-terminating", "waits");
    apply(&lab, &pod("late", "n2", ANNOTATION, "nosuch"));
    comes_to(&lab, &["pod", "late"], "network-terminating", "wrong");
}

#[test]
fn agents_nodes_and_servers_that_are_away() {
    let lab = Lab::up('y', 2);
    lab.ok(&["kill-agent", "n2", "--hold"]);
    apply(&lab, &pod("waits", "n2", ANNOTATION, ""));
    comes_to(&lab, &["pod", "waits"], "agent-away", "waits");
    lab.ok(&["start-agent", "n2"]);
    comes_to(&lab, &["pod", "waits"], "attached", "ok");

    // One that the API no longer has, and its node has not seen go.
    apply(&lab, &pod("left", "n2", ANNOTATION, ""));
    comes_to(&lab, &["pod", "left"], "attached", "ok");
    lab.ok(&["kill-agent", "n2", "--hold"]);
    lab.delete_pod("left", 0);
    comes_to(&lab, &["pod", "left"], "going", "waits");
    let described = ok(&lab, &["describe", "pod", "left"]);
    assert!(
        described.starts_with("Pod default/left\n") && described.contains("eth0: Attached"),
        "{described}"
    );
    lab.ok(&["start-agent", "n2"]);
    lab.eventually("its record goes", || {
        let said = plexus(&lab, &["describe", "pod", "left"]);
        said.error.contains("there is no Pod default/left")
    });
    lab.ok(&["remove-node", "n2"]);
    lab.eventually(
        "the pod of the node that is gone says so, or is gone too",
        || {
            let said = plexus(&lab, &["explain", "pod", "waits", "-o", "json"]);
            said.out.contains("node-gone") || said.error.contains("there is no Pod")
        },
    );

    // Nobody answers any more.
    let kept = std::env::temp_dir().join(format!("plexus-kubeconfig-{}", std::process::id()));
    std::fs::copy(lab.file("kubeconfig"), &kept).unwrap();
    lab.ok(&["down"]);
    let kubeconfig = kept.display().to_string();
    for words in [
        &["get", "networks"][..],
        &["explain", "pod", "default/x"],
        &["describe", "pod", "x"],
        &["delete", "pod", "x"],
    ] {
        let said = plexus(&lab, &[words, &["--kubeconfig", &kubeconfig]].concat());
        assert_eq!(said.code, Some(1), "{words:?}: {said:#?}");
        assert!(
            said.error.contains("does not answer"),
            "{words:?}: {said:#?}"
        );
    }
    std::fs::remove_file(&kept).unwrap();
}
