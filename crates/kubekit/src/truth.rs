//! Whether everybody tells the same story: for every node what its pods really have, the agent's
//! journal, the records, blocks and annotations in the API, routes, host ends, routers and
//! host-local's files. Looks and compares; changes nothing.
//!
//! Meant for the end of a test, when nothing is going on: what is under way counts as a disagreement,
//! so [`check`] waits a while for it to end.

mod faces;
mod kernel;
mod leases;
mod seen;

use crate::cluster::Cluster;
use crate::kubernetes::Kube;
use anyhow::{Result, bail};
use seen::World;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(500);
/// More than these are counted, not told.
const MOST: usize = 40;

/// Waits until nothing disagrees; else says everything that does.
pub fn check(kube: &Kube, patience: Duration) -> Result<()> {
    let end = Instant::now() + patience;
    loop {
        let seen = disagreements(kube);
        if seen.as_ref().is_ok_and(Vec::is_empty) {
            return Ok(());
        }
        if Instant::now() < end {
            std::thread::sleep(PAUSE);
            continue;
        }
        let all = seen?;
        let told = all.iter().take(MOST).cloned().collect::<Vec<_>>();
        bail!(
            "{} disagreements after {patience:?}:\n  {}",
            all.len(),
            told.join("\n  ")
        );
    }
}

/// Everything that disagrees now, each in a sentence. An error if it cannot be found out.
pub fn disagreements(kube: &Kube) -> Result<Vec<String>> {
    let world = World::look(kube, &kube.nodes()?)?;
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
