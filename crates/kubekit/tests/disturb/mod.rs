//! For tests that break things: a lab of their own, scenes on it one after the other, a churn of pods
//! meanwhile, and how each part is killed.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file uses some of it, and a test that cannot go on ends"
)]

pub(crate) mod churn;

use crate::common;
use plexus_kubekit::cluster::{PATIENCE, is_ready};
use plexus_kubekit::layout::Layout;
use plexus_kubekit::spec::{Binaries, Cni};
use plexus_kubekit::{Cluster, Kube, Lab, Namespace, Object, Part, Spec, truth, wait};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PREFIX: &str = "faults";
/// Names a running lab to use instead of a new one, while a test is being written.
const RUNNING: &str = "PLEXUS_FAULTS_STATE";

/// Longer than anything takes to settle after the last fault.
pub(crate) const SETTLED: Duration = Duration::from_secs(60);

/// One thing to show.
pub(crate) type Scene = (&'static str, fn(&Kube));

/// Plays all scenes on a lab of their own; each one that fails is told, and the next is played.
/// After each, everybody must tell the same story.
pub(crate) fn play(scenes: &[Scene]) {
    let only = std::env::var("PLEXUS_SCENE").unwrap_or_default();
    let home = Home::open();
    let mut failed = Vec::new();
    for (name, scene) in scenes.iter().filter(|(name, _)| name.contains(&only)) {
        let started = Instant::now();
        let run = std::panic::AssertUnwindSafe(|| {
            scene(&home.kube);
            truth::check(&home.kube, SETTLED).expect("all tell the same story");
        });
        let ended = std::panic::catch_unwind(run).is_ok();
        revive(&home.kube);
        let seconds = started.elapsed().as_secs_f32();
        eprintln!(
            "scene {name}: {} in {seconds:.1} s",
            if ended { "fine" } else { "FAILED" }
        );
        if !ended {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}

/// A scene that failed may have left something dead: the next one need not fail too.
fn revive(kube: &Kube) {
    let mut parts = vec![Part::Etcd, Part::ApiServer];
    for node in kube.nodes().expect("nodes") {
        parts.push(Part::Containerd(node.clone()));
        parts.push(Part::Kubelet(node));
    }
    for part in &parts {
        if let Err(error) = kube.lab().ensure(part) {
            eprintln!("{part} stays dead: {error:#}");
        }
    }
}

struct Home {
    kube: Kube,
    own: bool,
}

impl Home {
    fn open() -> Self {
        if let Some(state) = std::env::var_os(RUNNING) {
            let kube = Kube::open(Path::new(&state)).expect("a running lab");
            return Self { kube, own: false };
        }
        let binary = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.unwrap_or_else(|| panic!("{name} is not set: `make test-kube` sets it"))
        };
        Lab::down(PREFIX).expect("nothing is left of an earlier run");
        let mut spec = Spec::new(PREFIX, 2).expect("a spec");
        spec.cni = Cni::Plexus;
        spec.binaries = Some(Binaries {
            plexus: binary("PLEXUS_BIN"),
            shim: binary("PLEXUS_STATIC_SHIM"),
        });
        let manifest = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo"))
            .join("../../deploy/install.yaml");
        spec.manifest = Some(manifest);
        let identity = "- --identity=$(POD_NAME)";
        let hurried = format!("{identity}\n        - --node-grace=3");
        spec.edits = vec![(identity.to_owned(), hurried)];
        let up = Lab::up(&spec).map(drop);
        let layout = Layout::of(PREFIX).expect("a layout");
        // From here on it is taken down, whatever happens.
        let kube = up.and_then(|()| Kube::open(layout.state()));
        match kube {
            Ok(kube) => Self { kube, own: true },
            Err(error) => {
                let _ = Lab::down(PREFIX);
                panic!("no lab: {error:#}");
            }
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.own
            && let Err(error) = Lab::down(PREFIX)
        {
            eprintln!("the lab {PREFIX} stays: {error:#}");
        }
    }
}

/// A namespace in which pods can be made: after an API server's return that takes a while.
pub(crate) fn namespace<'a>(kube: &'a Kube, base: &str) -> Namespace<'a> {
    let made = wait::until("a namespace", SETTLED, || {
        Namespace::create(kube, base).map(Some)
    });
    let made = made.expect("a namespace");
    let account = Object::new("v1", "ServiceAccount", made.name(), "default");
    let there = kube.wait_for(&account, SETTLED, &|_| true);
    there.expect("a service account");
    made
}

/// Networks of three kinds in a namespace: `blue` (overlay), `red` (routed, both families), `lan`
/// (macvlan with host-local, as a NAD).
pub(crate) fn three_networks(kube: &Kube, namespace: &str) {
    let lan = r#"{"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1", "mode": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/16"}]]}}"#;
    // Routed networks share the nodes' routes: their subnets must not meet those of an earlier scene.
    static NEXT: AtomicU8 = AtomicU8::new(100);
    let number = NEXT.fetch_add(1, Relaxed);
    let v4 = format!("10.{number}.0.0/16");
    let v6 = format!("fd00:{number}::/64");
    let subnets = json!({"a": {"cidr": v4}, "b": {"cidr": v6}});
    common::apply(
        kube,
        &[
            common::network(
                namespace,
                "blue",
                json!({"subnets": {"a": {"cidr": "10.1.0.0/16"}}}),
            ),
            common::network(
                namespace,
                "red",
                json!({"provider": "routed", "subnets": subnets}),
            ),
            common::nad(namespace, "lan", &[], lan),
        ],
    );
}

/// A pod on all three networks: four interfaces.
pub(crate) fn pod_of_three(namespace: &str, name: &str, node: &str) -> Value {
    let networks = [(common::PLEXUS, "blue,red"), (common::NETWORKS, "lan")];
    let mut pod = common::pod(namespace, name, node, &networks);
    pod["spec"]["containers"][0]["command"] = json!(["sleep", "36000"]);
    pod
}

pub(crate) fn agents() -> Object {
    Object::new("apps/v1", "DaemonSet", "plexus-system", "plexus-agent")
}

pub(crate) fn record_of(namespace: &str, uid: &str) -> Object {
    Object::new("plexus.dev/v1alpha1", "PodAttachments", namespace, uid)
}

/// The pod's UID.
pub(crate) fn uid_of(kube: &Kube, pod: &Object) -> String {
    let pod = kube.get(pod).expect("asked").expect("is there");
    pod["metadata"]["uid"].as_str().expect("a UID").to_owned()
}

/// Kills the process of a node's agent (or of the controller, if it is there); whether there was one.
pub(crate) fn kill_plexus(kube: &Kube, node: &str, what: &str) -> bool {
    let script = r#"for dir in /proc/[0-9]*; do
        [ "$(tr '\0' ' ' <"$dir/cmdline" 2>/dev/null | cut -d' ' -f1,2)" = "/bin/plexus $1" ] &&
        kill -9 "${dir#/proc/}" && echo killed; done; true"#;
    let output = kube.on_node(node, &["sh", "-c", script, "sh", what]);
    output.expect("runs").stdout.contains("killed")
}

/// Waits until a node's agent answers that it is ready.
pub(crate) fn wait_agent(kube: &Kube, node: &str) {
    let asked = ["curl", "-sf", "-m", "2", "http://127.0.0.1:9091/readyz"];
    common::holds(&format!("the agent of {node}"), PATIENCE, || {
        kube.on_node(node, &asked).is_ok_and(|output| output.ok())
    });
}

/// A node without an agent, as long as this lives.
pub(crate) struct Away<'a> {
    kube: &'a Kube,
    node: &'a str,
}

impl<'a> Away<'a> {
    pub(crate) fn send(kube: &'a Kube, node: &'a str) -> Self {
        let rule = json!({"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]});
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [rule]}]});
        set_affinity(
            kube,
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}),
        );
        let away = Self { kube, node };
        common::holds("the agent gone", PATIENCE, || {
            agent_pods(kube, node).is_empty()
        });
        away
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        set_affinity(self.kube, Value::Null);
        if !std::thread::panicking() {
            self.kube.wait_rolled_out(&agents()).expect("rolled out");
            wait_agent(self.kube, self.node);
        }
    }
}

fn set_affinity(kube: &Kube, affinity: Value) {
    let patch = json!({"spec": {"template": {"spec": {"affinity": affinity}}}});
    kube.lab().api().merge(&agents(), &patch).expect("patched");
}

fn agent_pods(kube: &Kube, node: &str) -> Vec<String> {
    let pods = kube.list("v1", "Pod", "plexus-system").expect("pods");
    let own = pods.iter().filter(|pod| {
        pod["spec"]["nodeName"] == node
            && pod["metadata"]["labels"]["app.kubernetes.io/component"] == "agent"
    });
    own.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

/// Waits until it holds, though the API may be away meanwhile.
pub(crate) fn wait_ready(kube: &Kube, pod: &Object, patience: Duration) -> Value {
    let ready = wait::until(&pod.to_string(), patience, || {
        Ok(kube.get(pod)?.filter(is_ready))
    });
    ready.unwrap_or_else(|error| {
        let seen = kube.get(pod).ok().flatten().unwrap_or_default();
        let messages = common::messages(kube, pod);
        panic!("{error:#}; {}; {messages:?}", seen["status"]);
    })
}
