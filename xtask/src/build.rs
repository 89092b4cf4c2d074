//! Builds the products: `plexus`, and the shim `plexus-cni` as a small static binary.

use crate::workspace::{SHIM_TARGET, Workspace};
use crate::{run, shim};
use anyhow::Result;

/// Test builds can be told to die at the k-th effect; product builds cannot.
pub(crate) const FAULTS: &str = "plexus/faults,plexus-cni/faults";

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

/// The dev binaries that tests start from outside, with the places to die compiled in.
pub(crate) fn with_faults(workspace: &Workspace) -> Result<()> {
    with(workspace, FAULTS)
}

/// The same with more features. Of the whole workspace, as in [`run::suite`].
pub(crate) fn with(workspace: &Workspace, features: &str) -> Result<()> {
    let features = format!("{FAULTS},{features}");
    run::cargo(
        workspace,
        &["build", "--workspace", "--bins", "--features", &features],
    )
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
