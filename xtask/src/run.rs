//! Runs other programs: says what it runs, and turns a failure into an error that names it.

use crate::{env, place::Place};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// `cargo` in the tree, with the build directory and the variables that tests read.
pub(crate) fn cargo(place: &Place, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).envs(env::variables(place)?);
    shout(place, &mut command)
}

/// Prints the command line, runs it in the tree and fails when it does.
pub(crate) fn shout(place: &Place, command: &mut Command) -> Result<()> {
    let line = line_of(command);
    println!("+ {line}");
    let status = command
        .current_dir(&place.root)
        .status()
        .with_context(|| format!("cannot start `{line}`: is it installed and in PATH?"))?;
    if !status.success() {
        bail!("`{line}` failed with {status}; its own message is above");
    }
    Ok(())
}

fn line_of(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
