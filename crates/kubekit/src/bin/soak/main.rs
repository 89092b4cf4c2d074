//! `make soak`: pods with random networks come and go on a cluster for an hour, while agents, the controller,
//! kubelets, containerds and the API server are killed. Every few minutes the churn pauses, every pod
//! must be ready, and everybody must tell the same story (`plexus_kubekit::consistency`).
//!
//! `SOAK_MINUTES` (60), `SOAK_SEED` (from the clock). Takes the lab that `PLEXUS_KUBE_STATE` names. Prints what happens,
//! and a summary as JSON at the end, which a run of an hour also leaves in `bench/results/soak.json`.
#![allow(clippy::print_stdout, reason = "what happens is told as it happens")]

mod churn;
mod faults;
mod memory;
mod networks;
mod rng;
mod summary;

use anyhow::{Context, Result, bail};
use churn::Churn;
use faults::Faults;
use plexus_kubekit::{Kube, Namespace, consistency};
use rng::Rng;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use summary::Summary;

/// How long the churn goes on between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(240);
/// How long what was killed may take to be back, and the truth to be the same for all.
const TIMEOUT: Duration = Duration::from_secs(240);
const FULL: u64 = 60;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing went wrong.
fn run() -> Result<bool> {
    let minutes = number("SOAK_MINUTES")?.unwrap_or(FULL);
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = number("SOAK_SEED")?.unwrap_or(clock.map_or(1, |since| since.as_secs()));
    println!("soak: {minutes} minutes, SOAK_SEED={seed}");
    let kube = Kube::shared()?;
    let mut summary = Summary::new(minutes, seed);
    let result = soak(kube, Duration::from_secs(minutes * 60), seed, &mut summary);
    if let Err(error) = &result {
        summary.wrong(format!("{error:#}"));
    }
    summary.print(minutes >= FULL)?;
    Ok(summary.good())
}

fn soak(kube: &'static Kube, length: Duration, seed: u64, summary: &mut Summary) -> Result<()> {
    let start = Instant::now();
    let namespace = Namespace::create(kube, "soak")?;
    networks::make(kube, namespace.name())?;
    let mut churn = Churn::new(kube, &namespace, Rng::new(seed))?;
    let mut faults = Faults::new(kube, Rng::new(seed ^ 0x5eed))?;
    let mut last_look = start;
    while start.elapsed() < length {
        let left = length.saturating_sub(start.elapsed());
        let end = Instant::now() + CHECK_INTERVAL.min(left);
        while Instant::now() < end {
            churn.step(summary);
            faults.step(length, summary)?;
            if last_look.elapsed() >= Duration::from_secs(30) {
                last_look = Instant::now();
                memory::look(kube, start.elapsed(), summary);
            }
        }
        faults.mend()?;
        settle(kube, &mut churn, summary);
        memory::look(kube, start.elapsed(), summary);
        summary.print_progress(start.elapsed());
    }
    churn.clear()?;
    check(kube, "after everything was deleted", summary);
    memory::look(kube, start.elapsed(), summary);
    Ok(())
}

/// Waits until every pod is ready, then compares what everybody says.
fn settle(kube: &Kube, churn: &mut Churn<'_>, summary: &mut Summary) {
    let begun = Instant::now();
    for wrong in churn.wait_ready(TIMEOUT) {
        summary.wrong(wrong);
    }
    check(kube, "between", summary);
    summary.settled.push(begun.elapsed().as_secs_f64());
}

fn check(kube: &Kube, when: &str, summary: &mut Summary) {
    summary.checks += 1;
    if let Err(error) = consistency::check(kube, TIMEOUT) {
        summary.wrong(format!("{when}: {error:#}"));
    }
}

fn number(name: &str) -> Result<Option<u64>> {
    let Ok(text) = std::env::var(name) else {
        return Ok(None);
    };
    let value: u64 = text
        .parse()
        .with_context(|| format!("{name} {text:?} is no number"))?;
    if value == 0 {
        bail!("{name} is 0: at least 1 is wanted");
    }
    Ok(Some(value))
}
