//! The tests that need no parts of a cluster, against freshly built binaries, then the checks that cost
//! nothing.

use crate::{api, build, lint, lock, place::Place, run, tidy};
use anyhow::Result;

pub(crate) fn run(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    build::with_faults(place)?;
    build::static_shim(place)?;
    run::cargo(place, &["test", "--workspace", "--features", build::FAULTS])?;
    api::conformance(place)?;
    lint::rustfmt(place)?;
    tidy::run(place)
}
