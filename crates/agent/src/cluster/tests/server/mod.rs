//! The API side against a real API server: the one that `PLEXUS_TEST_KUBECONFIG` names, with the
//! definitions of `deploy/crds`. Without it these tests say so and end: `make test-kube` shows the
//! same with whole nodes.

mod admin;
mod away;
mod blocks;
mod cache;
mod donations;
mod events;
mod records;
mod relay;

use super::fake_hooks::FakeHooks;
use crate::cluster::{Attached, BlockUse, Cluster, ClusterOptions, Hooks, PodName};
use admin::Admin;
use plexus_api::objects::{AttachmentState, AttachmentStatus, NetworkRef};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A node of the test: its API side and what it is told.
struct TestNode {
    cluster: Cluster,
    hooks: Arc<FakeHooks>,
    directory: PathBuf,
}

impl TestNode {
    /// Makes the Node object too.
    fn start(admin: &Admin, name: &str, cidr: &str, address: &str) -> Self {
        admin.node(name, cidr, address);
        let directory = std::env::temp_dir().join(format!("plexus-cluster-{name}"));
        std::fs::create_dir_all(&directory).unwrap();
        let hooks = Arc::new(FakeHooks::default());
        Self::again(&admin.kubeconfig, name, directory, hooks)
    }

    /// With a directory that an earlier one had.
    fn again(kubeconfig: &Path, name: &str, directory: PathBuf, hooks: Arc<FakeHooks>) -> Self {
        let options = ClusterOptions {
            server: plexus_client::Server::Kubeconfig(kubeconfig.to_owned()),
            node: name.to_owned(),
            state_dir: directory.clone(),
            cni_conf_dir: directory.clone(),
            host_root: None,
            pod_cidrs: true,
            allowed_subnets: Default::default(),
            containers: false,
        };
        let told: Arc<dyn Hooks> = Arc::clone(&hooks) as Arc<dyn Hooks>;
        let cluster = Cluster::start(options, told).unwrap();
        Self {
            cluster,
            hooks,
            directory,
        }
    }

    fn synced(self) -> Self {
        assert!(self.cluster.wait_synced(Duration::from_secs(20)));
        self
    }
}

fn server() -> Admin {
    let path = std::env::var_os("PLEXUS_TEST_KUBECONFIG")
        .expect("PLEXUS_TEST_KUBECONFIG must name an API server; `make test-kube` does");
    Admin::connect(Path::new(&path))
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "not yet: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn report(pod: &PodName, sandbox: &str, networks: &[(&str, &str)]) -> Attached {
    let one = |(number, (namespace, name)): (usize, &(&str, &str))| AttachmentStatus {
        index: number as u32,
        total: networks.len() as u32,
        ordinal: 0,
        id: format!("id-{number}"),
        network: NetworkRef {
            namespace: (*namespace).to_owned(),
            name: (*name).to_owned(),
            uuid: "u".to_owned(),
        },
        interface: format!("net{number}"),
        mac: "02:00:00:00:00:01".to_owned(),
        ips: vec!["10.1.0.65/32".to_owned()],
        gateways: Vec::new(),
        default_route: Vec::new(),
        routes: Vec::new(),
        routes_left_out: 0,
        rules: Vec::new(),
        rules_left_out: 0,
        delegated: false,
        state: AttachmentState::Attached,
        message: String::new(),
    };
    Attached {
        pod: pod.clone(),
        sandbox: sandbox.to_owned(),
        attachments: networks.iter().enumerate().map(one).collect(),
        network_status: Some(serde_json::json!([{"name": "x", "interface": sandbox}])),
    }
}
