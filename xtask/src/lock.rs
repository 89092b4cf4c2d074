//! One run at a time per build directory: two clones that share it would replace each other's
//! binaries in the middle of a test.

use crate::place::Place;
use anyhow::{Context, Result};
use std::fs::{self, File, TryLockError};

/// Held until dropped; waits, and says so, when another run holds it.
pub(crate) fn build_directory(place: &Place) -> Result<File> {
    let path = place.target.join("plexus-run.lock");
    let failed = || format!("cannot lock {}", path.display());
    fs::create_dir_all(&place.target).with_context(failed)?;
    let file = File::create(&path).with_context(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            println!(
                "another run uses {}: waiting for it",
                place.target.display()
            );
            file.lock().with_context(failed)?;
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
    }
    Ok(file)
}
