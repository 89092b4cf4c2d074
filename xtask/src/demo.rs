//! Builds Plexus and runs `crates/plexus/examples/demo` with it. A development build: it is ready in half the time of a
//! release build, and `make test` uses the same.

use crate::{build, lock, place::Place, run};
use anyhow::Result;

pub(crate) fn run(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    run::cargo(
        place,
        &["build", "-p", "plexus", "--bins", "--example", "demo"],
    )?;
    build::static_shim(place)?;
    let mut demo = run::cargo_command(place)?;
    demo.args(["run", "--quiet", "-p", "plexus", "--example", "demo"])
        .env("PLEXUS_BIN", place.target.join("debug/plexus"))
        .env("PLEXUS_CNI_BIN", place.shim());
    run::shout(place, &mut demo)
}
