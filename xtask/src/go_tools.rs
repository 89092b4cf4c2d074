//! Tools written in Go: each has a directory in `tools/go/` with a small `go.mod` that names the
//! packages (`tool` directives) and pins the version. They are built into the cache, once per
//! version; a directory that is there is complete, because it gets its name last.

use crate::{run, workspace::Workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DIR: &str = "tools/go";

/// What to build, and how.
pub(crate) struct Recipe<'a> {
    /// The directory that has the tool's directory.
    pub(crate) from: &'a str,
    /// The tool.
    pub(crate) name: &'a str,
    /// `-ldflags`.
    pub(crate) linker_flags: Option<&'a str>,
    /// What Go calls a program, and what it is to be called.
    pub(crate) renamed: Option<(&'a str, &'a str)>,
}

/// Builds every tool of `tools/go/` that the cache does not have.
pub(crate) fn install_missing(workspace: &Workspace) -> Result<()> {
    let dir = workspace.root.join(DIR);
    let entries = fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?;
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let wanted = installed(workspace, &name)?;
        if !wanted.is_dir() {
            let recipe = Recipe {
                from: DIR,
                name: &name,
                linker_flags: None,
                renamed: None,
            };
            build(workspace, &recipe, &wanted)?;
        }
    }
    Ok(())
}

/// Where a tool of `tools/go/` is, or will be: `<cache>/tools/<name>-<version>`.
pub(crate) fn installed(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    installed_from(workspace, DIR, name)
}

/// The same for a tool whose directory is in `from`.
pub(crate) fn installed_from(workspace: &Workspace, from: &str, name: &str) -> Result<PathBuf> {
    let path = workspace.root.join(from).join(name).join("go.mod");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let version = version_of(&text).with_context(|| {
        format!(
            "{} has no `tool` whose module it requires: see `go help get`",
            path.display()
        )
    })?;
    Ok(workspace.tools().join(format!("{name}-{version}")))
}

/// Builds a tool into `wanted`.
pub(crate) fn build(workspace: &Workspace, recipe: &Recipe<'_>, wanted: &Path) -> Result<()> {
    let name = recipe.name;
    println!("building {name} into {}", wanted.display());
    let partial = workspace
        .tools()
        .join(format!("{name}.partial-{}", std::process::id()));
    let mut go = Command::new("go");
    go.args([
        "-C",
        &format!("{}/{name}", recipe.from),
        "install",
        "-trimpath",
    ]);
    if let Some(flags) = recipe.linker_flags {
        go.args(["-ldflags", flags]);
    }
    go.arg("tool")
        .env("CGO_ENABLED", "0")
        .env("GOBIN", &partial);
    run::logged(workspace, &mut go).with_context(|| {
        format!(
            "cannot build {name}; Go must be in PATH, and as new as {}/{name}/go.mod says",
            recipe.from
        )
    })?;
    if let Some((built, called)) = recipe.renamed {
        fs::rename(partial.join(built), partial.join(called))
            .with_context(|| format!("{name} has no program {built}"))?;
    }
    match fs::rename(&partial, wanted) {
        Err(_) if wanted.is_dir() => Ok(fs::remove_dir_all(&partial)?),
        moved => moved.with_context(|| format!("cannot name {}", wanted.display())),
    }
}

/// The version of the module that the first `tool` directive belongs to.
fn version_of(go_mod: &str) -> Option<&str> {
    let package = directives(go_mod, "tool").next()?;
    directives(go_mod, "require").find_map(|line| {
        let mut words = line.split_whitespace();
        let (module, version) = (words.next()?, words.next()?);
        let rest = package.strip_prefix(module)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(version)
    })
}

/// The arguments of a directive, written on one line or in a block.
fn directives<'a>(go_mod: &'a str, keyword: &'a str) -> impl Iterator<Item = &'a str> {
    let mut in_block = false;
    go_mod.lines().filter_map(move |line| {
        let line = line.trim();
        if in_block {
            in_block = line != ")";
            return in_block.then_some(line);
        }
        let rest = line.strip_prefix(keyword)?.strip_prefix(' ')?;
        in_block = rest == "(";
        (!in_block).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::version_of;

    const REQUIRES: &str =
        "require (\n\texample.org/a v1.0.0 // indirect\n\texample.org/ab v2.0.0\n)";

    #[test]
    fn version_is_that_of_the_module_of_the_tool() {
        let block = format!("module x\n\ntool (\n\texample.org/ab/cmd/y\n)\n\n{REQUIRES}\n");
        assert_eq!(version_of(&block), Some("v2.0.0"));
        let line = format!("module x\n\ntool example.org/a\n\n{REQUIRES}\n");
        assert_eq!(version_of(&line), Some("v1.0.0"));
    }

    #[test]
    fn a_tool_that_is_not_required_has_no_version() {
        assert_eq!(
            version_of(&format!("tool example.org/c\n{REQUIRES}\n")),
            None
        );
        assert_eq!(version_of(REQUIRES), None);
    }
}
