//! The end-to-end cases of `crates/kubekit` that need no kubelet, on a lab of virtual nodes: the same test
//! functions as on Kubernetes, against the embedded API.

use crate::workspace::Workspace;
use crate::{build, failed, go_tools, kube, lock, run};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A lab of its own name: one that somebody uses by hand is left alone.
const LAB: &str = "cases";
/// The files whose cases speak through `Cluster` alone, or say what else they need.
pub(crate) const FILES: [&str; 8] = [
    "networks",
    "one_add",
    "cluster_cni",
    "query",
    "status",
    "seed_000",
    "observability",
    "disturbances",
];

/// The verb: builds what `cases` needs first.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    kube::tools(workspace)?;
    build::programs(workspace)?;
    build::static_shim(workspace)?;
    cases(workspace)
}

/// Runs them. Needs the dev binaries (`build::programs`), the static shim and `kubectl`. The lab is gone
/// afterwards, whatever happened; what an interrupted run has left goes first.
pub(crate) fn cases(workspace: &Workspace) -> Result<()> {
    down(workspace)?;
    let done = plugins(workspace)
        .and_then(|plugins| up(workspace, &plugins).and_then(|()| tests(workspace)));
    let dir = Path::new("/run/plexus/lab").join(LAB);
    let done = failed::save(workspace, "cases", &dir, failed::OF_LAB, done);
    let stopped = down(workspace);
    done.and(stopped)
}

fn tests(workspace: &Workspace) -> Result<()> {
    let mut tests = run::suite(workspace, &FILES)?;
    tests.arg("--no-fail-fast");
    // Two at a time: some count packets, and all of them share two cores.
    tests.args(["--", "--test-threads", "2"]);
    tests
        .env("PLEXUS_BIN", plexus(workspace))
        .env("PLEXUS_LAB", LAB)
        .env_remove("PLEXUS_KUBE_STATE");
    run::logged(workspace, &mut tests)
}

fn up(workspace: &Workspace, plugins: &Path) -> Result<()> {
    let mut up = Command::new(plexus(workspace));
    up.env("KUBECONFIG", kubeconfig(workspace));
    up.args(["lab", "--lab", LAB, "up", "--nodes", "2", "--nics", "2"])
        .arg("--shim")
        .arg(workspace.shim())
        .arg("--delegate-bin-dir")
        .arg(plugins);
    run::logged(workspace, &mut up)
}

/// That of whoever runs the suite stays as it is.
fn kubeconfig(workspace: &Workspace) -> PathBuf {
    workspace.target.join("lab-cases/kubeconfig")
}

fn down(workspace: &Workspace) -> Result<()> {
    let mut down = Command::new(plexus(workspace));
    down.env("KUBECONFIG", kubeconfig(workspace));
    run::logged(workspace, down.args(["lab", "--lab", LAB, "down"]))
}

/// The reference plugins in a directory of the lab's own: some cases add a plugin to them.
fn plugins(workspace: &Workspace) -> Result<PathBuf> {
    let own = workspace.target.join("lab-cases/plugins");
    let from = go_tools::installed(workspace, "cni-plugins")?;
    let failed = || format!("cannot copy {} to {}", from.display(), own.display());
    if own.exists() {
        fs::remove_dir_all(&own).with_context(failed)?;
    }
    fs::create_dir_all(&own).with_context(failed)?;
    for entry in fs::read_dir(&from).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            std::os::unix::fs::symlink(&path, own.join(name)).with_context(failed)?;
        }
    }
    Ok(own)
}

fn plexus(workspace: &Workspace) -> PathBuf {
    workspace.target.join("debug/plexus")
}
