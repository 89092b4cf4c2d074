//! The checks that keep the house as it was built: which room may know which, how large a file
//! may grow, where `unsafe` may live, who tells providers apart, which words never land, what
//! is promised of rights, and where links lead. Reads files that git knows or
//! would add; changes nothing.

mod docs;
mod names;
mod providers;
mod pure;
mod rights;
mod rooms;
mod sizes;
mod source;
mod words;

pub(crate) use providers::HOMES as PROVIDER_FILES;

use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::process::Command;

/// A file of the tree; `path` is relative to its root.
struct Text {
    path: String,
    content: String,
}

impl Text {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The room (directory under `crates/`) that the file belongs to.
    fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// Whether the file is product code: in `crates/*/src`.
    fn is_room_source(&self) -> bool {
        self.is_rust()
            && self
                .path
                .strip_prefix("crates/")
                .is_some_and(|rest| rest.split('/').nth(1) == Some("src"))
    }
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let texts = tracked(workspace)?;
    let mut problems = Vec::new();
    for text in &texts {
        problems.extend(words::problems(text));
        if text.is_rust() {
            problems.extend(sizes::problems(text));
            problems.extend(names::problems(text));
            problems.extend(source::problems(text));
            problems.extend(pure::problems(text));
        }
        for note in sizes::notes(text) {
            println!("note: {note}");
        }
    }
    problems.extend(rooms::problems(&texts)?);
    problems.extend(providers::problems(&texts));
    problems.extend(docs::problems(&texts));
    problems.extend(rights::problems(&texts));
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    if !problems.is_empty() {
        bail!("tidy found {} problem(s), listed above", problems.len());
    }
    println!("tidy: {} files, no problem", texts.len());
    Ok(())
}

/// The files outside the book of `docs/` that its pages link to, from the root of the tree.
pub(crate) fn linked_outside_the_book(workspace: &Workspace) -> Result<BTreeSet<String>> {
    Ok(docs::linked_outside(&tracked(workspace)?))
}

/// Text files that are tracked, or would be by `git add .`.
fn tracked(workspace: &Workspace) -> Result<Vec<Text>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(&workspace.root)
        .output()
        .context("cannot start git: is it installed and in PATH?")?;
    if !output.status.success() {
        bail!(
            "git cannot list the files of {}: {}",
            workspace.root.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let mut texts = Vec::new();
    for path in String::from_utf8_lossy(&output.stdout).split_terminator('\0') {
        // A deleted file may still be in the index, a symbolic link may point anywhere.
        let full = workspace.root.join(path);
        if !full.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        let bytes = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        if let Ok(content) = String::from_utf8(bytes) {
            texts.push(Text {
                path: path.to_owned(),
                content,
            });
        }
    }
    Ok(texts)
}

#[cfg(test)]
fn text(path: &str, content: &str) -> Text {
    Text {
        path: path.to_owned(),
        content: content.to_owned(),
    }
}
