//! The components of a real cluster: each has a directory in `tools/kube/` with a `go.mod`, as those
//! of `tools/go/` have, but only `make kube-tools` builds them, because it takes a quarter of an hour.

use crate::{go_tools, workspace::Workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

const DIR: &str = "tools/kube";

/// Go calls a program after the last word of its package; these have no good one there.
const RENAMED: &[(&str, &str)] = &[("etcd", "server"), ("whereabouts", "cmd")];

/// Builds what the cache does not have.
pub(crate) fn install_missing(workspace: &Workspace) -> Result<()> {
    let dir = workspace.root.join(DIR);
    let entries = fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    for name in names {
        install(workspace, &name)?;
    }
    Ok(())
}

/// Where a component is, or will be.
pub(crate) fn installed(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    go_tools::installed_from(workspace, DIR, name)
}

fn install(workspace: &Workspace, name: &str) -> Result<()> {
    let wanted = installed(workspace, name)?;
    if wanted.is_dir() {
        return Ok(());
    }
    let version = wanted
        .file_name()
        .and_then(|file| file.to_str()?.strip_prefix(name)?.strip_prefix('-'))
        .context("a directory without a version")?;
    let mut flags = "-s -w".to_owned();
    if name == "kubernetes" {
        // Its parts compare each other's versions, and an unstamped one counts as 0.0.0.
        flags.push_str(&format!(
            " -X k8s.io/component-base/version.gitVersion={version}"
        ));
    }
    let renamed = RENAMED.iter().find(|(tool, _)| *tool == name);
    let recipe = go_tools::Recipe {
        from: DIR,
        name,
        linker_flags: Some(&flags),
        renamed: renamed.map(|(tool, built)| (*built, *tool)),
    };
    go_tools::build(workspace, &recipe, &wanted)
}
