//! Builds the products: `plexus`, and the shim `plexus-cni` as a small static binary.

use crate::workspace::{SHIM_TARGET, Workspace};
use crate::{run, shim};
use anyhow::Result;

/// What every build for tests is of. With one set of packages and features nothing is compiled or linked twice; what must not
/// run everywhere is chosen by [`crate::suite`]. Test builds can be told to die at the k-th effect; product builds cannot.
pub(crate) const EVERYTHING: [&str; 2] = ["--workspace", "--all-features"];

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    release(workspace)?;
    println!(
        "plexus      {}",
        workspace.target.join("release/plexus").display()
    );
    println!("plexus-cni  {}", workspace.shim().display());
    Ok(())
}

/// What users get: `plexus` in release, and the static shim.
pub(crate) fn release(workspace: &Workspace) -> Result<()> {
    run::cargo(workspace, &["build", "--release", "-p", "plexus"])?;
    static_shim(workspace)
}

/// The dev binaries that tests start from outside, with the places to die compiled in, and `kubelab`. With the examples: then
/// cargo gives the crates the same features as for tests, and does not compile them a second time.
pub(crate) fn programs(workspace: &Workspace) -> Result<()> {
    let build = [&["build"], &EVERYTHING[..], &["--bins", "--examples"]].concat();
    run::cargo(workspace, &build)
}

/// The shim as it is shipped; refuses one that is too large or not static.
pub(crate) fn static_shim(workspace: &Workspace) -> Result<()> {
    run::cargo(
        workspace,
        &[
            "build",
            "-p",
            "plexus-cni",
            "--bin",
            "plexus-cni",
            "--profile",
            "shim",
            "--target",
            SHIM_TARGET,
        ],
    )?;
    shim::check(&workspace.shim())
}
