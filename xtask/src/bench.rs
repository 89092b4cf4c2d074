//! Builds what users get and measures it with `crates/plexus/benches/cni`.

use crate::{build, lock, place::Place, run};
use anyhow::Result;

pub(crate) fn run(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    build::release(place)?;
    run::cargo(place, &["bench", "-p", "plexus", "--bench", "cni"])
}
