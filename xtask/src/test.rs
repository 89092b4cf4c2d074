//! The tests that need no parts of a cluster, against freshly built binaries, then the checks that cost
//! nothing.

use crate::{api, build, lint, lock, run, tidy, workspace::Workspace};
use anyhow::Result;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    build::with_faults(workspace)?;
    build::static_shim(workspace)?;
    run::cargo(
        workspace,
        &["test", "--workspace", "--features", build::FAULTS],
    )?;
    api::conformance(workspace)?;
    lint::rustfmt(workspace)?;
    tidy::run(workspace)
}
