//! Programs that run in another root with a `/proc` of their own. Owns the step into a mount namespace of
//! this process; takes the root, gives nothing, and never mounts anything that others could see.

use crate::sys;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use std::io;
use std::path::Path;

/// Leaves the mount namespace that this process shares with others, and mounts the `/proc` of its own
/// process namespace at `<root>/proc`: the one that is there may be that of another, in which this process
/// has no number, and programs that look themselves up by it would find nobody. A root that has no
/// `/proc` gets none.
///
/// For a process with one thread, which becomes another program afterwards.
pub fn own_proc(root: &Path) -> io::Result<()> {
    let place = root.join("proc");
    if !place.is_dir() {
        return Ok(());
    }
    sys::unshare_mounts()?;
    // News from outside still arrive; ours stay here.
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("proc", &place, "proc", flags, None)?)
}
