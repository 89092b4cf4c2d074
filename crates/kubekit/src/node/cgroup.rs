//! A node's cgroups: one directory in every controller of cgroup v1, or one in the tree of cgroup v2,
//! under which its kubelet keeps the pods. Removed from the leaves up.

use crate::wait;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ROOT: &str = "/sys/fs/cgroup";

/// Makes them. A new cpuset is empty until it is given what its parent has.
pub(super) fn make(name: &str) -> Result<()> {
    for tree in trees() {
        let dir = tree.join(name);
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(inherited) = fs::read(tree.join(file)) {
                fs::write(dir.join(file), inherited)
                    .with_context(|| format!("cannot set {file} of {}", dir.display()))?;
            }
        }
    }
    Ok(())
}

/// Removes those whose name is wanted, once they are empty of processes.
pub(crate) fn remove(wanted: impl Fn(&str) -> bool) -> Result<()> {
    for tree in trees() {
        for dir in children(&tree) {
            if dir
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(&wanted)
            {
                let what = format!("{} gone", dir.display());
                wait::until(&what, Duration::from_secs(10), || {
                    prune(&dir)?;
                    Ok(Some(()))
                })?;
            }
        }
    }
    Ok(())
}

/// Ids of the processes in those whose name is wanted.
pub(crate) fn procs(wanted: impl Fn(&str) -> bool) -> Vec<i32> {
    let mut found = Vec::new();
    for tree in trees() {
        for dir in children(&tree) {
            if dir
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(&wanted)
            {
                collect(&dir, &mut found);
            }
        }
    }
    found
}

/// The tree of v2, or every controller of v1; there, beside them, runc keeps the pods in a tree of v2
/// that has no controllers.
fn trees() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_path_buf()];
    }
    children(root)
}

fn prune(dir: &Path) -> Result<()> {
    for child in children(dir) {
        prune(&child)?;
    }
    fs::remove_dir(dir).with_context(|| format!("cannot remove {}", dir.display()))
}

fn collect(dir: &Path, found: &mut Vec<i32>) {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    found.extend(
        text.split_whitespace()
            .filter_map(|word| word.parse::<i32>().ok()),
    );
    for child in children(dir) {
        collect(&child, found);
    }
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}
