//! Builds what users get and runs `crates/plexus/examples/demo` with it.

use crate::{build, env, lock, place::Place, run};
use anyhow::Result;
use std::process::Command;

pub(crate) fn run(place: &Place) -> Result<()> {
    let _alone = lock::build_directory(place)?;
    build::release(place)?;
    let mut demo = Command::new("cargo");
    demo.args([
        "run",
        "--quiet",
        "--release",
        "-p",
        "plexus",
        "--example",
        "demo",
    ])
    .envs(env::variables(place)?)
    .env("PLEXUS_CNI_BIN", place.shim());
    run::shout(place, &mut demo)
}
