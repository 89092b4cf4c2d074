//! A lab of 20 nodes, from nothing until it is ready.

use anyhow::{Context, Result, bail};
use plexus_testkit::bench::{Report, Row, Samples};
use plexus_testkit::{PLEXUS, SHIM, bin};
use std::process::Command;
use std::time::Instant;

const NODES: &str = "20";
/// More would only take longer.
const UP_RUNS: usize = 5;
/// Seconds.
const AIM: f64 = 10.0;

pub(crate) fn run(rounds: usize, report: &mut Report) -> Result<()> {
    let name = format!("b{}", std::process::id() % 100_000);
    let mut samples = Samples::default();
    for _ in 0..rounds.min(UP_RUNS) {
        let begun = Instant::now();
        let up = plexus(&name, &["up", "--nodes", NODES]);
        let took = begun.elapsed();
        let down = plexus(&name, &["down"]);
        up.and(down)?;
        samples.value(took.as_secs_f64());
    }
    let met = samples.median() < AIM;
    let row = Row::new(format!("lab of {NODES} nodes up")).of("ours", &samples);
    report.push(row.unit("s").aim(&format!("< {AIM} s"), met));
    Ok(())
}

fn plexus(lab: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(bin(PLEXUS))
        .args(["lab", "--lab", lab])
        .args(arguments)
        .env("PLEXUS_CNI_BIN", bin(SHIM))
        .env(
            "KUBECONFIG",
            std::env::temp_dir().join(format!("plexus-{lab}-kubeconfig")),
        )
        .output()
        .context("cannot run plexus lab")?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr);
        bail!("plexus lab {} failed: {printed}", arguments.join(" "));
    }
    Ok(())
}
