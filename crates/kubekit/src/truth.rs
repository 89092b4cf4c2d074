//! Whether everybody tells the same story: for every node what its pods really have, the agent's
//! journal, the records (with the pods' routes and rules), blocks and annotations in the API, routes, host ends,
//! routers, ports in nftables and host-local's files. Looks and compares; changes nothing.
//!
//! Who can look is a [`Sight`]: a cluster of kubelets, or a lab without them.
//!
//! Meant for the end of a test, when nothing is going on: what is under way counts as a disagreement,
//! so [`check`] waits a while for it to end.

mod faces;
mod kernel;
mod kube;
mod leases;
mod seen;
mod ways;

pub use seen::{Sandbox, Script, Seen};

use anyhow::{Result, bail};
use seen::World;
use serde_json::Value;
use std::time::{Duration, Instant};

const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// More than these are counted, not told.
const MAX_SHOWN: usize = 40;

/// Eyes on a cluster.
pub trait Sight {
    /// The nodes' names.
    fn nodes(&self) -> Result<Vec<String>>;

    /// All objects of a kind, in all namespaces.
    fn list(&self, api_version: &str, kind: &str) -> Result<Vec<Value>>;

    /// A node, by a [`Script`] that runs there.
    fn look(&self, node: &str) -> Result<Seen>;
}

/// Waits until nothing disagrees; else says everything that does.
pub fn check(sight: &dyn Sight, timeout: Duration) -> Result<()> {
    let end = Instant::now() + timeout;
    loop {
        let seen = disagreements(sight);
        if seen.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(());
        }
        if Instant::now() < end {
            std::thread::sleep(RETRY_INTERVAL);
            continue;
        }
        let all = seen?;
        let told = all.iter().take(MAX_SHOWN).cloned().collect::<Vec<_>>();
        bail!(
            "{} disagreements after {timeout:?}:\n  {}",
            all.len(),
            told.join("\n  ")
        );
    }
}

/// Everything that disagrees now, each in a sentence. An error if it cannot be found out.
pub fn disagreements(sight: &dyn Sight) -> Result<Vec<String>> {
    let world = World::look(sight)?;
    let mut found = Vec::new();
    for (name, node) in &world.nodes {
        let mut said = |text: String| found.push(format!("{name}: {text}"));
        faces::compare(&world, name, node, &mut said);
        kernel::compare(&world, name, node, &mut said);
        leases::compare(&world, name, node, &mut said);
    }
    leases::compare_all(&world, &mut |text| found.push(text));
    Ok(found)
}
