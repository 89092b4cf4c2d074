//! Further ways of the same commands, what cannot work, and whoever is not known.

use crate::OBJECTS;
use crate::driver::{Kubectl, text};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

/// Starts something that goes on for ever, waits for a line with this, does something, waits for a line with
/// that, and ends it.
fn follows(k: &Kubectl, line: &str, first: &str, then: impl FnOnce(), last: &str) {
    let mut child = k.command(line).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    // Ends with the program, which ends with its request timeout.
    let mut until = |expected: &str| {
        while let Some(Ok(line)) = lines.next() {
            let found = line.contains(expected);
            seen.push(line);
            if found {
                return true;
            }
        }
        false
    };
    let came = until(first) && {
        then();
        until(last)
    };
    end(child);
    assert!(came, "kubectl {line}: {seen:?}");
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn following_one_object_and_events() {
    let k = Kubectl::new("follow");
    k.with("create -f -", OBJECTS);
    let change = || {
        k.run("patch networks.plexus.dev blue --type=merge -p {\"spec\":{\"mtu\":1450}}");
    };
    follows(
        &k,
        "get networks.plexus.dev blue -w -o jsonpath={.spec.mtu}{\"\\n\"}",
        "1400",
        change,
        "1450",
    );
    let change = || {
        k.run("delete cm settings");
    };
    let command = "get cm settings -w --output-watch-events";
    follows(&k, command, "ADDED", change, "DELETED");
    let event = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Event\nmetadata: {{name: {name}, namespace: default}}\n\
             involvedObject: {{apiVersion: v1, kind: Pod, name: web, namespace: default}}\nreason: Waiting\n\
             message: said by {name}\ntype: Normal\ncount: 1\n"
        )
    };
    k.with("create -f -", &event("one"));
    let say = || {
        k.with("create -f -", &event("two"));
    };
    follows(&k, "events -w", "said by one", say, "said by two");
    k.says("events --for pod/web", "said by two");
}

#[test]
fn the_same_commands_in_other_ways() {
    let k = Kubectl::new("ways");
    k.with("create -f -", OBJECTS);
    k.says("get pods -A", "NAMESPACE");
    k.says("get all", "web");
    k.says("get cm settings -o yaml", "apiVersion: v1");
    k.says("get cm --field-selector metadata.name=settings", "settings");
    k.says(
        "get networks.plexus.dev -o custom-columns=MTU:.spec.mtu",
        "1400",
    );
    k.says("get pods --show-labels --chunk-size=1", "LABELS");
    k.says("get --raw /readyz", "ok");
    k.says("api-versions", "plexus.dev/v1alpha1");
    // Without --overwrite nothing that is there changes; a dash takes away.
    for thing in ["pod/web", "networks.plexus.dev/blue", "node/n1"] {
        k.says(&format!("label {thing} x=1"), "labeled");
        k.says(&format!("label {thing} x=2 --overwrite"), "labeled");
        k.says(&format!("label {thing} x-"), "unlabeled");
        k.says(&format!("annotate {thing} note=1"), "annotated");
        k.says(&format!("annotate {thing} note-"), "annotated");
    }
    // What would be is said, and does not become so.
    let changed = OBJECTS.replace("mtu: 1400", "mtu: 1300");
    let diff = k.run_with("diff --server-side --force-conflicts -f -", &changed);
    assert_eq!(diff.status.code(), Some(1), "{}", text(&diff.stderr));
    assert!(text(&diff.stdout).contains("+  mtu: 1300"));
    k.with("apply --dry-run=server -f -", &changed);
    k.says("delete cm settings --dry-run=server", "server dry run");
    k.says("get cm settings -o name", "configmap/settings");
    k.says(
        "get networks.plexus.dev blue -o jsonpath={.spec.mtu}",
        "1400",
    );
    k.with(
        "create --save-config -f -",
        &OBJECTS.replace("name: ", "name: z"),
    );
    k.says("delete cm -l none=none", "No resources found");
    k.run("label cm zsettings go=1");
    k.says("delete cm -l go=1", "\"zsettings\" deleted");
    k.says("delete node n1 --cascade=foreground", "deleted");
    k.says("delete node zn1 --cascade=orphan --wait=false", "deleted");
    k.says("delete pod web --now", "deleted");
    k.says("delete pod,networks.plexus.dev --all", "deleted");
}

#[test]
fn what_cannot_work_says_so() {
    let k = Kubectl::new("cannot");
    k.with("create -f -", OBJECTS);
    k.fails("cluster-info", "", "services");
    k.fails("create token default", "", "could not find");
    k.fails("top pods", "", "Metrics API not available");
    k.fails(
        "scale deploy/x --replicas=2",
        "",
        "resource type \"deploy\"",
    );
    for command in ["logs web -c a", "exec web -c a -- ls", "attach web -c a"] {
        let output = k.run_with(command, "");
        assert!(!output.status.success(), "{command}");
        let expected = text(&output.stderr);
        assert!(
            expected.to_lowercase().contains("error"),
            "{command}: {expected}"
        );
    }
    let nobody = "--kubeconfig=/dev/null --token=x --insecure-skip-tls-verify";
    let server = k.run("config view --minify -o jsonpath={.clusters[0].cluster.server}");
    k.fails(
        &format!("get pods {nobody} --server={server}"),
        "",
        "must be logged in",
    );
}
