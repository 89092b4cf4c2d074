//! cargo-deny: which licences, sources and duplicates the dependencies may bring (`deny.toml`).
//! Compiled once per version into the cache; the advisory database is used where it is present,
//! never fetched.

use crate::rust_tools::{self, Tool};
use crate::{run, workspace::Workspace};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

const CARGO_DENY: Tool<'_> = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    options: &[],
};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let program = rust_tools::installed(workspace, &CARGO_DENY)?;
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

fn advisories_are_present() -> bool {
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    cargo_home
        .and_then(|home| std::fs::read_dir(home.join("advisory-dbs")).ok())
        .is_some_and(|mut entries| entries.next().is_some())
}
