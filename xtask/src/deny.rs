//! cargo-deny: which licences, sources and duplicates the dependencies may bring (`deny.toml`).
//! Compiled once per version into the cache; the advisory database is used where it is present,
//! never fetched.

use crate::{run, workspace::Workspace};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

const DENY_VERSION: &str = "0.20.2";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let program = cargo_deny(workspace)?;
    let check = ["--locked", "check", "--hide-inclusion-graph"];
    run::logged(
        workspace,
        Command::new(&program)
            .args(check)
            .args(["bans", "licenses", "sources"]),
    )?;
    if !advisories_are_present() {
        println!("no advisory database in CARGO_HOME: advisories are not checked");
        return Ok(());
    }
    run::logged(
        workspace,
        Command::new(&program)
            .arg("--offline")
            .args(check)
            .arg("advisories"),
    )
}

/// The installed program; compiled quickly rather than well, it runs for a second.
fn cargo_deny(workspace: &Workspace) -> Result<PathBuf> {
    let dir = workspace.tools().join(format!("cargo-deny-{DENY_VERSION}"));
    let program = dir.join("bin/cargo-deny");
    if program.exists() {
        return Ok(program);
    }
    let output = workspace.cache.join("cargo-deny-build");
    let mut install = Command::new("cargo");
    install
        .args(["install", "--quiet", "--locked", "--version", DENY_VERSION])
        .args([
            Path::new("--root"),
            &dir,
            Path::new("--target-dir"),
            &output,
        ])
        .arg("cargo-deny")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    run::logged(workspace, &mut install)?;
    std::fs::remove_dir_all(&output)
        .with_context(|| format!("cannot remove {}", output.display()))?;
    Ok(program)
}

fn advisories_are_present() -> bool {
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    cargo_home
        .and_then(|home| std::fs::read_dir(home.join("advisory-dbs")).ok())
        .is_some_and(|mut entries| entries.next().is_some())
}
