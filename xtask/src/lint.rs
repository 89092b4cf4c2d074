//! What a reviewer should not have to say: rustfmt, clippy with warnings denied, cargo-deny, tidy.

use crate::{deny, place::Place, run, tidy};
use anyhow::Result;

pub(crate) fn run(place: &Place) -> Result<()> {
    run::cargo(place, &["fmt", "--all", "--check"])?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
    run::cargo(place, &[&clippy[..], &["--", "-D", "warnings"]].concat())?;
    deny::run(place)?;
    tidy::run(place)
}
