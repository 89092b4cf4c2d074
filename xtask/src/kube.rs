//! Real clusters: builds the components, our binaries and `kubelab` (in `crates/kubekit`), and lets
//! that do the rest. `NODES` and `KUBE` (further options of `kubelab up`) come from the environment.

use crate::suite::schedule::Load;
use crate::suite::{self, Job, executables, make_test, make_test_kube};
use crate::workspace::Workspace;
use crate::{api, build, failed, go_tools, kube_tools, lock, run};
use anyhow::Result;
use std::path::{Path, PathBuf};
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

/// The verb that runs the part of this tier which has a server of its own, and which [`test`] starts: `cargo xtask bare-part`.
pub(crate) const BARE_PART: &str = "bare-part";
/// Says that there is time for what another tier shows as well; the tests read it too.
const LONG: &str = "PLEXUS_TEST_LONG";

/// The end-to-end tests: on a cluster that they share, and beside it those that make one of their own.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    failed::forget(workspace)?;
    tools(workspace)?;
    let executables = executables::built(workspace)?;
    let plexus = dev_binaries(workspace)?;
    let state = workspace.cache.join("kube").join(FOR_TESTS);
    let prepare = |command: &mut Command| {
        tell_of_lab(workspace, &state, command);
        // For the tests that need a lab of their own.
        command.env("PLEXUS_BIN", &plexus);
    };
    let long = std::env::var_os(LONG).is_some();
    let mut jobs = vec![bare_job(workspace)];
    jobs.extend(make_test_kube::jobs(
        workspace,
        &executables,
        long,
        prepare,
    )?);
    in_lab(workspace, FOR_TESTS, &plexus, || {
        suite::run(workspace, "make test-kube", make_test_kube::SLOTS, jobs)
    })
}

fn bare_job(workspace: &Workspace) -> Job {
    // It asks for the place of `xtask`, as we did.
    let mut command = Command::new(workspace.target.join("debug/xtask"));
    command.arg(BARE_PART).current_dir(&workspace.root);
    Job {
        name: "API server without Plexus".to_owned(),
        command,
        // While it runs, nobody works on the shared cluster: beside it is one with a cluster of its own, of which the longest are made.
        load: Load::SharedCluster,
    }
}

/// The part with an API server of its own. Needs what [`test`] builds.
pub(crate) fn bare_part(workspace: &Workspace) -> Result<()> {
    api::kubectl(workspace)?;
    on_bare_api_server(workspace)
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
    command_in_lab(workspace, FOR_BENCH, &plexus, bench)
}

/// `crates/kubekit/src/bin/soak/`, with what users get.
pub(crate) fn soak(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    let plexus = release_binaries(workspace)?;
    let mut soak = run::cargo_command(workspace)?;
    soak.args(["run", "-p", "plexus-kubekit", "--bin", "soak"]);
    command_in_lab(workspace, FOR_SOAK, &plexus, soak)
}

fn command_in_lab(
    workspace: &Workspace,
    prefix: &str,
    plexus: &PathBuf,
    mut command: Command,
) -> Result<()> {
    let state = workspace.cache.join("kube").join(prefix);
    tell_of_lab(workspace, &state, &mut command);
    in_lab(workspace, prefix, plexus, || {
        run::logged(workspace, &mut command)
    })
}

/// Which lab a command uses.
fn tell_of_lab(workspace: &Workspace, state: &Path, command: &mut Command) {
    command
        .env("PLEXUS_KUBE_STATE", state)
        .env("PLEXUS_KUBE_ROOT", workspace.cache.join("kube"))
        // Somebody's lab is not what is meant.
        .env_remove("PLEXUS_LAB");
}

/// Does something with a new lab; the lab is gone afterwards, whatever happened. What a run that was
/// interrupted has left under this name goes first.
fn in_lab(
    workspace: &Workspace,
    prefix: &str,
    plexus: &PathBuf,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    stop(workspace, prefix)?;
    let state = workspace.cache.join("kube").join(prefix);
    let done = start(workspace, prefix, plexus).and_then(|()| work());
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
