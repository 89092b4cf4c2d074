//! `deploy/install.yaml`, the one file that installs everything: the generated definitions of our
//! objects and the hand-written parts, in order. The definitions of the NAD and of multinic.fms.io are left out:
//! applying the file must not overwrite those that Multus or another system has installed; the controller makes
//! the NAD's where it is missing.

use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

const HEADER: &str = "\
# Plexus on Kubernetes: `kubectl apply -f` this file. Read the lines that say EDIT first.
# Generated from deploy/crds (made from the types of crates/api) and deploy/parts by `cargo xtask manifests`; change those.
";

/// Writes the file.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let path = installed(&workspace.root);
    fs::write(&path, assemble(&workspace.root)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Its text: the namespace, the definitions, then the other parts by name.
fn assemble(root: &Path) -> Result<String> {
    let parts = files(&root.join("deploy/parts"))?;
    let Some((namespace, others)) = parts.split_first() else {
        bail!("deploy/parts is empty");
    };
    let mut text = HEADER.to_owned();
    add(&mut text, root, namespace)?;
    for path in files(&root.join("deploy/crds"))? {
        if !is_foreign(&read(&path)?) {
            add(&mut text, root, &path)?;
        }
    }
    for path in others {
        add(&mut text, root, path)?;
    }
    Ok(text)
}

fn add(text: &mut String, root: &Path, path: &Path) -> Result<()> {
    let name = path.strip_prefix(root).unwrap_or(path).display();
    let part = read(path)?;
    let part = part.trim_start_matches("---\n").trim_end();
    text.push_str(&format!("---\n# {name}\n{part}\n"));
    Ok(())
}

/// Whether the definition is of a group that others own.
fn is_foreign(definition: &str) -> bool {
    let installed = ["group: plexus.dev", "group: net.cogadvisor.io"];
    let mut lines = definition.lines();
    !lines.any(|line| installed.contains(&line.trim()))
}

fn installed(root: &Path) -> PathBuf {
    root.join("deploy/install.yaml")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_file_is_up_to_date() {
        let here = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let root = Path::new(&here).parent().unwrap();
        let committed = fs::read_to_string(installed(root)).unwrap();
        assert!(
            committed == assemble(root).unwrap(),
            "deploy/install.yaml differs from its parts: run `cargo xtask manifests`"
        );
    }

    #[test]
    fn definitions_of_others_are_left_out() {
        assert!(is_foreign("spec:\n  group: k8s.cni.cncf.io\n"));
        assert!(!is_foreign("spec:\n  group: plexus.dev\n"));
    }
}
