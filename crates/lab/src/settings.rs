//! What a lab needs of the machine: a directory with a file system of its own (`/run` may not allow programs, and in a
//! container nothing that is pinned in it would be seen), and the directory of named namespaces. That one is not a lab's alone:
//! the lab that had to mount it writes that down, the last one to go takes it back. (No sysctl of the machine is changed:
//! all that a lab sets is in its own namespaces.)

use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use plexus_kernel::{mount, named};
use std::fs;

/// Makes room for a lab.
pub(crate) fn prepare(layout: &Layout) -> Result<(), LabError> {
    let dir = layout.dir();
    files::make_dir(&dir)?;
    mount::memory_at(&dir).map_err(LabError::file("mount a file system on", &dir))?;
    if named::prepare()? {
        files::put_json(&layout.names_mounted(), &true)?;
    }
    Ok(())
}

/// Takes back what labs have mounted, if no lab is left.
pub(crate) fn restore(layout: &Layout) -> Result<(), LabError> {
    let path = layout.names_mounted();
    if others(layout) || !path.exists() {
        return Ok(());
    }
    named::dismantle()?;
    files::remove(&path)
}

fn others(layout: &Layout) -> bool {
    let entries = fs::read_dir(layout.root()).into_iter().flatten().flatten();
    entries
        .into_iter()
        .any(|entry| entry.path().is_dir() && entry.path() != layout.dir())
}
