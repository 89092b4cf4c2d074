//! What a lab needs of the machine: a directory with a file system of its own (`/run` may not allow programs,
//! and in a container nothing that is pinned in it would be seen), the directory of named namespaces, and one
//! where each node's plugins find a directory of that node's own. The latter two are not a lab's alone: the
//! lab that had to make them writes that down, the last one to go takes them back. (No sysctl of the machine
//! is changed: all that a lab sets is in its own namespaces.)

use crate::error::LabError;
use crate::files;
use crate::layout::{Layout, PLUGIN_FILES};
use plexus_kernel::{mount, named};
use std::fs;
use std::path::Path;

/// Makes room for a lab.
pub(crate) fn prepare(layout: &Layout) -> Result<(), LabError> {
    let dir = layout.dir();
    files::make_dir(&dir)?;
    mount::memory_at(&dir).map_err(LabError::file("mount a file system on", &dir))?;
    if named::prepare()? {
        files::put_json(&layout.names_mounted(), &true)?;
    }
    let plugin_dir = Path::new(PLUGIN_FILES);
    if !plugin_dir.exists() {
        files::put_json(&layout.plugin_dir_made(), &true)?;
        files::make_dir(plugin_dir)?;
    }
    Ok(())
}

/// Takes back what labs have mounted, if no lab is left.
pub(crate) fn restore(layout: &Layout) -> Result<(), LabError> {
    if others(layout) {
        return Ok(());
    }
    let made = layout.plugin_dir_made();
    if made.exists() {
        // Somebody else may use it by now: then it stays.
        let _ = fs::remove_dir(PLUGIN_FILES);
        files::remove(&made)?;
    }
    let mounted = layout.names_mounted();
    if mounted.exists() {
        named::dismantle()?;
        files::remove(&mounted)?;
    }
    Ok(())
}

fn others(layout: &Layout) -> bool {
    let entries = fs::read_dir(layout.root()).into_iter().flatten().flatten();
    entries
        .into_iter()
        .any(|entry| entry.path().is_dir() && entry.path() != layout.dir())
}
