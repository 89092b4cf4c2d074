//! Tools written in Rust that only developers need: compiled once per version into the cache, quickly rather than well,
//! as they run for seconds. A program that is there is complete: cargo installs it last.

use crate::{run, workspace::Workspace};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to compile.
pub(crate) struct Tool<'a> {
    /// The crate, and its program.
    pub(crate) name: &'a str,
    /// Its version.
    pub(crate) version: &'a str,
    /// What `cargo install` is told besides, such as features.
    pub(crate) options: &'a [&'a str],
}

/// The installed program: `<cache>/tools/<name>-<version>/bin/<name>`.
pub(crate) fn installed(workspace: &Workspace, tool: &Tool<'_>) -> Result<PathBuf> {
    let Tool { name, version, .. } = tool;
    let dir = workspace.tools().join(format!("{name}-{version}"));
    let program = dir.join("bin").join(name);
    if program.exists() {
        return Ok(program);
    }
    let output = workspace.cache.join(format!("{name}-build"));
    let mut install = Command::new("cargo");
    install
        .args(["install", "--quiet", "--locked", "--version", version])
        .args([
            Path::new("--root"),
            &dir,
            Path::new("--target-dir"),
            &output,
        ])
        .args(tool.options)
        .arg(name)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    run::logged(workspace, &mut install)?;
    std::fs::remove_dir_all(&output)
        .with_context(|| format!("cannot remove {}", output.display()))?;
    Ok(program)
}
