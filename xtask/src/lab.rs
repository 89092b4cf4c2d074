//! The lab's tier: what goes wrong on three nodes without Kubernetes. Builds the programs with their places to die, then runs
//! one suite after the other; all run, whichever fails. At most a quarter of an hour on two cores.

use crate::{build, demo, kube, lab_cases, lock, place::Place, run, vm};
use anyhow::{Result, bail};
use std::time::Instant;

/// The tests that take minutes.
const SCENARIOS: &str = "plexus/scenarios";

/// A suite: what it is called, and how it is run.
type Suite = (&'static str, fn(&Place) -> Result<()>);

/// In this order. (The conformance of the embedded API takes seconds: it is part of `make test`.)
const SUITES: &[Suite] = &[
    ("the lab itself", itself),
    ("the command line", command_line),
    ("the demonstration", demonstration),
    ("what goes wrong", scenarios),
    ("end-to-end cases that need no kubelet", lab_cases::cases),
];

pub(crate) fn test(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    built(place)?;
    let mut failed = Vec::new();
    for (name, suite) in SUITES {
        let begun = Instant::now();
        let done = suite(place);
        println!("{name}: {} s", begun.elapsed().as_secs());
        if let Err(error) = done {
            failed.push(format!("{name}: {error:#}"));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{}", failed.join("; "));
}

/// Once for all: what one suite starts must not be replaced by what the next one is built with.
fn built(place: &Place) -> Result<()> {
    kube::tools(place)?;
    vm::install_missing(place)?;
    build::with(place, SCENARIOS)?;
    build::static_shim(place)
}

fn itself(place: &Place) -> Result<()> {
    run::shout(place, &mut run::suite(place, &[SCENARIOS], &["lab"])?)
}

fn command_line(place: &Place) -> Result<()> {
    run::shout(place, &mut run::suite(place, &[SCENARIOS], &["lab_cli"])?)
}

fn demonstration(place: &Place) -> Result<()> {
    demo::checked(place, SCENARIOS)
}

/// Two labs at a time: they wait more than they work.
fn scenarios(place: &Place) -> Result<()> {
    let mut suite = run::suite(place, &[SCENARIOS], &["scenarios"])?;
    run::shout(place, suite.args(["--", "--test-threads=2", "--nocapture"]))
}
