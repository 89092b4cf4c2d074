//! Builds what users get and measures it with `crates/plexus/benches`.

use crate::{build, kube_tools, lock, run, workspace::Workspace};
use anyhow::Result;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    build::release(workspace)?;
    run::cargo(workspace, &["bench", "-p", "plexus", "--bench", "cni"])
}

/// The embedded API against a real API server, whose parts are built first.
pub(crate) fn embedded(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    kube_tools::install_missing(workspace)?;
    build::release(workspace)?;
    let program = |tool: &str, name: &str| Ok(kube_tools::installed(workspace, tool)?.join(name));
    let etcd: Result<_> = program("etcd", "etcd");
    let api_server: Result<_> = program("kubernetes", "kube-apiserver");
    let mut bench = run::cargo_command(workspace)?;
    bench
        .args(["bench", "-p", "plexus", "--bench", "embedded"])
        .env("PLEXUS_BIN", workspace.target.join("release/plexus"))
        .env("PLEXUS_CNI_BIN", workspace.shim())
        .env("PLEXUS_ETCD", etcd?)
        .env("PLEXUS_KUBE_APISERVER", api_server?);
    run::logged(workspace, &mut bench)
}
