//! The node on which everything happens, and its pods. Owns making pods, throwing them away in
//! bulk, and seeing that nothing stays behind.

use crate::config::{FLOOR_BRIDGE, PEER_BRIDGE, UPLINK};
use crate::floor::Floor;
use anyhow::{Context, Result, bail, ensure};
use plexus_kernel::{Netns, Socket, observe};
use plexus_testkit::{Agent, Node, Pod, SHIM};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Namespaces are thrown away this many at a time: the kernel's clean-up would disturb a call.
const DELETED_AT_ONCE: usize = 200;
/// How long that clean-up is given.
const CLEANUP_PAUSE: Duration = Duration::from_millis(400);

/// A node with an agent, and the programs that are compared.
pub(crate) struct Lab<'n> {
    node: &'n Node,
    agent: &'n Agent<'n>,
    netns: Netns,
    shim: PathBuf,
    plugins: PathBuf,
    floor: Floor,
    next: AtomicU16,
    used: Mutex<Vec<BenchPod<'n>>>,
}

/// A pod that a call is made for.
pub(crate) struct BenchPod<'n> {
    pub(crate) pod: Pod<'n>,
    pub(crate) netns: Netns,
    pub(crate) number: u16,
}

impl<'n> Lab<'n> {
    /// Copies the shim to where runtimes would find it.
    pub(crate) fn new(node: &'n Node, agent: &'n Agent<'n>) -> Result<Self> {
        let built = variable("PLEXUS_STATIC_SHIM")?;
        let shim = node.cni_bin().join(SHIM);
        std::fs::copy(&built, &shim)
            .with_context(|| format!("cannot copy {}: run make bench-cni", built.display()))?;
        let plugins = variable("PLEXUS_REF_PLUGINS")?;
        ensure!(
            plugins.join("host-local").is_file(),
            "no reference plugins in {}: run make setup",
            plugins.display()
        );
        let netns = Netns::open(node.ns().path())?;
        let floor = netns.enter(Floor::new)??;
        Ok(Self {
            node,
            agent,
            netns,
            shim,
            plugins,
            floor,
            next: AtomicU16::new(10),
            used: Mutex::default(),
        })
    }

    pub(crate) fn node(&self) -> &'n Node {
        self.node
    }

    pub(crate) fn agent(&self) -> &'n Agent<'n> {
        self.agent
    }

    pub(crate) fn node_netns(&self) -> &Netns {
        &self.netns
    }

    pub(crate) fn shim(&self) -> &Path {
        &self.shim
    }

    pub(crate) fn plugin(&self, name: &str) -> PathBuf {
        self.plugins.join(name)
    }

    pub(crate) fn floor(&self) -> Floor {
        self.floor
    }

    /// New pods, empty but for `lo`.
    pub(crate) fn bench_pods(&self, count: usize) -> Result<Vec<BenchPod<'n>>> {
        (0..count)
            .map(|_| {
                let number = self.next.fetch_add(1, Ordering::SeqCst);
                let pod = self.node.pod(&format!("b{number}"));
                let netns = Netns::open(pod.ns().path())?;
                Ok(BenchPod { pod, netns, number })
            })
            .collect()
    }

    /// Takes pods back, which must be empty again.
    pub(crate) fn release(&self, bench_pods: Vec<BenchPod<'n>>) -> Result<()> {
        for bench_pod in &bench_pods {
            let mut socket = Socket::open_in(&bench_pod.netns)?;
            let left = observe::links(&mut socket)?;
            if let Some(link) = left.iter().find(|link| link.name != "lo") {
                bail!("{} is left in pod {}", link.name, bench_pod.pod.container());
            }
        }
        let mut used = self
            .used
            .lock()
            .map_err(|_| anyhow::anyhow!("a client panicked"))?;
        used.extend(bench_pods);
        if used.len() >= DELETED_AT_ONCE {
            used.clear();
            std::thread::sleep(CLEANUP_PAUSE);
        }
        Ok(())
    }

    /// Nothing but the uplink and the bridges may be left on the node.
    pub(crate) fn check_node(&self) -> Result<()> {
        let mut socket = Socket::open_in(&self.netns)?;
        for link in observe::links(&mut socket)? {
            let known = ["lo", UPLINK, PEER_BRIDGE, FLOOR_BRIDGE, "px0", "px1"];
            ensure!(
                known.contains(&link.name.as_str()),
                "{} is left on the node",
                link.name
            );
        }
        Ok(())
    }
}

fn variable(name: &str) -> Result<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    Ok(PathBuf::from(value.with_context(|| {
        format!("{name} is not set: run make bench-cni, or eval \"$(cargo xtask env)\" first")
    })?))
}
