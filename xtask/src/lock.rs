//! One run at a time per build directory: two clones that share it would replace each other's
//! binaries in the middle of a test.

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs::{self, File, TryLockError};

/// Held until dropped; waits, and says so, when another run holds it.
pub(crate) fn build_directory(workspace: &Workspace) -> Result<File> {
    let path = workspace.target.join("plexus-run.lock");
    let failed = || format!("cannot lock {}", path.display());
    fs::create_dir_all(&workspace.target).with_context(failed)?;
    let file = File::create(&path).with_context(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            println!(
                "another run uses {}: waiting for it",
                workspace.target.display()
            );
            file.lock().with_context(failed)?;
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
    }
    Ok(file)
}
