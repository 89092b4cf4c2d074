//! Runs other programs: says what it runs, and turns a failure into an error that names it.

use crate::{build, env, workspace::Workspace};
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Runs [`cargo_command`] with arguments.
pub(crate) fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    logged(workspace, cargo_command(workspace)?.args(arguments))
}

/// `cargo` in the tree, with the build directory and the variables that tests read. It does not see what the
/// cargo that runs us has said about `xtask`: `ring` is built again whenever one of those changes, and all that uses it.
pub(crate) fn cargo_command(workspace: &Workspace) -> Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    prepare(workspace, &mut command)?;
    Ok(command)
}

/// Gives a command the variables that tests read, and takes those of `xtask` from it.
pub(crate) fn prepare(workspace: &Workspace, command: &mut Command) -> Result<()> {
    for (name, _) in std::env::vars_os() {
        let of_xtask = ["CARGO_MANIFEST_", "CARGO_PKG_"];
        if of_xtask
            .iter()
            .any(|start| name.to_string_lossy().starts_with(start))
        {
            let _ = command.env_remove(&name);
        }
    }
    let _ = command.envs(env::variables(workspace)?);
    Ok(())
}

/// `cargo test` of integration tests by their names, which are unique in the workspace.
pub(crate) fn suite(workspace: &Workspace, names: &[&str]) -> Result<Command> {
    let mut command = cargo_command(workspace)?;
    let _ = command.arg("test").args(build::EVERYTHING);
    for name in names {
        let _ = command.args(["--test", name]);
    }
    Ok(command)
}

/// Prints the command line, runs it in the tree and fails when it does.
pub(crate) fn logged(workspace: &Workspace, command: &mut Command) -> Result<()> {
    println!("+ {}", line_of(command));
    quiet(workspace, command)
}

/// The same without printing the command line, for commands that usually have nothing to do.
pub(crate) fn quiet(workspace: &Workspace, command: &mut Command) -> Result<()> {
    let line = line_of(command);
    let status = command
        .current_dir(&workspace.root)
        .status()
        .with_context(|| format!("cannot start `{line}`: is it installed and in PATH?"))?;
    if !status.success() {
        bail!("`{line}` failed with {status}; its own message is above");
    }
    Ok(())
}

/// The command line, with the program by its name alone.
pub(crate) fn line_of(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
