//! Whether everybody tells the same story: for every node what its pods really have, the agent's
//! journal, the records (with the pods' routes and rules), blocks and annotations in the API, routes, host ends,
//! routers, ports in nftables and host-local's files. Looks and compares; changes nothing.
//!
//! An [`Observer`] reads the state of a cluster: of one with kubelets, or of a lab without them.
//!
//! Meant for the end of a test, when nothing is going on: what is under way counts as a disagreement,
//! so [`check`] waits a while for it to end.

mod interfaces;
mod kernel;
mod kube;
mod leases;
mod observed;
mod pod_routes;

pub use observed::{NodeObservation, Sandbox, Script};

use anyhow::{Result, bail};
use observed::ClusterState;
use serde_json::Value;
use std::time::{Duration, Instant};

const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How many disagreements an error lists; further ones are only counted.
const MAX_SHOWN: usize = 40;

/// Reads the state of a cluster.
pub trait Observer {
    /// The nodes' names.
    fn nodes(&self) -> Result<Vec<String>>;

    /// All objects of a kind, in all namespaces.
    fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>>;

    /// Reads the state of a node with a [`Script`] that runs there.
    fn observe(&self, node: &str) -> Result<NodeObservation>;
}

/// Waits until nothing disagrees; else says everything that does.
pub fn check(observer: &dyn Observer, timeout: Duration) -> Result<()> {
    let end = Instant::now() + timeout;
    loop {
        let observed = disagreements(observer);
        if observed.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(());
        }
        if Instant::now() < end {
            std::thread::sleep(RETRY_INTERVAL);
            continue;
        }
        let all = observed?;
        let first = all.iter().take(MAX_SHOWN).cloned().collect::<Vec<_>>();
        bail!(
            "{} disagreements after {timeout:?}:\n  {}",
            all.len(),
            first.join("\n  ")
        );
    }
}

/// Everything that disagrees now, each in a sentence. An error if it cannot be found out.
pub fn disagreements(observer: &dyn Observer) -> Result<Vec<String>> {
    let state = ClusterState::observe(observer)?;
    let mut found = Vec::new();
    for (name, node) in &state.nodes {
        let mut report = |text: String| found.push(format!("{name}: {text}"));
        interfaces::compare(&state, name, node, &mut report);
        kernel::compare(&state, name, node, &mut report);
        leases::compare(&state, name, node, &mut report);
    }
    leases::compare_all(&state, &mut |text| found.push(text));
    Ok(found)
}
