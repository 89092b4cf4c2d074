//! Builds the products: `plexus`, and the shim `plexus-cni` as a small static binary.

use crate::place::{Place, SHIM_TARGET};
use crate::{run, shim};
use anyhow::Result;

/// Test builds can be told to die at the k-th effect; product builds cannot.
pub(crate) const FAULTS: &str = "plexus/faults,plexus-cni/faults";

pub(crate) fn run(place: &Place) -> Result<()> {
    release(place)?;
    println!(
        "plexus      {}",
        place.target.join("release/plexus").display()
    );
    println!("plexus-cni  {}", place.shim().display());
    Ok(())
}

/// What users get: `plexus` in release, and the static shim.
pub(crate) fn release(place: &Place) -> Result<()> {
    run::cargo(place, &["build", "--release", "-p", "plexus"])?;
    static_shim(place)
}

/// The dev binaries that tests start from outside, with the places to die compiled in.
pub(crate) fn with_faults(place: &Place) -> Result<()> {
    with(place, FAULTS)
}

/// The same with more features. Of the whole workspace, as in [`run::suite`].
pub(crate) fn with(place: &Place, features: &str) -> Result<()> {
    let features = format!("{FAULTS},{features}");
    run::cargo(
        place,
        &["build", "--workspace", "--bins", "--features", &features],
    )
}

/// The shim as it is shipped; refuses one that is too large or not static.
pub(crate) fn static_shim(place: &Place) -> Result<()> {
    run::cargo(
        place,
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
    shim::check(&place.shim())
}
