//! Network namespaces with names, as `ip netns` has them. Owns `/run/netns`: how a namespace is made under
//! a name, found and removed; never looks inside one.
//!
//! The directory is a mount of its own that is shared with other mount namespaces, as `ip netns` makes
//! it. Whoever pins a namespace there without that finds it twice as soon as `ip netns add` is called, and
//! half of it stays for ever.

use crate::effect::Effect;
use crate::thread::on_thread;
use crate::{NetnsError, pinned};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Where the names are.
pub const DIRECTORY: &str = "/run/netns";

/// A name that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NamedError {
    /// Not a plain file name.
    #[error("{0:?} cannot name a network namespace: use letters, digits and \"-\"")]
    Name(String),
    /// The directory is not as it must be.
    #[error("cannot prepare {DIRECTORY} for named namespaces: this needs root, and /run writable")]
    Directory(#[source] io::Error),
    /// The namespace cannot be made.
    #[error("cannot make network namespace {0}: this needs CAP_SYS_ADMIN")]
    Make(String, #[source] io::Error),
    /// The namespace cannot be removed.
    #[error("cannot remove network namespace {0}")]
    Remove(String, #[source] io::Error),
    /// Something else has its place.
    #[error("{DIRECTORY}/{0} is in the way: remove it")]
    InTheWay(String, #[source] Box<NetnsError>),
}

/// The path of a name.
pub fn path(name: &str) -> PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Makes the directory fit for names; says whether it had to be mounted.
pub fn prepare() -> Result<bool, NamedError> {
    prepare_directory(Path::new(DIRECTORY)).map_err(NamedError::Directory)
}

/// Takes back what [`prepare`] did, if no name is left; says whether it is gone.
pub fn dismantle() -> Result<bool, NamedError> {
    dismantle_directory(Path::new(DIRECTORY)).map_err(NamedError::Directory)
}

/// Makes sure that there is a namespace of that name; says whether it had to be made. The directory
/// must have been prepared.
pub fn ensure(name: &str) -> Result<bool, NamedError> {
    check(name)?;
    let path = path(name);
    let pinned = pinned::is_pinned(&path);
    if pinned.map_err(|error| NamedError::InTheWay(name.into(), Box::new(error)))? {
        return Ok(false);
    }
    let made = on_thread("plexus-netns", || {
        pinned::create_file(&path)?;
        pinned::pin_new(&path, Effect::none())
    });
    made.map_err(|source| NamedError::Make(name.into(), source))?;
    Ok(true)
}

/// Removes the name; what is gone already is fine. The namespace dies with its last user.
pub fn remove(name: &str) -> Result<bool, NamedError> {
    check(name)?;
    let removed = pinned::remove(&path(name), Effect::none(), Effect::none());
    removed.map_err(|source| NamedError::Remove(name.into(), source))
}

/// All names, in order.
pub fn list() -> Result<Vec<String>, NamedError> {
    let entries = match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(NamedError::Directory)?,
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

fn check(name: &str) -> Result<(), NamedError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || name.len() > 100 || !name.bytes().all(plain) {
        return Err(NamedError::Name(name.chars().take(64).collect()));
    }
    Ok(())
}

fn prepare_directory(directory: &Path) -> io::Result<bool> {
    fs::create_dir_all(directory)?;
    let _alone = lock(directory)?;
    let shared = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    match rustix::mount::mount_change(directory, shared) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::INVAL) => {
            rustix::mount::mount_bind_recursive(directory, directory)?;
            rustix::mount::mount_change(directory, shared)?;
            Ok(true)
        }
        Err(error) => Err(error.into()),
    }
}

fn dismantle_directory(directory: &Path) -> io::Result<bool> {
    let alone = lock(directory)?;
    if fs::read_dir(directory)?.next().is_some() {
        return Ok(false);
    }
    drop(alone);
    rustix::mount::unmount(directory, UnmountFlags::NOFOLLOW)?;
    // Somebody else may have put a name there in between.
    let _ = fs::remove_dir(directory);
    Ok(true)
}

/// The lock that `ip netns` takes too.
fn lock(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(directory, flags, Mode::empty())?;
    rustix::fs::flock(&fd, FlockOperation::LockExclusive)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Netns;

    #[test]
    fn names_cannot_leave_the_directory() {
        for name in ["", ".", "..", "a/b", "a b", "a\0", "ü", &"a".repeat(101)] {
            assert!(matches!(ensure(name), Err(NamedError::Name { .. })));
            assert!(matches!(remove(name), Err(NamedError::Name { .. })));
        }
    }

    #[test]
    fn made_found_and_removed() {
        prepare().unwrap();
        let name = format!("px-named-{}", std::process::id());
        assert!(ensure(&name).unwrap());
        assert!(!ensure(&name).unwrap());
        let first = Netns::open(path(&name)).unwrap();
        assert_ne!(
            first.inode().unwrap(),
            Netns::current().unwrap().inode().unwrap()
        );
        assert!(list().unwrap().contains(&name));
        assert!(remove(&name).unwrap());
        assert!(!remove(&name).unwrap());
        assert!(!list().unwrap().contains(&name));
        // The file of a death half-way.
        fs::write(path(&name), "").unwrap();
        assert!(ensure(&name).unwrap());
        assert!(remove(&name).unwrap());
    }

    #[test]
    fn the_directory_is_mounted_once_and_taken_back_when_empty() {
        let directory = std::env::temp_dir().join(format!("px-names-{}", std::process::id()));
        assert!(prepare_directory(&directory).unwrap());
        assert!(!prepare_directory(&directory).unwrap());
        fs::write(directory.join("name"), "").unwrap();
        assert!(!dismantle_directory(&directory).unwrap());
        fs::remove_file(directory.join("name")).unwrap();
        assert!(dismantle_directory(&directory).unwrap());
        assert!(!directory.exists());
    }
}
