//! What a reviewer should not have to say: rustfmt, clippy with warnings denied, cargo-deny, tidy.

use crate::{deny, run, tidy, workspace::Workspace};
use anyhow::Result;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    run::cargo(workspace, &["fmt", "--all", "--check"])?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
    run::cargo(
        workspace,
        &[&clippy[..], &["--", "-D", "warnings"]].concat(),
    )?;
    deny::run(workspace)?;
    tidy::run(workspace)
}
