//! The tests that need no parts of a cluster, against freshly built binaries.

use crate::suite::{self, executables, make_test};
use crate::{api, build, failed, lock, run, workspace::Workspace};
use anyhow::Result;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let _alone = lock::build_directory(workspace)?;
    failed::forget(workspace)?;
    let executables = executables::built(workspace)?;
    build::programs(workspace)?;
    build::static_shim(workspace)?;
    let server = api::Embedded::start(workspace)?;
    let jobs = make_test::jobs(workspace, &executables, &server.kubeconfig())?;
    let tests = suite::run(workspace, "make test", make_test::SLOTS, jobs);
    let examples = run::cargo(
        workspace,
        &[&["test"], &build::EVERYTHING[..], &["--doc"]].concat(),
    );
    tests.and(examples)
}
