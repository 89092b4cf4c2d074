//! The lab's tier: what goes wrong on three nodes without Kubernetes, and what runs in a virtual machine. Suites of labs run two at
//! a time, because they wait more than they work; virtual machines, which may be emulated, run alone. All run, whichever fails.

use crate::suite::executables::{self, Executable, Tier};
use crate::suite::schedule::{Load, Slots};
use crate::suite::{self, Job};
use crate::{build, demo, failed, kube, lab_cases, lock, vm, workspace::Workspace};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// The verb that runs one part of this tier, which [`test`] starts: `cargo xtask lab-part NAME`.
pub(crate) const PART: &str = "lab-part";

/// A part that is no test executable, by its name. Needs what [`built`] builds.
type Part = (&'static str, fn(&Workspace) -> Result<()>);

const DEMONSTRATION: Part = ("demonstration", demo::checked);
const CASES: Part = ("cases", lab_cases::cases);

/// Two suites at a time. Some have two labs at a time themselves.
const SLOTS: Slots = Slots { all: 2, works: 1 };

/// A test target of this tier.
struct Suite {
    target: &'static str,
    load: Load,
    arguments: &'static [&'static str],
}

const SCENARIOS: Suite = Suite {
    target: "scenarios",
    load: Load::Waits,
    arguments: &["--test-threads=2", "--nocapture"],
};
const COMMAND_LINE: Suite = Suite {
    target: "lab_cli",
    load: Load::Waits,
    arguments: &[],
};
const DEBIAN_KERNEL: Suite = Suite {
    target: "debian_kernel",
    load: Load::Alone,
    arguments: &[],
};
/// The tests of devices that pods get, in the virtual machine, whose cards outlive a namespace. They are taken in turn.
const CARDS: Suite = Suite {
    target: "host_device",
    load: Load::Alone,
    arguments: &["--test-threads=1"],
};

pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    failed::forget(workspace)?;
    let executables = built(workspace)?;
    suite::run(
        workspace,
        "make test-lab",
        SLOTS,
        jobs(workspace, &executables)?,
    )
}

/// One part, when [`test`] starts it.
pub(crate) fn part(workspace: &Workspace, name: &str) -> Result<()> {
    let found = [DEMONSTRATION, CASES]
        .into_iter()
        .find(|part| part.0 == name);
    let (_, run) = found.with_context(|| format!("no part {name:?} of `make test-lab`"))?;
    run(workspace)
}

/// Once for all: what one suite starts must not be replaced by what the next one is built with.
fn built(workspace: &Workspace) -> Result<Vec<Executable>> {
    kube::tools(workspace)?;
    vm::install_missing(workspace)?;
    let executables = executables::built(workspace)?;
    build::programs(workspace)?;
    build::static_shim(workspace)?;
    Ok(executables)
}

/// The longest first, and what is alone at the end.
fn jobs(workspace: &Workspace, executables: &[Executable]) -> Result<Vec<Job>> {
    check(executables)?;
    Ok(vec![
        test_job(workspace, executables, &SCENARIOS)?,
        part_job(workspace, DEMONSTRATION)?,
        test_job(workspace, executables, &COMMAND_LINE)?,
        part_job(workspace, CASES)?,
        test_job(workspace, executables, &DEBIAN_KERNEL)?,
        cards(workspace, executables)?,
    ])
}

/// A new target of this tier is not forgotten.
fn check(executables: &[Executable]) -> Result<()> {
    let here = [&SCENARIOS, &COMMAND_LINE, &DEBIAN_KERNEL].map(|suite| suite.target);
    for executable in executables
        .iter()
        .filter(|executable| executable.tier == Tier::Lab)
    {
        if !here.contains(&&*executable.target) {
            bail!(
                "{} runs nowhere: name it in xtask/src/lab.rs",
                executable.name()
            );
        }
    }
    Ok(())
}

fn test_job(workspace: &Workspace, executables: &[Executable], suite: &Suite) -> Result<Job> {
    let executable = named(executables, suite.target)?;
    let mut command = executable.timed(workspace)?;
    command.args(suite.arguments);
    Ok(Job {
        name: executable.name(),
        command,
        load: suite.load,
    })
}

fn cards(workspace: &Workspace, executables: &[Executable]) -> Result<Job> {
    let executable = named(executables, CARDS.target)?;
    let mut command = executable.on(workspace, &vm::script(workspace))?;
    command
        .args(["--limit", "900"])
        .arg(&executable.program)
        .args(CARDS.arguments);
    command.env("PLEXUS_TEST_NICS", "1");
    Ok(Job {
        name: format!("{} in a virtual machine", executable.name()),
        command,
        load: CARDS.load,
    })
}

fn part_job(workspace: &Workspace, part: Part) -> Result<Job> {
    // It asks for the place of `xtask`, as we did.
    let mut command = Command::new(workspace.target.join("debug/xtask"));
    command.args([PART, part.0]).current_dir(&workspace.root);
    Ok(Job {
        name: part.0.to_owned(),
        command,
        load: Load::Waits,
    })
}

fn named<'a>(executables: &'a [Executable], target: &str) -> Result<&'a Executable> {
    let found = executables
        .iter()
        .find(|executable| executable.target == target);
    found.with_context(|| format!("no test target is called {target:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executable(target: &str, tier: Tier) -> Executable {
        Executable {
            package: "plexus".to_owned(),
            target: target.to_owned(),
            kind: "test".to_owned(),
            tier,
            program: "/nowhere".into(),
            dir: "/".into(),
        }
    }

    #[test]
    fn a_target_that_nobody_runs_is_refused() {
        let known = [
            executable("scenarios", Tier::Lab),
            executable("pods", Tier::Test),
        ];
        assert!(check(&known).is_ok());
        let error = check(&[executable("new", Tier::Lab)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "plexus new runs nowhere: name it in xtask/src/lab.rs"
        );
    }
}
