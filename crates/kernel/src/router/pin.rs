//! The namespace of a router: made by a thread of its own, kept alive by a bind mount. Owns files and mounts in
//! the directory of routers; never looks inside a namespace.

use super::error::RouterError;
use crate::effect::effect;
use crate::thread::on_thread;
use crate::{Netns, NetnsError, pinned, sys};
use plexus_types::RouterName;
use rustix::mount::MountPropagationFlags;
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
    let found = fs::metadata(path).map_err(|source| NetnsError::Open(path.into(), source))?;
    Ok((found.dev(), found.ino()))
}

/// Makes sure that a network namespace is pinned there; says whether it had to be made. The caller
/// makes sure that nobody else does the same.
pub(super) fn ensure(dir: &Path, name: &RouterName) -> Result<bool, RouterError> {
    let path = path(dir, name);
    if pinned::is_pinned(&path).map_err(|error| RouterError::missing(name, error))? {
        return Ok(false);
    }
    let made = create_file(dir, &path).and_then(|()| {
        on_thread("plexus-router", || {
            pinned::pin_new(&path, effect!("router.mount"))
        })
    });
    made.map_err(failed(name, &path))?;
    Ok(true)
}

/// The routers that are pinned in a directory, in order; a name without a namespace is left out, one that cannot be
/// opened is not.
pub(super) fn list(dir: &Path) -> io::Result<Vec<RouterName>> {
    let mut names = named(dir)?;
    names.retain(|name| match Netns::open(path(dir, name)) {
        Ok(_) => true,
        Err(NetnsError::NotNamespace { .. } | NetnsError::WrongKind { .. }) => false,
        Err(error) => !error.is_gone(),
    });
    names.sort();
    Ok(names)
}

/// Removes the pin and its file; what is gone already is fine.
pub(super) fn remove(dir: &Path, name: &RouterName) -> Result<(), RouterError> {
    let path = path(dir, name);
    let removed = pinned::remove(&path, effect!("router.unmount"), effect!("router.unlink"));
    removed.map(drop).map_err(failed(name, &path))
}

/// Tries it where nobody sees it: in mounts of a thread's own, over a file that every kernel has.
/// However it ends, nothing is left, neither a mount nor a file.
pub(crate) fn attempt() -> io::Result<()> {
    on_thread("plexus-probe-pin", || {
        sys::unshare_mounts()?;
        // What is mounted in there must not be seen outside.
        rustix::mount::mount_change("/proc", MountPropagationFlags::PRIVATE)?;
        pinned::pin_new(Path::new("/proc/version"), effect!("router.mount"))
    })
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
    if path.exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
    effect!("router.place").around(|| pinned::create_file(path))
}

fn failed(name: &RouterName, path: &Path) -> impl Fn(io::Error) -> RouterError {
    move |source| RouterError::Pin {
        router: name.clone(),
        path: path.into(),
        source,
    }
}
