//! Least privilege as it is in effect: how the pods of Plexus run, seen from the live objects and
//! from their processes, and what the token that is really in an agent's pod may do.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;

use plexus_kubekit::{Cluster, Kube, Namespace, Output};
use serde_json::{Value, json};

const STATUS: &str = "k8s.v1.cni.cncf.io/network-status";

#[test]
fn pods_of_plexus_run_as_the_manifest_promises() {
    let kube = Kube::shared().expect("a lab");
    let agents = pods(kube, "agent");
    assert_eq!(agents.len(), kube.nodes().expect("nodes").len());
    for agent in &agents {
        assert_eq!(agent["status"]["qosClass"], "Guaranteed");
        assert_eq!(agent["spec"]["priorityClassName"], "system-node-critical");
        assert_eq!(agent["spec"]["serviceAccountName"], "plexus-agent");
        assert_ne!(agent["spec"]["hostPID"], true);
        assert_ne!(agent["spec"]["hostIPC"], true);
        assert_eq!(all_containers(agent, "readOnlyRootFilesystem"), json!(true));
        // Its root is read only, and it sees its own processes alone.
        let (pid, node) = process(kube, agent);
        let root = kube
            .on_node(&node, &["touch", &format!("/proc/{pid}/root/x")])
            .expect("runs");
        assert!(root.stderr.contains("Read-only"), "{root:?}");
        let own = kube
            .on_node(&node, &["readlink", "/proc/1/ns/pid"])
            .expect("runs");
        let its = kube
            .on_node(&node, &["readlink", &format!("/proc/{pid}/ns/pid")])
            .expect("runs");
        assert_ne!(own.text().expect("a link"), its.text().expect("a link"));
    }
    let controllers = pods(kube, "controller");
    assert_eq!(controllers.len(), 1);
    for controller in &controllers {
        assert_eq!(
            controller["spec"]["priorityClassName"],
            "system-cluster-critical"
        );
        assert_eq!(
            controller["spec"]["serviceAccountName"],
            "plexus-controller"
        );
        assert_eq!(
            all_containers(controller, "readOnlyRootFilesystem"),
            json!(true)
        );
        assert_eq!(
            all_containers(controller, "allowPrivilegeEscalation"),
            json!(false)
        );
        let (pid, node) = process(kube, controller);
        let text = kube
            .on_node(&node, &["cat", &format!("/proc/{pid}/status")])
            .expect("runs");
        let text = text.text().expect("a status");
        for line in [
            "Uid:\t65532\t65532\t65532\t65532",
            "CapEff:\t0000000000000000",
            "CapBnd:\t0000000000000000",
            "NoNewPrivs:\t1",
            "Seccomp:\t2",
        ] {
            assert!(text.contains(line), "{line:?} in {text}");
        }
    }
}

#[test]
fn the_token_in_an_agents_pod_reaches_its_own_node_alone() {
    let kube = Kube::shared().expect("a lab");
    let namespace = Namespace::create(kube, "tokens").expect("a namespace");
    let nodes = kube.nodes().expect("nodes");
    let ns = namespace.name();
    common::apply(
        kube,
        &[
            common::pod(ns, "mine", &nodes[0], &[("a.b/c", "1")]),
            common::pod(ns, "theirs", &nodes[1], &[]),
        ],
    );
    let (mine, theirs) = (namespace.pod("mine"), namespace.pod("theirs"));
    common::ready(kube, &[&mine, &theirs]);
    for pod in [&mine, &theirs] {
        common::attachments(kube, pod);
    }
    let agent = Agent::of(kube, &nodes[0]);
    let review = agent
        .kubectl(&["auth", "whoami", "-o", "json"])
        .text()
        .expect("it is known");
    let review: Value = serde_json::from_str(&review).expect("JSON");
    let message = &review["status"]["userInfo"]["extra"]["authentication.kubernetes.io/node-name"];
    assert_eq!(message, &json!([nodes[0]]));

    let uid = |name: &str| {
        let seen = kube
            .get(&namespace.pod(name))
            .expect("asked")
            .expect("is there");
        seen["metadata"]["uid"].as_str().expect("a UID").to_owned()
    };
    let annotate = |key: &str| json!({"metadata": {"annotations": {key: "x"}}}).to_string();
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    let (own, other) = (uid("mine"), uid("theirs"));
    let asked = [
        (format!("patch podattachments {own} -p {label}"), true),
        (format!("patch podattachments {other} -p {label}"), false),
        (
            format!(r#"patch podattachments {other} -p {{"metadata":{{"finalizers":null}}}}"#),
            false,
        ),
        (format!("delete podattachments {other}"), false),
        (format!("patch pod mine -p {}", annotate(STATUS)), true),
        (format!("patch pod theirs -p {}", annotate(STATUS)), false),
        (format!("patch pod mine -p {}", annotate("a.b/c")), false),
        (
            format!("patch pod mine -p {}", annotate(common::NETWORKS)),
            false,
        ),
        (
            r#"patch pod mine -p {"metadata":{"labels":{"x":"y"}}}"#.to_owned(),
            false,
        ),
        ("delete pod mine".to_owned(), false),
    ];
    for (line, allowed) in asked {
        let mut arguments = vec!["-n", ns, "--dry-run=server"];
        arguments.extend(line.split(' '));
        if line.starts_with("patch") {
            arguments.push("--type=merge");
        }
        let output = agent.kubectl(&arguments);
        assert_eq!(output.ok(), allowed, "{line}: {output:?}");
        let message = output.stderr.to_lowercase();
        assert!(
            allowed || message.contains("forbidden"),
            "{line}: {message}"
        );
    }
    for (verb, resource) in [
        ("get", "secrets"),
        ("list", "configmaps"),
        ("create", "pods"),
        ("create", "pods/exec"),
        ("patch", "nodes"),
        ("update", "networks.plexus.dev"),
        ("delete", "blocks.plexus.dev"),
        ("create", "serviceaccounts/token"),
        ("impersonate", "users"),
        ("create", "clusterrolebindings"),
    ] {
        let output = agent.kubectl(&["auth", "can-i", verb, resource, "-A"]);
        assert_eq!(output.stdout.trim(), "no", "{verb} {resource}");
    }
}

/// Whoever has the token that is in the pod of a node's agent.
struct Agent<'a> {
    kube: &'a Kube,
    config: String,
}

impl<'a> Agent<'a> {
    /// Reads the token where kubelet has put it.
    fn of(kube: &'a Kube, node: &str) -> Self {
        let agents = pods(kube, "agent");
        let agent = agents
            .iter()
            .find(|pod| pod["spec"]["nodeName"] == node)
            .expect("an agent");
        let uid = agent["metadata"]["uid"].as_str().expect("a UID");
        let script =
            format!("cat /var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~projected/*/token");
        let token = kube
            .on_node(node, &["sh", "-c", &script])
            .expect("runs")
            .text()
            .expect("a token");
        let text = std::fs::read_to_string(kube.lab().layout().kubeconfig()).expect("a kubeconfig");
        let mut config: Value = serde_yaml_ng::from_str(&text).expect("YAML");
        config["users"][0]["user"] = json!({"token": token.trim()});
        let path = std::env::temp_dir().join(format!("plexus-agent-{}-{node}", std::process::id()));
        std::fs::write(&path, config.to_string()).expect("written");
        let config = path.display().to_string();
        Self { kube, config }
    }

    fn kubectl(&self, arguments: &[&str]) -> Output {
        let config = format!("--kubeconfig={}", self.config);
        let mut all = vec![config.as_str()];
        all.extend(arguments);
        self.kube.kubectl(&all, "").expect("it runs")
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        // Nothing else knows the name.
        let _ = std::fs::remove_file(&self.config);
    }
}

fn pods(kube: &Kube, component: &str) -> Vec<Value> {
    let mut pods = kube.list("v1", "Pod", "plexus-system").expect("listed");
    pods.retain(|pod| {
        let labels = &pod["metadata"]["labels"];
        labels["app.kubernetes.io/component"] == component
            && pod["metadata"]["deletionTimestamp"].is_null()
    });
    pods
}

/// What all containers of a pod have in their security context; nothing if they differ.
fn all_containers(pod: &Value, key: &str) -> Value {
    let containers = pod["spec"]["containers"].as_array().expect("containers");
    let first = containers[0]["securityContext"][key].clone();
    let same = containers
        .iter()
        .all(|one| one["securityContext"][key] == first);
    if same { first } else { Value::Null }
}

/// The id of the first container's process on its node, and the node.
fn process(kube: &Kube, pod: &Value) -> (String, String) {
    let node = pod["spec"]["nodeName"].as_str().expect("a node");
    let id = pod["status"]["containerStatuses"][0]["containerID"]
        .as_str()
        .expect("an id");
    let id = id.strip_prefix("containerd://").expect("containerd's");
    let text = kube
        .crictl(node, &["inspect", id])
        .expect("runs")
        .text()
        .expect("it is there");
    let seen: Value = serde_json::from_str(&text).expect("JSON");
    let pid = seen["info"]["pid"].as_u64().expect("a process");
    (pid.to_string(), node.to_owned())
}
