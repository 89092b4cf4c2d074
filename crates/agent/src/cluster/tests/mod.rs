//! The API side against a real API server: the one that `PLEXUS_TEST_KUBECONFIG` names, with the
//! definitions of `deploy/crds`. Without it these tests say so and end: `make test-kube` shows the
//! same with whole nodes.

mod admin;
mod away;
mod blocks;
mod cache;
mod events;
mod gifts;
mod records;
mod relay;

use super::{
    Asked, Attached, BlockUse, Change, Cluster, ClusterOptions, Hooks, Journaled, Keeping, PodName,
};
use admin::Admin;
use ipnet::IpNet;
use plexus_api::cni::BlockIpam;
use plexus_api::objects::{AttachmentState, AttachmentStatus, NetworkRef};
use plexus_core::ipam::{Given, Pools};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What an agent would answer.
#[derive(Default)]
struct Fake {
    pods: Mutex<Vec<Attached>>,
    usage: Mutex<Vec<BlockUse>>,
    changes: AtomicUsize,
    pools: Mutex<Pools>,
    /// What the journal would have.
    given: Mutex<Vec<Given>>,
}

impl Hooks for Fake {
    fn changed(&self, _: Change) {
        self.changes.fetch_add(1, SeqCst);
    }
    fn pods(&self) -> Option<Journaled> {
        let done = self.pods.lock().unwrap().clone();
        let uids = done.iter().map(|report| report.pod.uid.clone()).collect();
        Some(Journaled { done, uids })
    }
    fn in_use(&self, network_uid: &str, cidr: IpNet) -> Option<bool> {
        let usage = self.usage.lock().unwrap();
        let of = |one: &&BlockUse| one.network_uid == network_uid && one.cidr == cidr;
        Some(usage.iter().filter(of).any(|one| one.allocated > 0))
    }
    fn usage(&self) -> Option<Vec<BlockUse>> {
        Some(self.usage.lock().unwrap().clone())
    }
    fn give(&self, config: &BlockIpam, asked: &Asked<'_>) -> Option<Given> {
        let mut pools = self.pools.lock().unwrap();
        let given = pools.give(config, asked.family, asked.addresses, asked.node)?;
        self.given.lock().unwrap().push(given.clone());
        Some(given)
    }
    fn given(&self) -> Option<Vec<Given>> {
        Some(self.given.lock().unwrap().clone())
    }
    fn keep_given(&self, given: &Given) -> Keeping {
        if !self.pools.lock().unwrap().keep_given(given) {
            return Keeping::InUse;
        }
        let mut all = self.given.lock().unwrap();
        all.retain(|one| one.part != given.part);
        all.push(given.clone());
        Keeping::OnDisk
    }
    fn drop_given(&self, given: &Given) {
        self.pools.lock().unwrap().unmark_given(given);
        self.given.lock().unwrap().retain(|one| one != given);
    }
}

/// A node of the test: its API side and what it is told.
struct TestNode {
    cluster: Cluster,
    hooks: Arc<Fake>,
    directory: PathBuf,
}

impl TestNode {
    /// Makes the Node object too.
    fn start(admin: &Admin, name: &str, cidr: &str, address: &str) -> Self {
        admin.node(name, cidr, address);
        let directory = std::env::temp_dir().join(format!("plexus-cluster-{name}"));
        std::fs::create_dir_all(&directory).unwrap();
        let hooks = Arc::new(Fake::default());
        Self::again(&admin.kubeconfig, name, directory, hooks)
    }

    /// With a directory that an earlier one had.
    fn again(kubeconfig: &Path, name: &str, directory: PathBuf, hooks: Arc<Fake>) -> Self {
        let options = ClusterOptions {
            kubeconfig: Some(kubeconfig.to_owned()),
            node: name.to_owned(),
            state_dir: directory.clone(),
            cni_conf_dir: directory.clone(),
            host_root: None,
            pod_cidrs: true,
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
