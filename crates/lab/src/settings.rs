//! The one thing of the machine that labs change although it is not a lab's alone: the directory of named namespaces.
//! The lab that had to mount it writes that down, the last one to go takes it back. (No sysctl of the machine is
//! changed: all that a lab sets is in its own namespaces.)

use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use plexus_kernel::named;
use std::fs;

/// Makes room for a lab.
pub(crate) fn prepare(layout: &Layout) -> Result<(), LabError> {
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
