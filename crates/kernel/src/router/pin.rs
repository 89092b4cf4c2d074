//! The namespace of a router: made by a thread of its own, kept alive by a bind mount. Owns files and mounts in
//! the directory of routers; never looks inside a namespace.
//!
//! ```text
//! file, empty ──► mount ──► pinned        death in between: the file is there, and is used again
//! ```

use super::error::RouterError;
use crate::effect::effect;
use crate::{Netns, NetnsError, sys};
use plexus_types::RouterName;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where a router is pinned.
pub(crate) fn path(dir: &Path, name: &RouterName) -> PathBuf {
    dir.join(name.as_str())
}

/// Device and inode number of what is at a path.
pub(crate) fn inode(path: &Path) -> Result<(u64, u64), NetnsError> {
    let found = fs::metadata(path).map_err(|source| NetnsError::Open {
        path: path.into(),
        source,
    })?;
    Ok((found.dev(), found.ino()))
}

/// Makes sure that a network namespace is pinned there; says whether it had to be made. The caller
/// makes sure that nobody else does the same.
pub(super) fn ensure(dir: &Path, name: &RouterName) -> Result<bool, RouterError> {
    let path = path(dir, name);
    match Netns::open(&path) {
        Ok(_) => return Ok(false),
        // What is left of a router whose mount did not survive or was never made.
        Err(NetnsError::NotNamespace { .. }) => {}
        Err(error) if error.is_gone() => {
            create_file(dir, &path).map_err(|e| failed(name, &path, e))?
        }
        Err(error) => return Err(RouterError::missing(name, error)),
    }
    let target = path.clone();
    let thread = std::thread::Builder::new()
        .name("plexus-router".into())
        .spawn(move || pin_new(&target));
    let made = thread.and_then(|thread| {
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread that makes it failed")))
    });
    made.map_err(|e| failed(name, &path, e))?;
    Ok(true)
}

/// The routers that are pinned in a directory, in order; a name without a namespace is left out.
pub(super) fn list(dir: &Path) -> io::Result<Vec<RouterName>> {
    let mut names: Vec<_> = named(dir)?
        .into_iter()
        .filter(|name| Netns::open(path(dir, name)).is_ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Removes the pin and its file; what is gone already is fine.
pub(super) fn remove(dir: &Path, name: &RouterName) -> Result<(), RouterError> {
    let path = path(dir, name);
    // As often as it is mounted there, within reason.
    for _ in 0..8 {
        if !matches!(
            Netns::open(&path),
            Ok(_) | Err(NetnsError::WrongKind { .. })
        ) {
            break;
        }
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        effect!("router.unmount")
            .around(|| rustix::mount::unmount(&path, flags))
            .map_err(|e| failed(name, &path, e.into()))?;
    }
    match effect!("router.unlink").around(|| fs::remove_file(&path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(name, &path, error)),
        _ => Ok(()),
    }
}

/// Tries it where nobody sees it: in mounts of a thread's own, over a file that every kernel has.
/// However it ends, nothing is left, neither a mount nor a file.
pub(crate) fn attempt() -> io::Result<()> {
    let work = || {
        sys::unshare_mounts()?;
        // What is mounted in there must not be seen outside.
        rustix::mount::mount_change("/proc", MountPropagationFlags::PRIVATE)?;
        pin_new(Path::new("/proc/version"))
    };
    let thread = std::thread::Builder::new().spawn(work);
    thread.and_then(|t| t.join().unwrap_or_else(|_| Err(io::Error::other("failed"))))
}

fn named(dir: &Path) -> io::Result<Vec<RouterName>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names
        .filter_map(|name| RouterName::new(&name).ok())
        .collect())
}

fn create_file(dir: &Path, path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    effect!("router.place").around(|| rustix::fs::open(path, flags, Mode::empty()))?;
    Ok(())
}

/// Runs on a thread that ends right after: the namespace is kept by the mount alone.
fn pin_new(path: &Path) -> io::Result<()> {
    sys::unshare_network()?;
    effect!("router.mount")
        .around(|| rustix::mount::mount_bind("/proc/thread-self/ns/net", path))
        .map_err(io::Error::from)
}

fn failed(name: &RouterName, path: &Path, source: io::Error) -> RouterError {
    RouterError::Pin {
        router: name.clone(),
        path: path.into(),
        source,
    }
}
