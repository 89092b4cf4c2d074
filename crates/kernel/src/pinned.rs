//! A network namespace that is pinned at a path: kept alive by a bind mount over a file. Owns how one is made and
//! let go of; the directories are those of [`named`](crate::named) and of routers.
//!
//! ```text
//! file, empty ──► mount ──► pinned        death in between: the file is there, and is used again
//! ```

use crate::effect::Effect;
use crate::{Netns, NetnsError, sys};
use rustix::fs::{Mode, OFlags};
use rustix::mount::UnmountFlags;
use std::fs;
use std::io;
use std::path::Path;

/// Whether a network namespace is pinned there; an error says what else is. A file that is left of one is no
/// obstacle.
pub(crate) fn is_pinned(path: &Path) -> Result<bool, NetnsError> {
    match Netns::open(path) {
        Ok(_) => Ok(true),
        Err(NetnsError::NotNamespace { .. }) => Ok(false),
        Err(error) if error.is_gone() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes the file, if it is not there.
pub(crate) fn create_file(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(path, flags, Mode::empty())?;
    Ok(())
}

/// Makes a namespace for the calling thread, which is to end right after, and pins it at a file.
pub(crate) fn pin_new(path: &Path, mount: Effect) -> io::Result<()> {
    sys::unshare_network()?;
    let own = "/proc/thread-self/ns/net";
    Ok(mount.around(|| rustix::mount::mount_bind(own, path))?)
}

/// Removes the pin and its file; says whether there was one. What is gone already is fine.
pub(crate) fn remove(path: &Path, unmount: Effect, unlink: Effect) -> io::Result<bool> {
    // As often as it is mounted there, within reason.
    for _ in 0..8 {
        if !matches!(Netns::open(path), Ok(_) | Err(NetnsError::WrongKind { .. })) {
            break;
        }
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        unmount.around(|| rustix::mount::unmount(path, flags))?;
    }
    match unlink.around(|| fs::remove_file(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        other => other.map(|()| true),
    }
}
