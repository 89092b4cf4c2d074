//! For tests that break things: a cluster of their own, scenarios on it one after the other, and a churn of pods
//! meanwhile. On a lab of virtual nodes (`PLEXUS_LAB`) only the scenarios run that need no more.
#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file uses some of it, and a test that cannot go on ends"
)]

pub(crate) mod churn;
pub(crate) mod follower;

use crate::common;
use plexus_kubekit::cluster::{TIMEOUT, is_ready};
use plexus_kubekit::kubernetes::STATE;
use plexus_kubekit::layout::{Layout, TELLING};
use plexus_kubekit::spec::{Binaries, Cni};
use plexus_kubekit::test_cluster::{self, Need};
use plexus_kubekit::virtual_lab::LAB;
use plexus_kubekit::{
    Breakable, Cluster, Kube, Lab, Namespace, Object, Spec, VirtualLab, consistency, wait,
};
use plexus_testkit::failed;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

const PREFIX: &str = "faults";
/// Names a running lab to use instead of a new one, while a test is being written.
const RUNNING_LAB_VAR: &str = "PLEXUS_FAULTS_STATE";

/// Longer than anything takes to settle after the last fault.
pub(crate) const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);

/// One test on the cluster that a file shares.
pub(crate) struct Scenario {
    name: &'static str,
    body: ScenarioBody,
}

enum ScenarioBody {
    Anywhere(fn(&dyn Breakable)),
    OnKubernetes(Need, fn(&Kube)),
}

impl Scenario {
    /// On a cluster of either kind.
    pub(crate) const fn anywhere(name: &'static str, body: fn(&dyn Breakable)) -> Self {
        let body = ScenarioBody::Anywhere(body);
        Self { name, body }
    }

    /// Not without this.
    pub(crate) const fn with(need: Need, name: &'static str, body: fn(&Kube)) -> Self {
        let body = ScenarioBody::OnKubernetes(need, body);
        Self { name, body }
    }
}

/// Runs all scenarios; prints each one that fails and goes on with the next. After each of them the state of the
/// cluster must be consistent. On Kubernetes those that a lab shows as well run in the long tier only, or if they are chosen by name.
pub(crate) fn run_scenarios(scenarios: &[Scenario]) {
    let only = std::env::var("PLEXUS_SCENE").unwrap_or_default();
    let host = TestHost::open();
    let cluster = host.cluster();
    let mut failed = Vec::new();
    for Scenario { name, body } in scenarios
        .iter()
        .filter(|scenario| scenario.name.contains(&only))
    {
        let started = Instant::now();
        let scenario: &dyn Fn() = match (body, &host) {
            (ScenarioBody::Anywhere(_), TestHost::Kubernetes { .. })
                if !test_cluster::is_long_run() && only.is_empty() =>
            {
                test_cluster::left_to_labs(name);
                continue;
            }
            (ScenarioBody::Anywhere(body), _) => &|| body(cluster),
            (ScenarioBody::OnKubernetes(_, body), TestHost::Kubernetes { kube, .. }) => {
                &|| body(kube)
            }
            (ScenarioBody::OnKubernetes(need, _), TestHost::VirtualLab(_)) => {
                test_cluster::left_out(name, *need);
                continue;
            }
        };
        let run = std::panic::AssertUnwindSafe(|| {
            scenario();
            consistency::check(cluster.observer(), SETTLE_TIMEOUT)
                .expect("all tell the same story");
        });
        let ended = std::panic::catch_unwind(run).is_ok();
        // A scenario that failed may have left something dead: the next one need not fail too.
        if let Err(error) = cluster.revive() {
            eprintln!("{error:#}");
        }
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

/// The cluster that the scenarios run on.
enum TestHost {
    Kubernetes { kube: Kube, own: bool },
    VirtualLab(VirtualLab),
}

impl TestHost {
    fn cluster(&self) -> &dyn Breakable {
        match self {
            Self::Kubernetes { kube, .. } => kube,
            Self::VirtualLab(lab) => lab,
        }
    }

    fn open() -> Self {
        if let Ok(name) = std::env::var(LAB) {
            let others = [STATE, RUNNING_LAB_VAR].map(std::env::var_os);
            assert_eq!(others, [None, None], "{LAB} is set too: unset one of them");
            return Self::VirtualLab(VirtualLab::open(&name).expect("a running lab"));
        }
        if let Some(state) = std::env::var_os(RUNNING_LAB_VAR) {
            let kube = Kube::open(Path::new(&state)).expect("a running lab");
            return Self::Kubernetes { kube, own: false };
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
            Ok(kube) => Self::Kubernetes { kube, own: true },
            Err(error) => {
                let _ = Lab::down(PREFIX);
                panic!("no lab: {error:#}");
            }
        }
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        let Self::Kubernetes { kube, own: true } = self else {
            return;
        };
        failed::save("cluster-faults", kube.lab().layout().state(), &TELLING);
        if let Err(error) = Lab::down(PREFIX) {
            eprintln!("the lab {PREFIX} stays: {error:#}");
        }
    }
}

/// A namespace in which pods can be made: after an API server's return that takes a while.
pub(crate) fn namespace<'a>(cluster: &'a dyn Breakable, base: &str) -> Namespace<'a> {
    let made = wait::until("a namespace", SETTLE_TIMEOUT, || {
        Namespace::create(cluster, base).map(Some)
    });
    let made = made.expect("a namespace");
    cluster.wait_usable(made.name()).expect("usable");
    made
}

/// Networks of three kinds in a namespace: `blue` (overlay), `red` (routed, both families), `lan`
/// (macvlan with host-local, as a NAD).
pub(crate) fn three_networks(cluster: &dyn Cluster, namespace: &str) {
    let lan = r#"{"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1", "mode": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/16"}]]}}"#;
    let number = free_octet(cluster);
    let v4 = format!("10.{number}.0.0/16");
    let v6 = format!("fd00:{number}::/64");
    let subnets = json!({"a": {"cidr": v4}, "b": {"cidr": v6}});
    common::apply(
        cluster,
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

/// A number for `10.…` and `fd00:…` of a routed network: those share the nodes' routes, and an earlier scenario's, or
/// an earlier test's on the same lab, may not be gone yet.
fn free_octet(cluster: &dyn Cluster) -> u8 {
    static NEXT: AtomicU8 = AtomicU8::new(100);
    let networks = cluster.list("plexus.dev/v1alpha1", "Network", "");
    let taken = format!("{:?}", networks.expect("networks"));
    let mut each = std::iter::repeat_with(|| NEXT.fetch_add(1, Relaxed)).take(80);
    let free = each.find(|number| !taken.contains(&format!("10.{number}.0.0/16")));
    free.expect("a number that no network has")
}

/// A pod on all three networks: four interfaces.
pub(crate) fn pod_of_three(namespace: &str, name: &str, node: &str) -> Value {
    let networks = [(common::PLEXUS, "blue,red"), (common::NETWORKS, "lan")];
    let mut pod = common::pod(namespace, name, node, &networks);
    pod["spec"]["containers"][0]["command"] = json!(["sleep", "36000"]);
    pod
}

pub(crate) fn record_of(namespace: &str, uid: &str) -> Object {
    Object::new("plexus.dev/v1alpha1", "PodAttachments", namespace, uid)
}

/// The pod's UID.
pub(crate) fn uid_of(cluster: &dyn Cluster, pod: &Object) -> String {
    let pod = cluster.get(pod).expect("asked").expect("is there");
    pod["metadata"]["uid"].as_str().expect("a UID").to_owned()
}

/// Waits until a node's agent answers that it is ready.
pub(crate) fn wait_agent(cluster: &dyn Breakable, node: &str) {
    cluster.wait_agent(node).expect("ready");
}

/// Kills a node's agent, which must run.
pub(crate) fn kill_agent(cluster: &dyn Breakable, node: &str) {
    assert!(
        cluster.kill_agent(node).expect("asked"),
        "no agent on {node}"
    );
}

/// Kills the controller; if that was done just now, it has to come back first.
pub(crate) fn kill_controller(cluster: &dyn Breakable) {
    let killed = wait::until("a controller to kill", TIMEOUT, || {
        Ok(cluster.kill_controller()?.then_some(()))
    });
    killed.expect("killed");
}

/// A node without an agent, as long as this lives.
pub(crate) struct NodeWithoutAgent<'a> {
    cluster: &'a dyn Breakable,
    node: &'a str,
}

impl<'a> NodeWithoutAgent<'a> {
    pub(crate) fn send(cluster: &'a dyn Breakable, node: &'a str) -> Self {
        // Given back also if it cannot be waited for.
        let away = Self { cluster, node };
        cluster.take_agent(node).expect("taken away");
        away
    }
}

impl Drop for NodeWithoutAgent<'_> {
    fn drop(&mut self) {
        let back = self.cluster.return_agent(self.node);
        if !std::thread::panicking() {
            back.expect("it is back");
        }
    }
}

/// Waits until it holds, though the API may be away meanwhile.
pub(crate) fn wait_ready(cluster: &dyn Cluster, pod: &Object, timeout: Duration) -> Value {
    let ready = wait::until(&pod.to_string(), timeout, || {
        Ok(cluster.get(pod)?.filter(is_ready))
    });
    ready.unwrap_or_else(|error| {
        let seen = cluster.get(pod).ok().flatten().unwrap_or_default();
        let messages = common::messages(cluster, pod);
        panic!("{error:#}; {}; {messages:?}", seen["status"]);
    })
}
