//! A lab that lives as long as a test, made from the binaries and the manifest of the shared one.

use plexus_kubekit::layout::{Layout, TELLING};
use plexus_kubekit::{Cluster, Kube, Lab, Namespace, Spec};
use plexus_testkit::failed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Gone when dropped.
pub(crate) struct OwnLab {
    pub(crate) kube: Kube,
    _down: Down,
    _turn: MutexGuard<'static, ()>,
}

impl OwnLab {
    /// Two nodes of what `change` makes of the shared lab's specification.
    pub(crate) fn up(name: &str, change: impl FnOnce(&mut Spec)) -> Self {
        // Two labs of two nodes beside the shared one are more than a small machine carries.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = Kube::shared()
            .expect("a lab")
            .lab()
            .spec()
            .expect("its specification");
        let prefix = format!("{name}{}", std::process::id() % 100_000);
        let mut spec = Spec::new(&prefix, 2).expect("a specification");
        spec.cni = shared.cni;
        spec.binaries = shared.binaries;
        spec.manifest = shared.manifest;
        change(&mut spec);
        let down = Down(prefix);
        let lab = Lab::up(&spec).expect("a lab");
        let kube = Kube::open(lab.layout().state()).expect("a cluster");
        Self {
            kube,
            _down: down,
            _turn: turn,
        }
    }

    /// A namespace in it, and its nodes.
    pub(crate) fn stage(&self, base: &str) -> (Namespace<'_>, Vec<String>) {
        let namespace = Namespace::create(&self.kube, base).expect("a namespace");
        (namespace, self.kube.nodes().expect("nodes"))
    }
}

/// Also removes what a lab has left that did not come up.
struct Down(String);

impl Drop for Down {
    fn drop(&mut self) {
        if let Ok(layout) = Layout::of(&self.0) {
            failed::save(&format!("cluster-{}", self.0), layout.state(), &TELLING);
        }
        if let Err(error) = Lab::down(&self.0) {
            eprintln!("lab {} stays: {error:#}", self.0);
        }
    }
}
