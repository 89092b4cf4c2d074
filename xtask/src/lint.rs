//! What a reviewer should not have to say: rustfmt, clippy with warnings denied, cargo-deny, tidy.

use crate::{deny, run, tidy, workspace::Workspace};
use anyhow::{Context, Result};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    rustfmt(workspace)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--all-features"];
    run::cargo(
        workspace,
        &[&clippy[..], &["--", "-D", "warnings"]].concat(),
    )?;
    deny::run(workspace)?;
    tidy::run(workspace)
}

/// Whether everything is formatted. Modules that a macro declares, as the registry of providers does, are not found
/// by `cargo fmt`: their files are named to it.
fn rustfmt(workspace: &Workspace) -> Result<()> {
    let mut arguments: Vec<String> = ["fmt", "--all", "--check", "--"].map(String::from).into();
    for home in tidy::PROVIDER_FILES {
        let directory = workspace.root.join(home);
        let files = std::fs::read_dir(&directory);
        let files = files.with_context(|| format!("cannot read {}", directory.display()))?;
        for file in files {
            arguments.push(file?.path().display().to_string());
        }
    }
    arguments[4..].sort();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run::cargo(workspace, &arguments)
}
