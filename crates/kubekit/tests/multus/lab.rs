//! The lab of these tests: the reference plugins connect its pods, and Plexus only does what it is
//! called for.

use plexus_kubekit::layout::{Layout, TELLING};
use plexus_kubekit::multus::{self, Flavour};
use plexus_kubekit::spec::Cni;
use plexus_kubekit::{Cluster, Kube, Lab, Spec, bridge, wait};
use plexus_testkit::failed;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

const PREFIX: &str = "multus";

/// Gone when dropped. `PLEXUS_TEST_KEEP=1` keeps that of a failing test.
pub(crate) struct MultusLab {
    pub(crate) kube: Kube,
}

impl MultusLab {
    /// A lab with the same Plexus as the shared one, told not to give pods their first interface.
    pub(crate) fn up() -> Self {
        Lab::down(PREFIX).expect("nothing is left of an earlier run");
        let shared = Kube::shared()
            .expect("a lab")
            .lab()
            .spec()
            .expect("its making");
        let spec = Spec {
            cni: Cni::Bridge,
            binaries: shared.binaries,
            manifest: shared.manifest,
            edits: vec![(
                "--cluster-network=own".to_owned(),
                "--cluster-network=none".to_owned(),
            )],
            ..Spec::new(PREFIX, 2).expect("two nodes")
        };
        let gone_if_this_fails = Down;
        let lab = Lab::up(&spec).expect("a lab");
        lab.install_plexus().expect("Plexus");
        multus::prepare(&lab).expect("Multus");
        let kube = Kube::open(lab.layout().state()).expect("the lab");
        std::mem::forget(gone_if_this_fails);
        Self { kube }
    }

    /// Makes Multus the CNI of every node.
    pub(crate) fn multus(&self, flavour: Flavour) {
        let lab = self.kube.lab();
        if flavour == Flavour::Thick {
            let file = bridge::CONFLIST.rsplit('/').next().expect("a name");
            multus::start_daemons(lab, file).expect("the daemons");
        }
        for node in self.kube.nodes().expect("nodes") {
            let default = self.default_network(&node);
            let configuration = multus::configuration(flavour, &default);
            multus::put_first(lab, &node, &configuration).expect("Multus in use");
        }
    }

    /// What the reference plugins are told on this node.
    pub(crate) fn default_network(&self, node: &str) -> Value {
        let text = self.on(node, &format!("cat {}", bridge::CONFLIST));
        serde_json::from_str(&text).expect("JSON")
    }

    /// What a shell script on a node prints; it must succeed.
    pub(crate) fn on(&self, node: &str, script: &str) -> String {
        let output = self
            .kube
            .on_node(node, &["sh", "-c", script])
            .expect("runs");
        match output.text() {
            Ok(text) => text,
            Err(error) => panic!("{node}: {script}: {error:#}"),
        }
    }

    /// Everything on a node that attachments leave their traces in: links, those in routers too (a
    /// router with its tunnel stays as long as its network), addresses of the reference plugins, results that
    /// Multus keeps.
    pub(crate) fn traces(&self, node: &str) -> BTreeSet<String> {
        let script = "ip -o link | cut -d: -f2 | cut -d@ -f1 | grep -vx ' cni0'; \
             for router in /run/plexus/routers/*; do \
                 [ ! -e $router ] || nsenter --net=$router ip -o -d link | grep -v -e vxlan -e LOOPBACK; done; \
             find /var/lib/cni/networks /var/lib/cni/multus -type f \
             ! -name 'last_reserved_ip*' ! -name lock 2>/dev/null; true";
        let text = self.on(node, script);
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// Waits until every node is as it was.
    pub(crate) fn wait_traces(&self, before: &[BTreeSet<String>]) {
        for (node, before) in self.kube.nodes().expect("nodes").iter().zip(before) {
            let mut left = BTreeSet::new();
            let same = wait::until("no traces", Duration::from_secs(20), || {
                left = self.traces(node);
                Ok((left == *before).then_some(()))
            });
            assert!(same.is_ok(), "{node} has {left:?}, had {before:?}");
        }
    }

    /// The traces on all nodes.
    pub(crate) fn all_traces(&self) -> Vec<BTreeSet<String>> {
        let nodes = self.kube.nodes().expect("nodes");
        nodes.iter().map(|node| self.traces(node)).collect()
    }
}

impl Drop for MultusLab {
    fn drop(&mut self) {
        drop(Down);
    }
}

struct Down;

impl Drop for Down {
    fn drop(&mut self) {
        if let Ok(layout) = Layout::of(PREFIX) {
            failed::save("cluster-multus", layout.state(), &TELLING);
        }
        let keep = std::thread::panicking() && std::env::var_os("PLEXUS_TEST_KEEP").is_some();
        if !keep && let Err(error) = Lab::down(PREFIX) {
            eprintln!("lab {PREFIX} stays: {error:#}");
        }
    }
}
