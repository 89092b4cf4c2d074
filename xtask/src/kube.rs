//! Real clusters: builds the components, our binaries and `kubelab` (in `crates/kubekit`), and lets
//! that do the rest. `NODES` and `KUBE` (further options of `kubelab up`) come from the environment.

use crate::suite::{executables, make_test};
use crate::workspace::Workspace;
use crate::{api, build, failed, go_tools, kube_tools, lock, run};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// The lab that `kube-up` makes.
const BY_HAND: &str = "lab";
/// The lab that the tests make; another than by hand, so that both can be there.
const FOR_TESTS: &str = "e2e";
const BARE: &str = "bare";
const FOR_BENCH: &str = "bench";
const FOR_SOAK: &str = "soak";

pub(crate) fn tools(workspace: &Workspace) -> Result<()> {
    go_tools::install_missing(workspace)?;
    kube_tools::install_missing(workspace)
}

pub(crate) fn up(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    let plexus = dev_binaries(workspace)?;
    start(workspace, BY_HAND, &plexus)
}

pub(crate) fn down(workspace: &Workspace) -> Result<()> {
    kubelab_built(workspace)?;
    stop(workspace, BY_HAND)
}

/// The end-to-end tests on a cluster of their own.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    failed::forget(workspace)?;
    let plexus = dev_binaries(workspace)?;
    api::kubectl(workspace)?;
    on_bare_api_server(workspace)?;
    let names = end_to_end(workspace)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut tests = run::suite(workspace, &names)?;
    tests.arg("--no-fail-fast");
    // For the tests that need a lab of their own.
    tests.env("PLEXUS_BIN", &plexus);
    in_lab(workspace, FOR_TESTS, &plexus, tests)
}

/// The tests of `crates/kubekit` that need a cluster: those behind the feature.
fn end_to_end(workspace: &Workspace) -> Result<Vec<String>> {
    let dir = workspace.root.join("crates/kubekit/tests");
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
        if executables::opens_with(&text, "e2e") {
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
fn on_bare_api_server(workspace: &Workspace) -> Result<()> {
    stop(workspace, BARE)?;
    let kubeconfig = workspace.cache.join("kube").join(BARE).join("kubeconfig");
    let mut up = kubelab(workspace);
    up.args(["up", "--prefix", BARE, "--nodes", "1", "--cni", "none"])
        .arg("--api-flag=--runtime-config=resource.k8s.io/v1beta1=true");
    let mut bare = run::suite(workspace, &["bare_api"])?;
    bare.env("PLEXUS_TEST_KUBECONFIG", &kubeconfig);
    let mut rights = run::suite(workspace, &["rights"])?;
    rights.env("PLEXUS_TEST_KUBECONFIG", &kubeconfig);
    let mut controller = run::suite(workspace, &["api_server"])?;
    controller.env("PLEXUS_TEST_KUBECONFIG", &kubeconfig);
    // Tests of what only the agent itself sees.
    let mut agent = run::suite(workspace, &[])?;
    agent
        .args(["--lib", "--", make_test::ON_BARE_SERVER.1])
        .env("PLEXUS_TEST_KUBECONFIG", &kubeconfig);
    let mut definitions = kubelab(workspace);
    definitions
        .args(["kubectl", "--prefix", BARE, "--"])
        .args(["apply", "--server-side", "--force-conflicts", "-f"])
        .arg(workspace.root.join("deploy/crds"));
    // The controller makes the definitions that it needs; the agent finds them.
    let done = run::logged(workspace, &mut up)
        .and_then(|()| run::logged(workspace, &mut bare))
        .and_then(|()| run::logged(workspace, &mut controller))
        .and_then(|()| run::logged(workspace, &mut definitions))
        .and_then(|()| run::logged(workspace, &mut agent))
        .and_then(|()| api::differential(workspace, &kubeconfig))
        // Its policies stay in force.
        .and_then(|()| run::logged(workspace, &mut rights));
    let state = workspace.cache.join("kube").join(BARE);
    let done = failed::save(workspace, "cluster-bare", &state, failed::OF_CLUSTER, done);
    let stopped = stop(workspace, BARE);
    done.and(stopped)
}

/// `crates/kubekit/benches/kube/`, with what users get.
pub(crate) fn bench(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    let plexus = release_binaries(workspace)?;
    let mut bench = run::cargo_command(workspace)?;
    bench.args([
        "bench",
        "-p",
        "plexus-kubekit",
        "--features",
        "e2e",
        "--bench",
        "kube",
    ]);
    in_lab(workspace, FOR_BENCH, &plexus, bench)
}

/// `crates/kubekit/src/bin/soak/`, with what users get.
pub(crate) fn soak(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    let plexus = release_binaries(workspace)?;
    let mut soak = run::cargo_command(workspace)?;
    soak.args(["run", "-p", "plexus-kubekit", "--bin", "soak"]);
    in_lab(workspace, FOR_SOAK, &plexus, soak)
}

/// Runs a command with a new lab; the lab is gone afterwards, whatever happened. What a run that was
/// interrupted has left under this name goes first.
fn in_lab(
    workspace: &Workspace,
    prefix: &str,
    plexus: &PathBuf,
    mut command: Command,
) -> Result<()> {
    stop(workspace, prefix)?;
    let state = workspace.cache.join("kube").join(prefix);
    command
        .env("PLEXUS_KUBE_STATE", &state)
        .env("PLEXUS_KUBE_ROOT", workspace.cache.join("kube"))
        // Somebody's lab is not what is meant.
        .env_remove("PLEXUS_LAB");
    let done = start(workspace, prefix, plexus).and_then(|()| run::logged(workspace, &mut command));
    let name = format!("cluster-{prefix}");
    let done = failed::save(workspace, &name, &state, failed::OF_CLUSTER, done);
    let stopped = stop(workspace, prefix);
    done.and(stopped)
}

fn start(workspace: &Workspace, prefix: &str, plexus: &PathBuf) -> Result<()> {
    let nodes = std::env::var("NODES").unwrap_or_else(|_| "2".to_owned());
    let further = std::env::var("KUBE").unwrap_or_default();
    let mut kubelab = kubelab(workspace);
    kubelab
        .args(["up", "--prefix", prefix, "--nodes", &nodes, "--plexus"])
        .arg(plexus)
        .arg("--shim")
        .arg(workspace.shim())
        .args(further.split_whitespace());
    run::logged(workspace, &mut kubelab)
}

fn stop(workspace: &Workspace, prefix: &str) -> Result<()> {
    run::logged(
        workspace,
        kubelab(workspace).args(["down", "--prefix", prefix]),
    )
}

fn dev_binaries(workspace: &Workspace) -> Result<PathBuf> {
    tools(workspace)?;
    build::programs(workspace)?;
    build::static_shim(workspace)?;
    Ok(workspace.target.join("debug/plexus"))
}

fn release_binaries(workspace: &Workspace) -> Result<PathBuf> {
    tools(workspace)?;
    build::release(workspace)?;
    kubelab_built(workspace)?;
    Ok(workspace.target.join("release/plexus"))
}

fn kubelab_built(workspace: &Workspace) -> Result<()> {
    run::cargo(
        workspace,
        &["build", "-p", "plexus-kubekit", "--bin", "kubelab"],
    )
}

/// Told where its labs are, because it has no `xtask` to ask.
fn kubelab(workspace: &Workspace) -> Command {
    let mut command = Command::new(workspace.target.join("debug/kubelab"));
    command.env("PLEXUS_KUBE_ROOT", workspace.cache.join("kube"));
    command
}
