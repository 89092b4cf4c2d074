//! Builds the tools that the tests use. Debian packages and the toolchain come before any Rust
//! code can run, so `tools/bootstrap` installs those.

use crate::{go_tools, workspace::Workspace};
use anyhow::Result;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    go_tools::install_missing(workspace)
}
