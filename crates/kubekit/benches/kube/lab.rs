//! Where things are measured: the lab, the node, a namespace of Kubernetes with the networks, and pods
//! that no kubelet starts.

use crate::call::Pod;
use anyhow::{Context, Result, bail, ensure};
use plexus_kubekit::multus::{self, whereabouts};
use plexus_kubekit::{Cluster, Kube, Namespace, Part, wait};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The node on which calls are made.
pub(crate) const NODE: &str = "n1";
/// The parent of all macvlans.
const UPLINK: &str = "eth1";

/// The lab as the blocks see it.
pub(crate) struct BenchLab {
    pub(crate) kube: &'static Kube,
    pub(crate) namespace: Namespace<'static>,
    pub(crate) quick: bool,
    next: AtomicU32,
}

impl BenchLab {
    /// Installs what is compared with, and makes the networks.
    pub(crate) fn new(quick: bool) -> Result<Self> {
        let kube = Kube::shared()?;
        multus::prepare(kube.lab())?;
        whereabouts::prepare(kube.lab())?;
        // It wants to know a configuration of the node; ours is as good as any, and is not used.
        multus::start_daemons(kube.lab(), "00-plexus.conflist")?;
        let namespace = Namespace::create(kube, "bench")?;
        for number in 1..=3_u8 {
            for object in networks(namespace.name(), number) {
                kube.apply(&object.to_string())?;
            }
        }
        let bench = Self {
            kube,
            namespace,
            quick,
            next: AtomicU32::new(1),
        };
        bench.wait_networks()?;
        Ok(bench)
    }

    /// A name that no pod had before.
    pub(crate) fn fresh(&self, base: &str) -> String {
        format!("{base}-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// With the kubelet of the node stopped: pods that are bound there stay as they are created.
    pub(crate) fn without_kubelet<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let lab = self.kube.lab();
        let kubelet = Part::Kubelet(NODE.to_owned());
        lab.stop(&kubelet)?;
        let done = work();
        // Whatever happened: the kubelet comes back, and finds none of the pods.
        let removed = self.remove_pods();
        lab.start(&kubelet)?;
        lab.wait_nodes(&[NODE])?;
        removed?;
        done
    }

    /// Creates pods bound to the node, each with its annotations.
    pub(crate) fn make_pods(&self, wanted: &[(String, Value)]) -> Result<Vec<Pod>> {
        let texts: Vec<String> = wanted
            .iter()
            .map(|(name, annotations)| pod(self.namespace.name(), name, annotations).to_string())
            .collect();
        self.kube.apply(&texts.join("\n---\n"))?;
        let mut uids = BTreeMap::new();
        for seen in self.kube.list("v1", "Pod", self.namespace.name())? {
            let text = |pointer| seen.pointer(pointer).and_then(Value::as_str);
            if let (Some(name), Some(uid)) = (text("/metadata/name"), text("/metadata/uid")) {
                uids.insert(name.to_owned(), uid.to_owned());
            }
        }
        // Until the agent's and the daemon's watches have them.
        std::thread::sleep(Duration::from_millis(300));
        wanted
            .iter()
            .map(|(name, _)| {
                Ok(Pod {
                    namespace: self.namespace.name().to_owned(),
                    name: name.clone(),
                    uid: uids.get(name).context("a pod has no UID")?.clone(),
                })
            })
            .collect()
    }

    /// Removes all pods, and waits for their records to be gone too.
    pub(crate) fn remove_pods(&self) -> Result<()> {
        let own = [
            "delete",
            "pods",
            "--all",
            "--grace-period=0",
            "--force",
            "--wait=false",
        ];
        let mut arguments = vec!["-n", self.namespace.name()];
        arguments.extend(own);
        self.kube.kubectl(&arguments, "")?.text()?;
        wait::until("records gone", Duration::from_secs(120), || {
            let left = self.kube.list(
                "plexus.dev/v1alpha1",
                "PodAttachments",
                self.namespace.name(),
            )?;
            match left.len() {
                0 => Ok(Some(())),
                count => bail!("{count} PodAttachments are left"),
            }
        })
    }

    fn wait_networks(&self) -> Result<()> {
        wait::until("networks active", Duration::from_secs(30), || {
            let all = self
                .kube
                .list("plexus.dev/v1alpha1", "Network", self.namespace.name())?;
            let active = all
                .iter()
                .filter(|network| network["status"]["phase"] == "Active");
            Ok((active.count() == 4).then_some(()))
        })
    }
}

/// Runs a program on a node for as long as it takes; gives what it printed.
pub(crate) fn without_haste(kube: &Kube, node: &str, argv: &[&str]) -> Result<String> {
    let inside = kube.lab().inside(node, argv)?;
    let (program, arguments) = inside.split_first().context("no program")?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(
        output.status.success(),
        "{argv:?} on {node}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A pod that does nothing, on the node.
pub(crate) fn pod(namespace: &str, name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {
            "nodeName": NODE, "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false, "enableServiceLinks": false,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "localhost/pause:1", "imagePullPolicy": "Never"}],
        },
    })
}

/// One network in four forms: for everybody with host-local, for Multus with whereabouts, for Plexus
/// with blocks of its own; and once, for throughput, an overlay.
fn networks(namespace: &str, number: u8) -> Vec<Value> {
    let nad = |name: String, ipam: Value| {
        let config = json!({
            "cniVersion": "1.0.0", "type": "macvlan", "master": UPLINK, "mode": "bridge", "ipam": ipam,
        });
        json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"config": config.to_string()},
        })
    };
    let network = |name: String, spec: Value| {
        json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        })
    };
    let mut all = vec![
        nad(
            format!("local{number}"),
            json!({"type": "host-local", "ranges": [[{"subnet": format!("10.14{number}.0.0/16")}]]}),
        ),
        nad(
            format!("where{number}"),
            json!({
                "type": "whereabouts", "range": format!("10.15{number}.0.0/16"),
                "configuration_path": whereabouts::CONFIGURATION,
            }),
        ),
        network(
            format!("blocks{number}"),
            json!({
                "provider": "macvlan", "config": {"master": UPLINK, "mode": "bridge"},
                "subnets": {"a": {"cidr": format!("10.16{number}.0.0/16")}},
            }),
        ),
    ];
    if number == 1 {
        let subnets = json!({"a": {"cidr": "10.170.0.0/16"}});
        all.push(network(
            "overlay".to_owned(),
            json!({"provider": "overlay", "subnets": subnets}),
        ));
    }
    all
}
