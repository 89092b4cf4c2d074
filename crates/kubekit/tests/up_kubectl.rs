//! `plexus up` with kubectl and the kubeconfig that it writes: every example of the documents is taken
//! file by file, and what waits says so where kubectl shows it.
#![cfg(feature = "e2e")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

use plexus_kubekit::tools::Tools;
use plexus_testkit::{Node, Up, examples, examples_of_another_version, within};
use std::process::{Command, Output};
use std::time::Duration;

/// More than the controller takes.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What kubectl sends each time: a claim with a status, which only its driver may write, and a configuration with
/// a null, which nobody keeps.
const SENT_AGAIN: [&str; 2] = [
    "resourceclaim.resource.k8s.io/macvlan-eth0-attachment configured",
    "cniconfig.cni.networking.x-k8s.io/macvlan-host-local configured",
];

struct Kubectl<'n> {
    node: &'n Node,
    tools: Tools,
}

impl Kubectl<'_> {
    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(self.tools.kubernetes.join("kubectl"));
        command
            .args(words)
            .env("KUBECONFIG", Up::kubeconfig(self.node))
            .env("HOME", self.node.file("home"));
        self.node.ns().enter(|| command.output()).unwrap()
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "kubectl {words:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn every_example_is_applied() {
    let node = Node::new();
    let _up = Up::start(&node);
    let tools = Tools::find().expect("the tools of a cluster: make kube-tools");
    let kubectl = Kubectl { node: &node, tools };
    let files: Vec<String> = examples()
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    for file in &files {
        kubectl.ok(&["apply", "-f", file]);
    }
    // The same again changes nothing; seed-004 has the same objects in two forms.
    let mut changed = Vec::new();
    for file in files.iter().filter(|file| !file.contains("seed-004")) {
        let printed = kubectl.ok(&["apply", "-f", file]);
        let others = printed.lines().filter(|line| !line.ends_with(" unchanged"));
        changed.extend(others.map(str::to_owned));
    }
    assert_eq!(changed, SENT_AGAIN);
    for file in examples_of_another_version() {
        let file = file.display().to_string();
        let refused = kubectl.run(&["apply", "--validate=false", "-f", &file]);
        let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && printed.contains("v1beta1"),
            "{printed}"
        );
    }
    for (kind, name, namespace) in [
        ("deviceclass", "cni.networking.x-k8s.io", "default"),
        ("resourceclaim", "one-macvlan-attachment", "claims-inline"),
        (
            "resourceclaimtemplate",
            "macvlan-template",
            "claims-by-name",
        ),
        ("cniconfig", "macvlan-host-local", "default"),
        ("net-attach-def", "multus-vpc-xxxx-yyyy", "multus"),
    ] {
        let described = || kubectl.ok(&["describe", kind, name, "-n", namespace]);
        let says_so = || {
            let text = described();
            text.contains("Waiting") && text.contains("it is kept, and waits")
        };
        assert!(within(TIMEOUT, says_so), "{kind} {name}: {}", described());
    }
    let waits = || {
        let networks = kubectl.ok(&["get", "multinicnetworks"]);
        networks.contains("WaitForConfig")
    };
    assert!(
        within(TIMEOUT, waits),
        "the MultiNicNetwork does not say what it waits for"
    );
    let networks = kubectl.ok(&["get", "networks.plexus.dev", "net1"]);
    assert!(networks.contains("Pending"), "{networks}");
    // The document's own names, as kubectl shows them.
    let pod = kubectl.ok(&[
        "get",
        "pod",
        "-n",
        "tenant-a",
        "pod-with-networks",
        "-o",
        "yaml",
    ]);
    assert!(
        pod.contains("plexus.dev/networks: '[\"private\"]'"),
        "{pod}"
    );
}
