//! The cluster that the tests of this run share: Kubernetes (`PLEXUS_KUBE_STATE`) or a lab of virtual nodes
//! (`PLEXUS_LAB`). Only this module says what only the former has.
//!
//! Within a file each case asks for what it needs ([`Need`]); so does each scenario of `disturbances`. These files are for Kubernetes as a whole:
//!
//! | file | why not on a lab | what shows the same there |
//! |---|---|---|
//! | `smoke` | kubelets, Services and the API server's own address are what it is about | `plexus/tests/lab` |
//! | `cli` | agents that are pods, podCIDRs, a kubelet's Events, users with few rights | `plexus/tests/lab_cli` |
//! | `multus`, `variants` | another CNI, or other flags of the agents, installed by a manifest | nothing: a lab has one CNI |
//! | `examples` | images are run | `plexus/tests/lab/documents.rs` |
//! | `privilege`, `privileges` | RBAC and admission, which the embedded API does not have | nothing |
//! | `up_kubectl`, `up_containerd` | one machine, without a cluster of either kind | – |
//! | `conformance`, `apply_differential` | any API server, by its kubeconfig | the same, on the embedded one |
//! | `bare_api` | a real API server without Plexus | nothing: a lab has it |

use crate::cluster::Cluster;
use crate::kubernetes::{Kube, STATE};
use crate::virtual_lab::{LAB, VirtualLab};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// What a case, or a part of one, cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Images that are run.
    Containers,
    /// A kubelet's probes, static pods, logs and forwarded ports.
    Kubelet,
    /// Services, their addresses and kube-proxy.
    Services,
    /// Kinds that only Kubernetes serves.
    Kinds,
    /// A machine whose power can be cut, and comes back. `scenarios/removal.rs` removes nodes of a lab.
    Power,
    /// A kubelet of one node, containerd or etcd, to be killed alone. `scenarios/churn.rs` kills every part of a lab,
    /// more often; `disk_full.rs` and `api_away.rs` are about its store.
    Parts,
}

impl Need {
    /// Why a lab of virtual nodes does not have it.
    fn why(self) -> &'static str {
        match self {
            Self::Containers => "a lab gives pods their networks and runs no containers",
            Self::Kubelet => "a lab's keeper makes sandboxes; it probes, forwards and logs nothing",
            Self::Services => "a lab has no Services and no kube-proxy",
            Self::Kinds => "the embedded API does not serve this kind",
            Self::Power => "a lab's nodes boot with the machine; remove-node is the end of one",
            Self::Parts => "a lab has one keeper for all nodes, and no containerd and etcd",
        }
    }
}

/// The cluster that this test run shares. Tests use namespaces of their own in it, and leave it as they
/// found it.
pub fn shared() -> Result<&'static dyn Cluster> {
    match (std::env::var_os(STATE), std::env::var_os(LAB)) {
        (Some(_), Some(_)) => bail!("both {STATE} and {LAB} are set: unset one of them"),
        (_, None) => Ok(Kube::shared()?),
        (None, Some(_)) => Ok(VirtualLab::shared()?),
    }
}

/// The same, if it is Kubernetes. On a lab: none, and what is left out is said, past the harness that
/// would keep it to itself.
pub fn kubernetes(need: Need) -> Result<Option<&'static Kube>> {
    if std::env::var_os(STATE).is_none() && std::env::var_os(LAB).is_some() {
        let thread = std::thread::current();
        left_out(thread.name().unwrap_or("a test"), need);
        return Ok(None);
    }
    Kube::shared().map(Some)
}

/// Whether this run has the time for what another tier shows as well: `make test-long`.
pub fn is_long_run() -> bool {
    std::env::var_os("PLEXUS_TEST_LONG").is_some()
}

/// Says what is not done on Kubernetes in each run.
pub fn left_to_labs(what: &str) {
    print_once(format!(
        "{what}: left out, a lab shows it; `make test-long` runs it on Kubernetes too\n"
    ));
}

/// Says what is not done on a lab, and why.
pub fn left_out(what: &str, need: Need) {
    print_once(format!(
        "{what}: left out, needs {need:?}: {}\n",
        need.why()
    ));
}

fn print_once(line: String) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !printed.contains(&line) {
        // A closed stderr is nobody's loss.
        let _ = std::io::stderr().write_all(line.as_bytes());
        printed.insert(line);
    }
}
