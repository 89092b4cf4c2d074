//! kubectl, command by command, against the server. Needs a kubectl of Kubernetes 1.37 or later, which
//! `make kube-tools` builds; `PLEXUS_KUBECTL` names it.
#![cfg(feature = "e2e")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

#[path = "../server/common/mod.rs"]
mod common;
mod driver;
mod rest;

use driver::{Kubectl, text};
use std::time::Duration;

const OBJECTS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "1", b: "2"}
---
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {name: blue}
spec: {provider: overlay, mtu: 1400, subnets: {a: {cidr: 10.1.0.0/16}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: a, image: "x:1", env: [{name: ONE, value: "1"}, {name: TWO, value: "2"}]}
  - {name: b, image: "y:1"}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
"#;

#[test]
fn apply_in_both_ways_and_what_it_shows() {
    let k = Kubectl::new("apply");
    let made = k.with("apply -f -", OBJECTS);
    for one in [
        "configmap/settings",
        "network.plexus.dev/blue",
        "pod/web",
        "node/n1",
    ] {
        assert!(made.contains(&format!("{one} created")), "{made}");
    }
    assert_eq!(
        k.with("apply -f -", OBJECTS).matches("unchanged").count(),
        4
    );
    let changed = OBJECTS
        .replace("y:1", "y:2")
        .replace("b: \"2\"", "c: \"3\"");
    let diff = k.run_with("diff -f -", &changed);
    assert_eq!(diff.status.code(), Some(1), "{}", text(&diff.stderr));
    assert!(
        text(&diff.stdout).contains("+  - image: y:2"),
        "{}",
        text(&diff.stdout)
    );
    assert!(
        !text(&diff.stdout).contains("+  resourceVersion"),
        "{}",
        text(&diff.stdout)
    );
    assert_eq!(
        k.with("apply -f -", &changed).matches("configured").count(),
        2
    );
    assert!(k.with("diff -f -", &changed).is_empty());
    k.says(
        "get cm settings -o jsonpath={.data}",
        r#"{"a":"1","c":"3"}"#,
    );
    k.says(
        "get pod web -o jsonpath={.spec.containers[*].image}",
        "x:1 y:2",
    );
    // What was applied by the client is taken over.
    let applied = k.with("apply --server-side -f -", &changed);
    assert_eq!(
        applied.matches("serverside-applied").count(),
        4,
        "{applied}"
    );
    let version = k.run("get cm settings -o jsonpath={.metadata.resourceVersion}");
    k.with("apply --server-side -f -", &changed);
    k.says(
        "get cm settings -o jsonpath={.metadata.resourceVersion}",
        &version,
    );
    k.run("patch cm settings --type=merge -p {\"data\":{\"a\":\"9\"}} --field-manager=other");
    k.fails(
        "apply --server-side -f -",
        &changed,
        "conflict with \"other\"",
    );
    k.with("apply --server-side --force-conflicts -f -", &changed);
    k.says("get cm settings -o jsonpath={.data.a}", "1");
    k.with("delete -f -", &changed);
    k.fails("get cm settings", "", "not found");
}

#[test]
fn create_replace_patch_label_annotate_edit() {
    let k = Kubectl::new("write");
    k.with("create -f -", OBJECTS);
    k.fails("create -f -", OBJECTS, "AlreadyExists");
    k.says("create ns team", "namespace/team created");
    k.says(
        "create configmap made --from-literal=a=1 -n team",
        "configmap/made created",
    );
    k.says("label cm settings x=1", "labeled");
    k.fails("label cm settings x=2", "", "already has a value");
    k.says("annotate cm settings note=read", "annotated");
    k.says("get cm -l x=1 -o name", "configmap/settings");
    k.says(
        "patch cm settings --type=json -p [{\"op\":\"add\",\"path\":\"/data/z\",\"value\":\"1\"}]",
        "patched",
    );
    k.says(
        "patch pod web -p {\"spec\":{\"containers\":[{\"name\":\"b\",\"image\":\"y:3\"}]}}",
        "patched",
    );
    k.says(
        "get pod web -o jsonpath={.spec.containers[*].image}",
        "x:1 y:3",
    );
    k.fails(
        "patch networks.plexus.dev blue -p {\"spec\":{\"mtu\":1500}}",
        "",
        "strategic-merge-patch+json is not supported",
    );
    k.says(
        "patch networks.plexus.dev blue --type=merge -p {\"spec\":{\"mtu\":1500}}",
        "patched",
    );
    k.says("set image pod/web a=x:9", "image updated");
    k.with("replace -f -", OBJECTS);
    k.says(
        "get networks.plexus.dev blue -o jsonpath={.spec.mtu}",
        "1400",
    );
    let edited = k
        .command("edit networks.plexus.dev blue")
        .env("EDITOR", "sed -i s/1400/1450/")
        .output();
    assert!(text(&edited.unwrap().stdout).contains("edited"));
    k.says(
        "get networks.plexus.dev blue -o jsonpath={.spec.mtu}",
        "1450",
    );
    let edited = k
        .command("edit pod web")
        .env("EDITOR", "sed -i s/x:1/x:7/")
        .output();
    assert!(text(&edited.unwrap().stdout).contains("edited"));
    k.with("replace --force -f -", OBJECTS);
    let bad =
        "apiVersion: plexus.dev/v1alpha1\nkind: Network\nmetadata: {name: bad}\nspec: {mtu: big}\n";
    k.fails("create -f -", bad, "spec.mtu: Invalid value");
    k.fails(
        "create -f -",
        &bad.replace("mtu", "what"),
        "unknown field \"spec.what\"",
    );
    let warned = k.run_with(
        "create --validate=warn -f -",
        &bad.replace("mtu: big", "what: 1"),
    );
    assert!(
        text(&warned.stderr).contains("unknown field \"spec.what\""),
        "{}",
        text(&warned.stderr)
    );
}

#[test]
fn nodes_pods_and_what_is_shown_of_them() {
    let k = Kubectl::new("show");
    k.with("create -f -", OBJECTS);
    k.says("cordon n1", "cordoned");
    k.says("get nodes", "SchedulingDisabled");
    k.says("uncordon n1", "uncordoned");
    k.says("taint node n1 k=v:NoSchedule", "tainted");
    k.says("get node n1 -o jsonpath={.spec.taints[0].key}", "k");
    k.says("taint node n1 k-", "untainted");
    k.says("describe node n1", "Non-terminated Pods");
    k.says("describe pod web", "Image:");
    k.says("describe networks.plexus.dev blue", "Cidr:");
    k.says("describe ns default", "Active");
    k.says("get pods -o wide", "READINESS GATES");
    k.says("get networks.plexus.dev", "PROVIDER");
    k.says("get networks", "PROVIDER");
    k.says("get pods --sort-by=.metadata.name", "web");
    k.says("get pods,cm,nodes", "pod/web");
    k.says("get crd", "networks.plexus.dev");
    k.says("explain networks.spec.subnets", "cidr");
    k.says("explain pod.spec.containers.env", "valueFrom");
    k.says("api-resources", "podattachments");
    k.says("version", "Server Version: v1.");
    k.says("auth can-i create pods", "yes");
    k.says("auth can-i --list", "*.*");
    k.says("auth whoami", "admin");
    k.says("run other --image=x", "pod/other created");
    k.says("delete pod other --grace-period=0 --force", "force deleted");
    let event = "apiVersion: v1\nkind: Event\nmetadata: {name: e, namespace: default}\n\
                 involvedObject: {kind: Node, name: n1, uid: n1}\nreason: Waiting\n\
                 message: it waits\ntype: Warning\ncount: 1\n";
    k.with("create -f -", event);
    k.says("events", "it waits");
    k.says("get events", "it waits");
    k.says("describe node n1", "it waits");
}

#[test]
fn watching_waiting_and_deleting() {
    let k = Kubectl::new("wait");
    k.with("create -f -", OBJECTS);
    let watch = k.start("get cm -w");
    let late = k.start("wait --for=create cm/late --timeout=20s");
    std::thread::sleep(Duration::from_millis(500));
    k.run("create configmap late --from-literal=a=1");
    assert!(late.wait_with_output().unwrap().status.success());
    let gone = k.start("wait --for=delete cm/late --timeout=20s");
    std::thread::sleep(Duration::from_millis(500));
    k.run("delete cm late");
    assert!(gone.wait_with_output().unwrap().status.success());
    let mut watch = watch;
    watch.kill().unwrap();
    let seen = text(&watch.wait_with_output().unwrap().stdout);
    assert!(
        seen.starts_with("NAME") && seen.matches("late").count() >= 2,
        "{seen}"
    );
    k.says(
        "wait --for=jsonpath={.spec.mtu}=1400 networks.plexus.dev/blue --timeout=10s",
        "condition met",
    );
    // What comes true while it is waited for.
    let waits = |words: &str, change: &str| {
        let waiting = k.start(words);
        std::thread::sleep(Duration::from_millis(500));
        k.run(change);
        let output = waiting.wait_with_output().unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        assert!(text(&output.stdout).contains("condition met"), "{output:?}");
    };
    waits(
        "wait --for=jsonpath={.spec.mtu}=1450 networks.plexus.dev/blue --timeout=20s",
        "patch networks.plexus.dev blue --type=merge -p {\"spec\":{\"mtu\":1450}}",
    );
    waits(
        "wait --for=condition=Initialized pod/web --timeout=20s",
        "patch pod web --subresource=status --type=merge -p \
         {\"status\":{\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"}]}}",
    );
    k.fails(
        "wait --for=condition=Ready pod/web --timeout=1s",
        "",
        "timed out",
    );
    // A finalizer keeps it until it is taken away; `delete` waits that long.
    k.run("patch cm settings --type=merge -p {\"metadata\":{\"finalizers\":[\"example.com/x\"]}}");
    let delete = k.start("delete cm settings --timeout=30s");
    std::thread::sleep(Duration::from_millis(500));
    k.says(
        "get cm settings -o jsonpath={.metadata.deletionTimestamp}",
        "Z",
    );
    k.run("patch cm settings --type=merge -p {\"metadata\":{\"finalizers\":null}}");
    assert!(delete.wait_with_output().unwrap().status.success());
    k.run("create ns team");
    k.run("create configmap inside --from-literal=a=1 -n team");
    k.says("delete ns team", "deleted");
    assert_eq!(k.run("get cm -n team --ignore-not-found"), "");
    k.says("delete pods --all", "deleted");
    k.says(
        "delete networks.plexus.dev,nodes -l none=none",
        "No resources found",
    );
}
