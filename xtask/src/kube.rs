//! Real clusters: builds the components, our binaries and `kubelab` (in `crates/kubekit`), and lets
//! that do the rest. `NODES` and `KUBE` (further options of `kubelab up`) come from the environment.

use crate::place::Place;
use crate::{api, build, go_tools, kube_tools, lock, run};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// The tests that need a cluster.
pub(crate) const E2E: &str = "plexus-kubekit/e2e";
/// The lab that `kube-up` makes.
const BY_HAND: &str = "lab";
/// The lab that the tests make; another than by hand, so that both can be there.
const FOR_TESTS: &str = "e2e";
const BARE: &str = "bare";
const FOR_BENCH: &str = "bench";
const FOR_SOAK: &str = "soak";

pub(crate) fn tools(place: &Place) -> Result<()> {
    go_tools::install_missing(place)?;
    kube_tools::install_missing(place)
}

pub(crate) fn up(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    let plexus = dev_binaries(place)?;
    start(place, BY_HAND, &plexus)
}

pub(crate) fn down(place: &Place) -> Result<()> {
    kubelab_built(place)?;
    stop(place, BY_HAND)
}

/// The end-to-end tests on a cluster of their own.
pub(crate) fn test(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    let plexus = dev_binaries(place)?;
    api::kubectl(place)?;
    on_bare_api_server(place)?;
    let names = end_to_end(place)?;
    let mut tests = run::suite(
        place,
        &[E2E],
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
    )?;
    tests.arg("--no-fail-fast");
    // For the tests that need a lab of their own.
    tests.env("PLEXUS_BIN", &plexus);
    in_lab(place, FOR_TESTS, &plexus, tests)
}

/// The tests of `crates/kubekit` that need a cluster: those behind the feature.
fn end_to_end(place: &Place) -> Result<Vec<String>> {
    let dir = place.root.join("crates/kubekit/tests");
    let failed = || format!("cannot read {}", dir.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&dir).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let main = if path.is_dir() {
            path.join("main.rs")
        } else {
            path.clone()
        };
        let text = std::fs::read_to_string(main).unwrap_or_default();
        if text.contains("#![cfg(feature = \"e2e\")]") {
            names.extend(
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}

/// The parts that only need an API server, on one with nothing of Plexus in it.
fn on_bare_api_server(place: &Place) -> Result<()> {
    stop(place, BARE)?;
    let kubeconfig = place.cache.join("kube").join(BARE).join("kubeconfig");
    let mut up = kubelab(place);
    up.args(["up", "--prefix", BARE, "--nodes", "1", "--cni", "none"])
        .arg("--api-flag=--runtime-config=resource.k8s.io/v1beta1=true");
    let mut bare = run::suite(place, &[E2E], &["bare_api"])?;
    bare.env("PLEXUS_TEST_KUBECONFIG", &kubeconfig);
    let mut controller = run::suite(place, &["plexus-controller/e2e"], &["api_server"])?;
    controller.env("PLEXUS_TEST_KUBECONFIG", &kubeconfig);
    // Tests of what only the agent itself sees.
    let mut agent = run::suite(place, &["plexus-agent/e2e"], &[])?;
    agent
        .args(["--lib", "--", "cluster::tests"])
        .env("PLEXUS_TEST_KUBECONFIG", &kubeconfig);
    let mut definitions = kubelab(place);
    definitions
        .args(["kubectl", "--prefix", BARE, "--"])
        .args(["apply", "--server-side", "--force-conflicts", "-f"])
        .arg(place.root.join("deploy/crds"));
    // The controller makes the definitions that it needs; the agent finds them.
    let done = run::shout(place, &mut up)
        .and_then(|()| run::shout(place, &mut bare))
        .and_then(|()| run::shout(place, &mut controller))
        .and_then(|()| run::shout(place, &mut definitions))
        .and_then(|()| run::shout(place, &mut agent))
        .and_then(|()| api::differential(place, &kubeconfig));
    let stopped = stop(place, BARE);
    done.and(stopped)
}

/// `crates/kubekit/benches/kube/`, with what users get.
pub(crate) fn bench(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    let plexus = release_binaries(place)?;
    let mut bench = run::cargo_command(place)?;
    bench.args([
        "bench",
        "-p",
        "plexus-kubekit",
        "--features",
        "e2e",
        "--bench",
        "kube",
    ]);
    in_lab(place, FOR_BENCH, &plexus, bench)
}

/// `crates/kubekit/src/bin/soak/`, with what users get.
pub(crate) fn soak(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    let plexus = release_binaries(place)?;
    let mut soak = run::cargo_command(place)?;
    soak.args(["run", "-p", "plexus-kubekit", "--bin", "soak"]);
    in_lab(place, FOR_SOAK, &plexus, soak)
}

/// Runs a command with a new lab; the lab is gone afterwards, whatever happened. What a run that was
/// interrupted has left under this name goes first.
fn in_lab(place: &Place, prefix: &str, plexus: &PathBuf, mut command: Command) -> Result<()> {
    stop(place, prefix)?;
    let state = place.cache.join("kube").join(prefix);
    command
        .env("PLEXUS_KUBE_STATE", state)
        .env("PLEXUS_KUBE_ROOT", place.cache.join("kube"))
        // Somebody's lab is not what is meant.
        .env_remove("PLEXUS_LAB");
    let done = start(place, prefix, plexus).and_then(|()| run::shout(place, &mut command));
    let stopped = stop(place, prefix);
    done.and(stopped)
}

fn start(place: &Place, prefix: &str, plexus: &PathBuf) -> Result<()> {
    let nodes = std::env::var("NODES").unwrap_or_else(|_| "2".to_owned());
    let further = std::env::var("KUBE").unwrap_or_default();
    let mut kubelab = kubelab(place);
    kubelab
        .args(["up", "--prefix", prefix, "--nodes", &nodes, "--plexus"])
        .arg(plexus)
        .arg("--shim")
        .arg(place.shim())
        .args(further.split_whitespace());
    run::shout(place, &mut kubelab)
}

fn stop(place: &Place, prefix: &str) -> Result<()> {
    run::shout(place, kubelab(place).args(["down", "--prefix", prefix]))
}

fn dev_binaries(place: &Place) -> Result<PathBuf> {
    tools(place)?;
    build::with_faults(place)?;
    build::static_shim(place)?;
    kubelab_built(place)?;
    Ok(place.target.join("debug/plexus"))
}

fn release_binaries(place: &Place) -> Result<PathBuf> {
    tools(place)?;
    build::release(place)?;
    kubelab_built(place)?;
    Ok(place.target.join("release/plexus"))
}

fn kubelab_built(place: &Place) -> Result<()> {
    run::cargo(
        place,
        &["build", "-p", "plexus-kubekit", "--bin", "kubelab"],
    )
}

/// Told where its labs are, because it has no `xtask` to ask.
fn kubelab(place: &Place) -> Command {
    let mut command = Command::new(place.target.join("debug/kubelab"));
    command.env("PLEXUS_KUBE_ROOT", place.cache.join("kube"));
    command
}
