//! The test executables of `make test-kube`: which run on the cluster that they share, which make one of their own, and what of them
//! runs in the long tier only, because the lab's tier runs the same test functions per commit (`lab_cases`).

use super::Job;
use super::executables::{Executable, Tier};
use super::schedule::{Load, Slots};
use crate::lab_cases;
use crate::workspace::Workspace;
use anyhow::{Result, bail};

/// One job on the shared cluster and one with a cluster of its own: two cores carry no more.
pub(crate) const SLOTS: Slots = Slots { all: 2, works: 1 };

/// The package whose tests these are.
const PACKAGE: &str = "plexus-kubekit";

/// What an executable needs, and what of it runs per commit.
struct Suite {
    target: &'static str,
    load: Load,
    per_commit: PerCommit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PerCommit {
    Whole,
    /// Those of these modules: what only Kubernetes can show.
    Only(&'static [&'static str]),
    /// Nothing: a lab shows all of it.
    Nothing,
}

const fn suite(target: &'static str, load: Load, per_commit: PerCommit) -> Suite {
    Suite {
        target,
        load,
        per_commit,
    }
}

use Load::{OwnCluster, SharedCluster, Waits};
use PerCommit::{Nothing, Only, Whole};

/// The longest of each kind first.
const SUITES: &[Suite] = &[
    suite("disturbances", OwnCluster, Whole),
    suite(
        "networks",
        SharedCluster,
        Only(&["objects::", "whereabouts::"]),
    ),
    suite("multus", OwnCluster, Whole),
    suite("variants", OwnCluster, Whole),
    suite(
        "cluster_cni",
        SharedCluster,
        Only(&[
            "kubelet::",
            "policies::",
            "services::",
            "static_pods::",
            "ways::",
        ]),
    ),
    suite("cli", SharedCluster, Whole),
    suite("examples", SharedCluster, Whole),
    suite("observability", SharedCluster, Whole),
    suite("one_add", SharedCluster, Only(&["default_route::"])),
    suite("privilege", SharedCluster, Whole),
    suite("privileges", SharedCluster, Whole),
    suite("query", SharedCluster, Nothing),
    suite("seed_000", SharedCluster, Whole),
    suite("smoke", SharedCluster, Whole),
    suite("status", SharedCluster, Nothing),
    suite("up_containerd", Waits, Whole),
    suite("up_kubectl", Waits, Whole),
];

/// Targets of the tier that a part of it starts by itself: they need another server.
const ELSEWHERE: &[&str] = &["apply_differential", "bare_api", "conformance", "rights"];

/// The jobs with executables. `prepare` gives each what it has to know of the shared cluster.
pub(crate) fn jobs(
    workspace: &Workspace,
    all: &[Executable],
    long: bool,
    prepare: impl Fn(&mut std::process::Command),
) -> Result<Vec<Job>> {
    check(all)?;
    let mut jobs = Vec::new();
    for suite in SUITES {
        let Some(filters) = filters(suite, long) else {
            continue;
        };
        let found = all.iter().find(|executable| is(executable, suite.target));
        let Some(executable) = found else { continue };
        let mut command = executable.timed(workspace)?;
        command.args(filters);
        prepare(&mut command);
        jobs.push(Job {
            name: executable.name(),
            command,
            load: suite.load,
        });
    }
    Ok(jobs)
}

/// Which of its tests run: all if there are no filters, none if there is no list.
fn filters(suite: &Suite, long: bool) -> Option<&'static [&'static str]> {
    match suite.per_commit {
        _ if long => Some(&[]),
        Whole => Some(&[]),
        Only(modules) => Some(modules),
        Nothing => None,
    }
}

/// What is in no table would run nowhere, and what is left to the lab has to run there.
fn check(all: &[Executable]) -> Result<()> {
    let named = |target: &str| {
        ELSEWHERE.contains(&target) || SUITES.iter().any(|suite| suite.target == target)
    };
    let here = |executable: &&Executable| {
        executable.package == PACKAGE && executable.tier == Tier::Cluster
    };
    for executable in all.iter().filter(here) {
        if !named(&executable.target) {
            bail!(
                "{} runs nowhere: name it in xtask/src/suite/make_test_kube.rs",
                executable.name()
            );
        }
    }
    for suite in SUITES {
        if !all.iter().any(|executable| is(executable, suite.target)) {
            bail!(
                "xtask/src/suite/make_test_kube.rs names {:?}, which is no test target: remove it there",
                suite.target
            );
        }
        if suite.per_commit != Whole && !lab_cases::FILES.contains(&suite.target) {
            bail!(
                "{:?} is left to the lab, which does not run it: see FILES in xtask/src/lab_cases.rs",
                suite.target
            );
        }
    }
    Ok(())
}

fn is(executable: &Executable, target: &str) -> bool {
    executable.package == PACKAGE && executable.target == target
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executables() -> Vec<Executable> {
        let targets = SUITES.iter().map(|suite| suite.target);
        let executable = |target: &str| Executable {
            package: PACKAGE.to_owned(),
            target: target.to_owned(),
            kind: "test".to_owned(),
            tier: Tier::Cluster,
            program: "/nowhere".into(),
            dir: "/".into(),
        };
        targets
            .chain(ELSEWHERE.iter().copied())
            .map(executable)
            .collect()
    }

    #[test]
    fn a_target_that_nobody_runs_and_one_that_is_not_there_are_refused() {
        let mut all = executables();
        assert!(check(&all).is_ok());
        let mut new = all[0].clone();
        new.target = "new".to_owned();
        all.push(new);
        let error = check(&all).unwrap_err().to_string();
        assert!(
            error.starts_with("plexus-kubekit new runs nowhere"),
            "{error}"
        );
        let error = check(&executables()[1..]).unwrap_err().to_string();
        assert!(error.contains("which is no test target"), "{error}");
    }

    /// A filter that nothing fits would silently leave tests out.
    #[test]
    fn the_modules_that_run_per_commit_are_there() {
        let here = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let tests = std::path::Path::new(&here).join("../crates/kubekit/tests");
        for suite in SUITES {
            let Only(modules) = suite.per_commit else {
                continue;
            };
            for module in modules {
                let name = module.trim_end_matches("::");
                let file = tests.join(suite.target).join(format!("{name}.rs"));
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                assert!(text.contains("#[test]"), "{} has no test", file.display());
            }
        }
    }

    #[test]
    fn in_the_long_tier_everything_runs() {
        for suite in SUITES {
            assert_eq!(filters(suite, true), Some(&[][..]));
        }
        let left_out = SUITES
            .iter()
            .filter(|suite| filters(suite, false).is_none());
        assert!(left_out.count() > 0);
    }
}
