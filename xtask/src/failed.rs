//! Where a lab or cluster whose tests failed leaves its logs and journals: copies, made before it is taken down. Tests that
//! make labs of their own put them there too (`plexus_testkit::failed`), by the variable in `env.rs`.

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A lab's directory: what its processes said, what they keep, its objects.
pub(crate) const OF_LAB: &[&str] = &["log", "*/state", "server", "*.json"];
/// A cluster's directory: its processes, and on each node the containers' output and the agent's journal.
pub(crate) const OF_CLUSTER: &[&str] = &["log", "nodes/*/fs/var/log", "nodes/*/fs/var/lib/plexus"];

/// The directory for all of them.
pub(crate) fn dir(workspace: &Workspace) -> PathBuf {
    workspace.target.join("test-failed")
}

/// Removes what earlier runs have left.
pub(crate) fn forget(workspace: &Workspace) -> Result<()> {
    let dir = dir(workspace);
    match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// If this failed: copies `parts` of `from`, which may have `*` for names, and lets the error say where they are.
pub(crate) fn save<T>(
    workspace: &Workspace,
    name: &str,
    from: &Path,
    parts: &[&str],
    done: Result<T>,
) -> Result<T> {
    done.map_err(|error| {
        let to = dir(workspace).join(name);
        match copy(from, parts, &to) {
            Ok(()) => error.context(format!(
                "{name} failed; its logs and journals are in {}",
                to.display()
            )),
            Err(why) => error.context(format!("{name} failed; {why:#}")),
        }
    })
}

/// What is not there is no part, and other file systems are left out.
fn copy(from: &Path, parts: &[&str], to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let script = format!(
        "cp --archive --parents --one-file-system -- {} \"$0\"",
        parts.join(" ")
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(to).current_dir(from);
    let ended = shell.stderr(Stdio::null()).status();
    ended.with_context(|| format!("cannot copy logs of {}", from.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_failed_leaves_its_logs_and_says_where() {
        let dir = std::env::temp_dir().join(format!("plexus-xtask-failed-{}", std::process::id()));
        let workspace = Workspace {
            root: dir.clone(),
            cache: dir.clone(),
            target: dir.join("target"),
        };
        let lab = dir.join("lab");
        for (file, text) in [
            ("log/keeper.log", "said"),
            ("n1/state/journal.db", "kept"),
            ("n1/cni/bin/plugin", "large"),
        ] {
            fs::create_dir_all(lab.join(file).parent().unwrap()).unwrap();
            fs::write(lab.join(file), text).unwrap();
        }
        assert!(save(&workspace, "cases", &lab, OF_LAB, Ok(())).is_ok());
        assert!(!self::dir(&workspace).exists(), "nothing failed");
        let failed = save(
            &workspace,
            "cases",
            &lab,
            OF_LAB,
            Err::<(), _>(anyhow::anyhow!("two tests")),
        );
        fs::remove_dir_all(&lab).unwrap();
        let kept = self::dir(&workspace).join("cases");
        let text = format!("{:#}", failed.unwrap_err());
        assert_eq!(
            text,
            format!(
                "cases failed; its logs and journals are in {}: two tests",
                kept.display()
            )
        );
        assert_eq!(
            fs::read_to_string(kept.join("log/keeper.log")).unwrap(),
            "said"
        );
        assert_eq!(
            fs::read_to_string(kept.join("n1/state/journal.db")).unwrap(),
            "kept"
        );
        assert!(!kept.join("n1/cni").exists());
        forget(&workspace).unwrap();
        forget(&workspace).unwrap();
        assert!(!kept.exists());
        fs::remove_dir_all(&dir).unwrap();
    }
}
