//! The lab's tier: what goes wrong on three nodes without Kubernetes. Builds the programs with their places to die, then runs
//! one suite after the other; all run, whichever fails. At most a quarter of an hour on two cores.

use crate::{build, demo, kube, lab_cases, lock, run, vm, workspace::Workspace};
use anyhow::{Result, bail};
use std::time::Instant;

/// The tests that take minutes.
const SCENARIOS: &str = "plexus/scenarios";

/// A suite: what it is called, and how it is run.
type Suite = (&'static str, fn(&Workspace) -> Result<()>);

/// In this order. (The conformance of the embedded API takes seconds: it is part of `make test`.)
const SUITES: &[Suite] = &[
    ("the lab itself", itself),
    ("the command line", command_line),
    ("providers on Debian's kernel", debian_kernel),
    ("real network cards", cards),
    ("the demonstration", demonstration),
    ("what goes wrong", scenarios),
    ("end-to-end cases that need no kubelet", lab_cases::cases),
];

pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    built(workspace)?;
    let mut failed = Vec::new();
    for (name, suite) in SUITES {
        let begun = Instant::now();
        let done = suite(workspace);
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
fn built(workspace: &Workspace) -> Result<()> {
    kube::tools(workspace)?;
    vm::install_missing(workspace)?;
    build::with(workspace, SCENARIOS)?;
    build::static_shim(workspace)
}

fn itself(workspace: &Workspace) -> Result<()> {
    run::logged(
        workspace,
        &mut run::suite(workspace, &[SCENARIOS], &["lab"])?,
    )
}

fn command_line(workspace: &Workspace) -> Result<()> {
    run::logged(
        workspace,
        &mut run::suite(workspace, &[SCENARIOS], &["lab_cli"])?,
    )
}

/// In a virtual machine, which says all it has to say when it ends.
fn debian_kernel(workspace: &Workspace) -> Result<()> {
    run::logged(
        workspace,
        &mut run::suite(workspace, &[SCENARIOS], &["debian_kernel"])?,
    )
}

/// The tests of devices that pods get, in the virtual machine, whose cards outlive a namespace. They are taken in turn.
fn cards(workspace: &Workspace) -> Result<()> {
    const RUNNER: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";
    let runner = format!("{} --limit 900", vm::script(workspace).display());
    let mut suite = run::suite(workspace, &[SCENARIOS], &["host_device"])?;
    let suite = suite.envs([(RUNNER, &*runner), ("PLEXUS_TEST_NICS", "1")]);
    run::logged(workspace, suite.args(["--", "--test-threads=1"]))
}

fn demonstration(workspace: &Workspace) -> Result<()> {
    demo::checked(workspace, SCENARIOS)
}

/// Two labs at a time: they wait more than they work.
fn scenarios(workspace: &Workspace) -> Result<()> {
    let mut suite = run::suite(workspace, &[SCENARIOS], &["scenarios"])?;
    run::logged(
        workspace,
        suite.args(["--", "--test-threads=2", "--nocapture"]),
    )
}
