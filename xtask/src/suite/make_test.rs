//! The test executables of `make test`: those that need neither a cluster nor minutes. Says which may run side by side, and
//! which of their tests other tiers run.

use super::Job;
use super::executables::{Executable, Tier};
use super::schedule::{Load, Slots};
use crate::workspace::Workspace;
use anyhow::{Result, bail};

/// Each executable has libtest's own threads besides.
pub(crate) const SLOTS: Slots = Slots { all: 3, works: 2 };

/// A package and a target of it.
type Target = (&'static str, &'static str);

/// Nothing else runs meanwhile: they measure how long something takes or how often a thread wakes, count packets, or compare what the
/// whole machine has before and after.
const ALONE: &[Target] = &[
    ("plexus-kernel", "kernel"),
    ("plexus-embedded", "server"),
    ("plexus", "lab"),
    ("plexus-testkit", "idle"),
    ("plexus-testkit", "load"),
    ("plexus-testkit", "host_device"),
];

/// These sleep, or wait for what they have started.
const WAITS: &[Target] = &[
    ("plexus-agent", "plexus_agent"),
    ("plexus-lab", "plexus_lab"),
    ("plexus-testkit", "hard"),
    ("plexus-testkit", "crash"),
];

/// The longest of the others, which begins early, so that it is not left alone at the end.
const LONGEST: Target = ("plexus-testkit", "crash");
/// It is run in parts, side by side: one for each of these parts of its tests' names, and one for the rest.
const PARTS_OF_LONGEST: &[&str] = &["four", "one_"];

/// Tests among others of their executable, which need more than `make test` has: on an API server without Plexus.
pub(crate) const ON_BARE_SERVER: (&str, &str) = ("plexus-agent", "cluster::tests::server");

/// The suite that also a real API server passes; `make test` gives it the embedded one.
pub(crate) const CONFORMANCE: Target = ("plexus-kubekit", "conformance");

/// Which executables run, in the order in which they start, and the arguments of each.
fn selected(all: &[Executable]) -> Vec<(&Executable, Vec<&'static str>)> {
    let chosen =
        |executable: &&Executable| executable.tier == Tier::Test || is(executable, &CONFORMANCE);
    let mut chosen: Vec<&Executable> = all.iter().filter(chosen).collect();
    chosen.sort_by_key(|executable| (load(executable) != Load::Alone, !is(executable, &LONGEST)));
    let runs = |executable| {
        arguments(executable)
            .into_iter()
            .map(move |arguments| (executable, arguments))
    };
    chosen.into_iter().flat_map(runs).collect()
}

/// The arguments of each run of an executable: one, as a rule.
fn arguments(executable: &Executable) -> Vec<Vec<&'static str>> {
    let (package, server) = ON_BARE_SERVER;
    if is(executable, &LONGEST) {
        let rest = PARTS_OF_LONGEST.iter().flat_map(|part| ["--skip", part]);
        let parts = PARTS_OF_LONGEST.iter().map(|part| vec![*part]);
        parts.chain([rest.collect()]).collect()
    } else if executable.package == package && executable.kind == "lib" {
        vec![vec!["--skip", server]]
    } else {
        vec![Vec::new()]
    }
}

fn load(executable: &Executable) -> Load {
    let among = |targets: &[Target]| targets.iter().any(|target| is(executable, target));
    match () {
        () if among(ALONE) => Load::Alone,
        () if among(WAITS) => Load::Waits,
        () => Load::Works,
    }
}

fn is(executable: &Executable, target: &Target) -> bool {
    (&*executable.package, &*executable.target) == *target
}

/// A table that names what is no longer there would silently do nothing.
fn check_tables(all: &[Executable]) -> Result<()> {
    for target in [ALONE, WAITS, &[LONGEST, CONFORMANCE]].concat() {
        if !all.iter().any(|executable| is(executable, &target)) {
            bail!(
                "xtask/src/suite/make_test.rs names {target:?}, which is no test target: remove it there"
            );
        }
    }
    Ok(())
}

/// The jobs of `make test`. The conformance tests speak to the server that `kubeconfig` names.
pub(crate) fn jobs(
    workspace: &Workspace,
    all: &[Executable],
    kubeconfig: &std::path::Path,
) -> Result<Vec<Job>> {
    check_tables(all)?;
    let mut jobs = Vec::new();
    for (executable, arguments) in selected(all) {
        let mut command = executable.timed(workspace)?;
        command.args(&arguments);
        if is(executable, &CONFORMANCE) {
            command.env("PLEXUS_CONFORMANCE_KUBECONFIG", kubeconfig);
        }
        jobs.push(Job {
            name: [&[&*executable.name()], &*arguments].concat().join(" "),
            command,
            load: load(executable),
        });
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executable(package: &str, target: &str, kind: &str, tier: Tier) -> Executable {
        Executable {
            package: package.to_owned(),
            target: target.to_owned(),
            kind: kind.to_owned(),
            tier,
            program: "/nowhere".into(),
            dir: "/".into(),
        }
    }

    #[test]
    fn what_needs_a_cluster_is_left_out_of_make_test() {
        let all = [
            executable("plexus-agent", "plexus_agent", "lib", Tier::Test),
            executable("plexus-kubekit", "conformance", "test", Tier::Cluster),
            executable("plexus-kubekit", "networks", "test", Tier::Cluster),
            executable("plexus", "scenarios", "test", Tier::Lab),
            executable("plexus-kernel", "kernel", "test", Tier::Test),
            executable("plexus-testkit", "bad_input", "test", Tier::Test),
            executable("plexus-testkit", "crash", "test", Tier::Test),
        ];
        let selected = selected(&all);
        let names: Vec<(&str, Vec<&str>)> = selected
            .iter()
            .map(|(executable, arguments)| (&*executable.target, arguments.clone()))
            .collect();
        assert_eq!(
            names,
            [
                ("kernel", vec![]),
                ("crash", vec!["four"]),
                ("crash", vec!["one_"]),
                ("crash", vec!["--skip", "four", "--skip", "one_"]),
                ("plexus_agent", vec!["--skip", "cluster::tests::server"]),
                ("conformance", vec![]),
                ("bad_input", vec![]),
            ]
        );
    }

    #[test]
    fn what_measures_is_alone() {
        let of = |package, target| load(&executable(package, target, "test", Tier::Test));
        assert_eq!(of("plexus-kernel", "kernel"), Load::Alone);
        assert_eq!(of("plexus-testkit", "hard"), Load::Waits);
        assert_eq!(of("plexus-core", "pods"), Load::Works);
        // The target of another package that is called alike.
        assert_eq!(of("plexus-core", "kernel"), Load::Works);
    }

    #[test]
    fn a_table_that_names_nothing_is_refused() {
        let error = check_tables(&[]).unwrap_err().to_string();
        assert!(error.contains("no test target"), "{error}");
    }
}
