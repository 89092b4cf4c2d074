//! Builds what users get and runs `crates/plexus/examples/demo.rs` with it.

use crate::{build, lock, place::Place, run};
use anyhow::Result;

pub(crate) fn run(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    build::release(place)?;
    run::cargo(
        place,
        &[
            "run",
            "--quiet",
            "--release",
            "-p",
            "plexus",
            "--example",
            "demo",
        ],
    )
}
