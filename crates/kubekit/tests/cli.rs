//! The command line against a real cluster: the same words as against a lab, and what only a cluster
//! has: agents that are pods, podCIDRs, a kubelet's complaints, users who may not see everything.
#![cfg(feature = "e2e")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod common;
mod disturb;

use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Kube, Namespace, Object};
use plexus_testkit::{PLEXUS, answers, bin};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test after the other: they send agents away.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Exit code, standard output, standard error.
#[derive(Debug)]
struct CommandOutput {
    code: Option<i32>,
    out: String,
    error: String,
}

/// `plexus` with a kubeconfig of its own: context `admin` sees all, `reader` the pods of the namespace.
struct Cli<'a> {
    kube: &'a Kube,
    namespace: Namespace<'a>,
    dir: PathBuf,
}

/// What is said after the context, which is none of Plexus's own here: that is said first.
fn after_context(error: &str) -> String {
    let rest = error
        .split_once('\n')
        .filter(|(first, _)| first.starts_with("context "));
    rest.map_or(error, |(_, rest)| rest).to_owned()
}

impl<'a> Cli<'a> {
    fn new(kube: &'a Kube, base: &str) -> Self {
        let namespace = Namespace::create(kube, base).expect("a namespace");
        let dir = std::env::temp_dir().join(format!("plexus-{}", namespace.name()));
        fs::create_dir_all(&dir).expect("a directory");
        let cli = Self {
            kube,
            namespace,
            dir,
        };
        let token = cli.reader();
        let text = fs::read(kube.lab().layout().kubeconfig()).expect("a kubeconfig");
        let mut config: Value = serde_json::from_slice(&text).expect("JSON");
        let (cluster, admin, within) = (
            config["contexts"][0]["context"]["cluster"].clone(),
            config["users"][0]["name"].clone(),
            cli.namespace.name(),
        );
        let users = config["users"].as_array_mut().expect("users");
        users.push(json!({"name": "reader", "user": {"token": token}}));
        let context = |name: &str, user: Value| json!({"name": name, "context": {"cluster": cluster, "user": user, "namespace": within}});
        config["contexts"] = json!([context("admin", admin), context("reader", json!("reader"))]);
        config["current-context"] = json!("admin");
        fs::write(cli.dir.join("kubeconfig"), config.to_string()).expect("written");
        cli
    }

    /// An account that may read pods of the namespace and nothing else; gives its token.
    fn reader(&self) -> String {
        let (ns, role) = (self.namespace.name(), "rbac.authorization.k8s.io");
        let metadata = json!({"name": "reader", "namespace": ns});
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]);
        let version = format!("{role}/v1");
        common::apply(
            self.kube,
            &[
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
                json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules}),
                json!({"apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
                    "roleRef": {"apiGroup": role, "kind": "Role", "name": "reader"},
                    "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": ns}]}),
            ],
        );
        let made = self
            .kube
            .kubectl(&["create", "token", "reader", "-n", ns], "");
        let token = made.expect("runs").text().expect("a token");
        token.trim().to_owned()
    }

    fn file(&self, name: &str, objects: &[Value]) -> String {
        let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
        let path = self.dir.join(name);
        fs::write(&path, texts.join("\n---\n")).expect("written");
        path.display().to_string()
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        let mut command = Command::new(bin(PLEXUS));
        command
            .args(words)
            .env("KUBECONFIG", self.dir.join("kubeconfig"))
            .env_remove("PLEXUS_LAB")
            .stdin(Stdio::null());
        let output = command.output().expect("plexus runs");
        CommandOutput {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            error: after_context(&String::from_utf8_lossy(&output.stderr)),
        }
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.code, Some(0), "{words:?}: {output:#?}");
        assert_eq!(output.error, "", "{words:?}: nothing is left out");
        output.out
    }

    /// As the reader: it works, and says what it could not see.
    #[track_caller]
    fn noted(&self, words: &[&str]) -> CommandOutput {
        let output = self.run(&[words, &["--context", "reader"]].concat());
        assert_eq!(output.code, Some(0), "{words:?}: {output:#?}");
        assert!(output.error.contains("note: cannot list"), "{output:#?}");
        assert!(output.error.contains("ask for that right"), "{output:#?}");
        output
    }

    #[track_caller]
    fn fails(&self, words: &[&str], wanted: &str) {
        let output = self.run(words);
        assert_eq!(output.code, Some(1), "{words:?}: {output:#?}");
        assert!(output.error.contains(wanted), "{words:?}: {output:#?}");
    }

    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(words).out).expect("JSON")
    }

    /// Waits until a diagnosis has an answer of that kind and state; gives its text.
    #[track_caller]
    fn comes_to(&self, about: &[&str], kind: &str, state: &str) -> String {
        let mut found = String::new();
        let words = [&["diagnose"], about, &["-o", "json"]].concat();
        let mut last = Value::Null;
        let fits = |one: &&Value| one["kind"] == kind && one["state"] == state;
        let waited = plexus_kubekit::wait::until(&format!("{about:?}: {kind}"), TIMEOUT, || {
            last = self.json(&words);
            let answer = last["answers"]
                .as_array()
                .and_then(|all| all.iter().find(fits));
            Ok(answer.map(|one| found = one["why"].to_string()))
        });
        waited.unwrap_or_else(|error| panic!("{error:#}: {last:#}"));
        found
    }

    /// A network with two subnets, and a pod on it on each node.
    fn applied(&self, second: u8) -> (String, [Object; 2]) {
        let ns = self.namespace.name();
        let (v4, v6) = (format!("10.{second}.0.0/16"), format!("fd00:{second}::/48"));
        let spec = json!({"subnets": {"a": {"cidr": v4}, "b": {"cidr": v6}}});
        let pod = |name: &str, node: &str| common::pod(ns, name, node, &[(common::PLEXUS, "blue")]);
        let file = self.file(
            "objects.yaml",
            &[
                common::network(ns, "blue", spec),
                pod("web", "n1"),
                pod("db", "n2"),
            ],
        );
        assert_eq!(
            self.ok(&["apply", "-f", &file]),
            "network.plexus.dev/blue created\npod/web created\npod/db created\n"
        );
        let pods = ["web", "db"].map(|name| self.namespace.pod(name));
        common::ready(self.kube, &[&pods[0], &pods[1]]);
        (file, pods)
    }
}

impl Drop for Cli<'_> {
    fn drop(&mut self) {
        // A directory that stays is nobody's loss.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The words of the line that begins with this one.
#[track_caller]
fn row<'t>(table: &'t str, first: &str) -> Vec<&'t str> {
    let mut rows = table.lines().map(|line| line.split_whitespace().collect());
    let found = rows.find(|row: &Vec<&str>| row.first() == Some(&first));
    found.unwrap_or_else(|| panic!("no {first}: {table}"))
}

#[test]
fn objects_are_applied_shown_and_deleted() {
    let _alone = alone();
    let kube = Kube::shared().expect("a lab");
    let cli = Cli::new(kube, "cli");
    let ns = cli.namespace.name();
    let (file, [web, db]) = cli.applied(151);
    let again = cli.ok(&["apply", "-f", &file]);
    assert_eq!(
        again.matches(" unchanged\n").count(),
        again.lines().count(),
        "{again}"
    );
    let valid = cli.ok(&["validate", "-f", &file]);
    assert!(valid.contains("3 objects"), "{valid}");
    let plan = cli.ok(&["plan", "-f", &file, "--node", "n1"]);
    assert!(plan.contains("net1") && plan.contains("ip "), "{plan}");

    tables(&cli, &web);
    forms(&cli);
    described(&cli, &web);
    let output = cli.ok(&["diagnose", "pod", "web"]);
    assert!(
        output.starts_with(&format!("Pod {ns}/web on node n1: as it should be\n")),
        "{output}"
    );
    let address = common::address(kube, &web, "net1", false);
    assert!(output.contains(&address), "{address}: {output}");
    assert_eq!(
        cli.json(&["diagnose", "pod", "web", "-o", "json"])["state"],
        "ok"
    );
    let listed = cli.ok(&["ipam", "show", "blue"]);
    assert!(
        listed.starts_with(&format!("Network {ns}/blue: 2 of 65533 IPv4, 2 of ")),
        "{listed}"
    );
    assert_eq!(row(&listed, "n1")[1], "1", "of each family: {listed}");
    let usage = cli.json(&["ipam", "show", "blue", "-o", "json"]);
    assert_eq!(usage["families"][0]["used"], 2, "{usage:#}");
    let version = cli.ok(&["version"]);
    assert!(version.contains("API server: v1."), "{version}");
    what_is_missing(&cli);
    deleted(&cli, &[&web, &db]);
}

fn tables(cli: &Cli<'_>, web: &Object) {
    let (kube, ns) = (cli.kube, cli.namespace.name());
    let networks = cli.ok(&["get", "networks"]);
    assert_eq!(
        row(&networks, "blue")[1..4],
        ["overlay", "Active", "10.151.0.0/16,fd00:151::/48"]
    );
    let object = kube.get(&common::network_object(ns, "blue"));
    let vni = object.expect("asked").expect("is there")["status"]["vni"].to_string();
    let wide = cli.ok(&["get", "networks", "-o", "wide"]);
    assert!(row(&wide, "blue").contains(&vni.as_str()), "{vni}: {wide}");

    let pods = cli.ok(&["get", "pods", "-o", "wide"]);
    let listed = row(&pods, "web");
    assert_eq!(listed[1..4], ["Running", "n1", "eth0,net1"], "{pods}");
    let addresses = common::attachments(kube, web);
    let of = |one: &Value| {
        let ips = one["ips"].as_array().expect("addresses").iter();
        let bare = ips.filter_map(|ip| ip.as_str()?.split('/').next());
        bare.collect::<Vec<_>>().join("+")
    };
    let wanted: Vec<String> = addresses.iter().map(of).collect();
    assert_eq!(listed[5], wanted.join(","), "{pods}");
    assert!(
        pods.contains(&format!("cluster-default,{ns}/blue")),
        "{pods}"
    );

    let blocks = cli.ok(&["get", "blocks"]);
    let own = blocks
        .lines()
        .filter(|line| line.contains(&format!(" {ns}/blue ")));
    assert_eq!(own.clone().count(), 4, "two subnets on two nodes: {blocks}");
    assert!(own.clone().all(|line| line.contains(" 1/64 ")), "{blocks}");

    // A node whose agent was away a moment ago becomes ready by itself.
    let names = kube.nodes().expect("nodes");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    kube.lab().wait_nodes(&names).expect("ready");
    let nodes = cli.ok(&["get", "nodes", "-o", "wide"]);
    for name in kube.nodes().expect("nodes") {
        let node = kube.get(&Object::new("v1", "Node", "", &name));
        let node = node.expect("asked").expect("is there");
        let cidrs = node["spec"]["podCIDRs"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let cidrs: Vec<&str> = cidrs.iter().filter_map(Value::as_str).collect();
        let listed = row(&nodes, &name);
        assert_eq!(listed[1], "Ready", "{nodes}");
        assert_eq!(
            listed[2],
            common::node_ips(kube, &name).join(","),
            "{nodes}"
        );
        assert_eq!(listed[3], cidrs.join(","), "{nodes}");
        let kubelet = node["status"]["nodeInfo"]["kubeletVersion"].as_str();
        assert!(listed.contains(&kubelet.expect("a version")), "{nodes}");
    }
}

/// `-o`.
fn forms(cli: &Cli<'_>) {
    let one = cli.json(&["get", "network", "blue", "-o", "json"]);
    assert_eq!(
        (&one["kind"], &one["status"]["phase"]),
        (&json!("Network"), &json!("Active"))
    );
    let several = cli.json(&["get", "pods,networks", "-o", "json"]);
    let items = several["items"].as_array().expect("items");
    let kinds: Vec<&Value> = items.iter().map(|item| &item["kind"]).collect();
    assert_eq!(kinds, ["Pod", "Pod", "Network"]);
    let yaml = cli.ok(&["get", "pod", "web", "-o", "yaml"]);
    assert!(yaml.starts_with("apiVersion: v1\nkind: Pod\n"), "{yaml}");
    assert!(!yaml.contains("managedFields"), "{yaml}");
    let names = cli.ok(&["get", "pods,networks", "-o", "name"]);
    assert_eq!(names, "pod/db\npod/web\nnetwork.plexus.dev/blue\n");
    let nodes = cli.ok(&["get", "nodes", "-o", "name"]);
    assert!(nodes.starts_with("node/n1\nnode/n2\n"), "{nodes}");
    let blocks = cli.json(&["get", "blocks", "-o", "json"]);
    let own = blocks["items"].as_array().expect("items").iter();
    let own = own.filter(|one| one["spec"]["network"]["namespace"] == cli.namespace.name());
    assert_eq!(own.count(), 4, "{blocks:#}");
}

/// What is described is what the record and the kernel say.
fn described(cli: &Cli<'_>, web: &Object) {
    let (kube, ns) = (cli.kube, cli.namespace.name());
    let text = cli.ok(&["describe", "pod", "web"]);
    let sandbox = kube.sandbox(web).expect("a sandbox");
    let uid = disturb::uid_of(kube, web);
    for words in [
        format!("Pod {ns}/web\n"),
        format!("PodAttachments {uid}"),
        sandbox,
        "eth0: Attached".to_owned(),
        "net1: Attached".to_owned(),
        "every pod (the cluster-wide default network, number 0 of 2)".to_owned(),
        "annotation plexus.dev/networks (number 1 of 2)".to_owned(),
        format!("Network {ns}/blue"),
        common::address(kube, web, "eth0", false),
        common::address(kube, web, "net1", true),
    ] {
        assert!(text.contains(&words), "{words}: {text}");
    }
    assert!(text.contains("from podCIDR"), "{text}");
    assert!(!text.contains("by blocks"), "a podCIDR is no block: {text}");
    // Every route with a gateway is described, and no other.
    let real = common::output_of(kube, web, "ip route; ip -6 route");
    let mut real: Vec<(String, String)> = real.lines().filter_map(route).collect();
    let mut listed = described_routes(&text);
    real.sort();
    listed.sort();
    assert_eq!(listed, real, "{text}");
    assert_eq!(listed.len(), 6, "{text}");
    let network = cli.ok(&["describe", "network", "blue"]);
    for words in [
        "phase",
        "Active",
        "in use",
        "block",
        "of node n1: 1 of 64",
        "of node n2: 1 of 64",
    ] {
        assert!(network.contains(words), "{words}: {network}");
    }
    for name in ["db", "web"] {
        assert!(
            network.contains(&format!("{ns}/{name} on node")),
            "{network}"
        );
    }
}

/// `10.1.0.0/16 via 169.254.1.1 dev net1 onlink` as interface and route.
fn route(line: &str) -> Option<(String, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let device = words.iter().position(|word| *word == "dev")?;
    let route = words.get(..3).filter(|words| words[1] == "via")?;
    Some((words.get(device + 1)?.to_string(), route.join(" ")))
}

/// The same of what `describe` says.
fn described_routes(text: &str) -> Vec<(String, String)> {
    let (mut interface, mut all) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some((name, "Attached")) = line.split_once(": ") {
            interface = name.to_owned();
        }
        let line = line.trim_start().trim_start_matches("route ").trim_start();
        let words: Vec<&str> = line.split_whitespace().take(3).collect();
        if words.get(1) == Some(&"via") {
            all.push((interface.clone(), words.join(" ")));
        }
    }
    all
}

fn what_is_missing(cli: &Cli<'_>) {
    let ns = cli.namespace.name();
    cli.fails(
        &["get", "pods", "nosuch"],
        &format!("there is no Pod nosuch in namespace {ns}"),
    );
    cli.fails(
        &["diagnose", "pod", "nosuch"],
        "plexus get pods -A lists all",
    );
    cli.fails(
        &["get", "pods", "--context", "nosuch"],
        "there is no context nosuch",
    );
    cli.fails(&["get", "cniconfigs"], "the API server knows no CNIConfig");
    let pods = [
        common::pod(ns, "lost", "n1", &[(common::PLEXUS, "nosuch")]),
        common::pod(ns, "no-nad", "n1", &[(common::NETWORKS, "nosuch")]),
    ];
    let file = cli.file("lost.yaml", &pods);
    cli.ok(&["apply", "-f", &file]);
    let lost = cli.comes_to(&["pod", "lost"], "network-missing", "wrong");
    assert!(lost.contains("nosuch"), "{lost}");
    cli.comes_to(&["pod", "no-nad"], "nad-missing", "wrong");
    // It starts by itself when the network comes.
    let made = cli.ok(&["create", "network", "nosuch", "--subnet", "10.152.0.0/24"]);
    assert_eq!(made, "network.plexus.dev/nosuch created\n");
    cli.comes_to(&["pod", "lost"], "attached", "ok");
    cli.fails(
        &["create", "network", "nosuch", "--subnet", "10.152.0.0/24"],
        "already exists; plexus apply",
    );
    let gone = cli.ok(&["delete", "--timeout", "60s", "-f", &file]);
    assert_eq!(gone, "pod/no-nad deleted\npod/lost deleted\n");
    let gone = cli.ok(&["delete", "network", "nosuch", "--timeout", "60s"]);
    assert_eq!(gone, "network.plexus.dev/nosuch deleted\n");
}

/// A network in use goes after its pods.
fn deleted(cli: &Cli<'_>, pods: &[&Object]) {
    let going = cli.ok(&["delete", "network", "blue", "--wait=false"]);
    assert!(
        going.contains("network.plexus.dev/blue is being deleted"),
        "{going}"
    );
    let why = cli.comes_to(&["network", "blue"], "network-terminating", "waits");
    assert!(why.contains("web") && why.contains("db"), "{why}");
    let again = cli.ok(&["delete", "network", "blue", "--wait=false"]);
    assert!(again.contains("is being deleted: "), "{again}");
    let networks = cli.ok(&["get", "networks"]);
    assert_eq!(row(&networks, "blue")[2], "Terminating", "{networks}");
    let gone = cli.ok(&["delete", "pod", "web", "db", "--timeout", "60s"]);
    assert_eq!(gone, "pod/web deleted\npod/db deleted\n");
    for pod in pods {
        cli.kube.wait_gone(pod, TIMEOUT).expect("gone");
    }
    let network = common::network_object(cli.namespace.name(), "blue");
    cli.kube.wait_gone(&network, TIMEOUT).expect("gone");
    cli.fails(
        &["delete", "network", "blue"],
        "network.plexus.dev/blue is not there",
    );
}

/// What of `diagnose` only a cluster leads to: containers that run, end or cannot be started, and what a user may
/// not see.
#[test]
fn answers_that_a_lab_cannot_lead_to() {
    let _alone = alone();
    let kube = Kube::shared().expect("a lab");
    let cli = Cli::new(kube, "answers");
    let ns = cli.namespace.name();
    let mut ends = common::pod(ns, "ends", "n1", &[]);
    ends["spec"]["restartPolicy"] = json!("Never");
    ends["spec"]["containers"][0]["command"] = json!(["true"]);
    let mut imageless = common::pod(ns, "imageless", "n1", &[]);
    imageless["spec"]["containers"][0]["image"] = json!("localhost/nosuch:none");
    imageless["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
    let file = cli.file("answers.yaml", &[ends, imageless]);
    cli.ok(&["apply", "-f", &file]);
    let mut output = BTreeSet::new();
    for (about, kind, state) in [
        (&["pod", "ends"][..], "finished", "ok"),
        (&["pod", "imageless"], "containers-wait", "waits"),
        (
            &["pod", "imageless", "--context", "reader"],
            "not-seen",
            "waits",
        ),
    ] {
        cli.comes_to(about, kind, state);
        output.insert(kind);
    }
    let wanted: BTreeSet<&str> = answers::ON_A_CLUSTER.iter().copied().collect();
    assert_eq!(output, wanted);
}

/// Who may not see something is told so; nothing is concluded from what was not seen.
#[test]
fn a_user_who_may_read_pods_alone() {
    let _alone = alone();
    let kube = Kube::shared().expect("a lab");
    let cli = Cli::new(kube, "reader");
    cli.applied(153);
    let pods = cli.noted(&["get", "pods"]);
    assert_eq!(row(&pods.out, "web")[1..3], ["Running", "n1"], "{pods:#?}");
    let names = cli.run(&["get", "pods", "-o", "name", "--context", "reader"]);
    assert_eq!(
        (names.code, names.out.as_str()),
        (Some(0), "pod/db\npod/web\n")
    );
    let described = cli.noted(&["describe", "pod", "web"]);
    assert!(
        described.out.contains("plexus.dev/networks: blue"),
        "{described:#?}"
    );
    assert!(
        described
            .out
            .contains("Whether it is attached is not known"),
        "{described:#?}"
    );
    let diagnosed = cli.noted(&["diagnose", "pod", "web", "-o", "json"]);
    let value: Value = serde_json::from_str(&diagnosed.out).expect("JSON");
    assert_eq!(value["state"], "waits", "{value:#}");
    let answers = value["answers"].as_array().expect("answers");
    assert!(
        answers.iter().all(|one| one["kind"] == "not-seen"),
        "{value:#}"
    );
    for words in [
        &["get", "networks"][..],
        &["describe", "network", "blue"],
        &["diagnose", "network", "blue"],
        &["ipam", "show", "blue"],
        &["get", "pods", "-A"],
        &["create", "network", "red", "--subnet", "10.154.0.0/24"],
        &["delete", "network", "blue"],
    ] {
        cli.fails(
            &[words, &["--context", "reader"]].concat(),
            "ask for that right",
        );
    }
}

#[test]
fn an_agent_that_is_away() {
    let _alone = alone();
    let kube = Kube::shared().expect("a lab");
    let cli = Cli::new(kube, "agentless");
    let ns = cli.namespace.name();
    let away = disturb::NodeWithoutAgent::send(kube, "n2");
    let file = cli.file("waits.yaml", &[common::pod(ns, "waits", "n2", &[])]);
    cli.ok(&["apply", "-f", &file]);
    // While the agent's Pod terminates, the kubelet may notice first that nobody answers: that is the same answer for
    // another reason.
    common::holds("no agent runs on this node", TIMEOUT, || {
        cli.comes_to(&["pod", "waits"], "agent-away", "waits")
            .contains("no agent runs on this node")
    });
    // What the kubelet says is not concluded from pods of ours: of a sandbox, or, once it has asked for the STATUS,
    // of the whole node.
    let pod = cli.namespace.pod("waits");
    common::holds("the kubelet says it too", TIMEOUT, || {
        let output = common::messages(kube, &pod);
        output.iter().any(|(reason, message)| {
            ["FailedCreatePodSandBox", "NetworkNotReady"].contains(&reason.as_str())
                && message.contains("the agent does not answer on")
        })
    });
    drop(away);
    common::ready(kube, &[&pod]);
    cli.comes_to(&["pod", "waits"], "attached", "ok");
}

#[test]
fn a_node_is_examined() {
    let _alone = alone();
    let kube = Kube::shared().expect("a lab");
    let admin = kube
        .lab()
        .layout()
        .kubeconfig_of("admin")
        .display()
        .to_string();
    let program = bin(PLEXUS).display().to_string();
    let examined = |node: &str, more: &[&str]| -> Value {
        let mut argv = vec![
            program.as_str(),
            "doctor",
            "--kubeconfig",
            &admin,
            "-o",
            "json",
        ];
        argv.extend(more);
        let output = kube.on_node(node, &argv).expect("runs");
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    for node in kube.nodes().expect("nodes") {
        let report = examined(&node, &["--node", &node]);
        all_is_well(&report);
        assert_eq!(check(&report, "api.controller").0, "pass", "{report:#}");
    }
    let verdict = |report: &Value, name: &str| check(report, name).0;
    assert_eq!(
        verdict(&examined("n1", &["--node", "n9"]), "api.node"),
        "fail"
    );
    // In the agent's own container: its mounts, its account.
    let pods = kube.list("v1", "Pod", "plexus-system").expect("pods");
    let agent = pods.iter().find(|pod| {
        pod["metadata"]["labels"]["app.kubernetes.io/component"] == "agent"
            && pod["spec"]["nodeName"] == "n1"
    });
    let agent = agent.and_then(|pod| pod["metadata"]["name"].as_str());
    let agent = Object::pod("plexus-system", agent.expect("an agent"));
    let argv = ["/bin/plexus", "doctor", "-o", "json", "--node", "n1"];
    let output = kube.kubectl_exec(&agent, &argv).expect("runs");
    let report = serde_json::from_str(&output.stdout);
    let report: Value = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    all_is_well(&report);
    let hidden = check(&report, "api.controller");
    assert!(
        hidden.0 == "warn" && hidden.1.contains("cannot be seen"),
        "agents read no Leases: {hidden:?}"
    );
    assert!(
        check(&report, "mounts.netns").1.contains("receives"),
        "{report:#}"
    );
    assert!(
        check(&report, "mounts.routers").1.contains("shared"),
        "{report:#}"
    );
}

/// Verdict and finding of a check.
#[track_caller]
fn check(report: &Value, name: &str) -> (String, String) {
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name}: {report:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("found"))
}

/// A healthy node of a cluster: nothing fails, and what matters passes.
#[track_caller]
fn all_is_well(report: &Value) {
    for name in [
        "rights.root",
        "kernel",
        "mounts.sysctl",
        "state.directory",
        "state.journal",
        "agent.socket",
        "agent.ready",
        "agent.queue",
        "cni.plugin",
        "cni.first",
        "api.server",
        "api.definitions",
        "api.node",
        "leaks.links",
        "leaks.ports",
        "leaks.routers",
    ] {
        let found = check(report, name);
        assert_eq!(found.0, "pass", "{name}: {found:?}");
    }
    let checks = report["checks"].as_array().expect("checks");
    let failed: Vec<&Value> = checks
        .iter()
        .filter(|one| one["verdict"] == "fail")
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
