//! DELs that found no agent. Owns the directory `<socket>.queue/`: the shim puts one file per DEL
//! there, whole or not at all; the agent lists, reads and removes them.
//!
//! A file is named `<unix nanoseconds, 20 digits>-<container>-<interface>.json`, so that names sort
//! by age, and holds the body that `POST /cni/del` would have had. Directory and files belong to
//! root; anything else is refused, since what is in there is done with root's rights.
//!
//! Nothing is flushed: after a machine crash there is nothing left that a queued DEL could undo
//! which the agent does not find by itself.

mod drain;
#[cfg(test)]
mod fuzz;
mod put;

pub use drain::{list, may_concern, read, remove, set_aside, sweep};
/// The error and its causes in one line.
pub use plexus_types::chain as describe;
pub use put::put;

use rustix::fs::{Mode, OFlags, fstat};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What can go wrong with the queue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Container id or interface name cannot be part of a file name.
    #[error("the DEL names no container and interface that could be queued")]
    Name(#[source] plexus_types::Invalid),
    /// The directory cannot be made or opened.
    #[error("cannot open the queue directory {0:?}")]
    Open(PathBuf, #[source] io::Error),
    /// It is not a directory of root's own.
    #[error(
        "the queue directory {0:?} must belong to root and be writable by nobody else (owner {1}, mode {2:o})"
    )]
    Unsafe(PathBuf, u32, u32),
    /// A file cannot be written.
    #[error("cannot write {0:?} in the queue directory")]
    Write(String, #[source] io::Error),
    /// The directory cannot be listed.
    #[error("cannot list the queue directory {0:?}")]
    List(PathBuf, #[source] io::Error),
    /// A file cannot be read.
    #[error("cannot read {0:?} in the queue directory")]
    Read(String, #[source] io::Error),
    /// It is not a plain file of root's, or too large.
    #[error("the queued file {0:?} is refused: {1}")]
    Foreign(String, String),
    /// A file cannot be removed.
    #[error("cannot remove {0:?} from the queue directory")]
    Remove(String, #[source] io::Error),
}

impl Error {
    /// Whether the file it is about will never be readable.
    pub fn is_final(&self) -> bool {
        match self {
            Error::Foreign(..) => true,
            Error::Read(_, error) => error.kind() == io::ErrorKind::InvalidData,
            _ => false,
        }
    }
}

/// The queue that belongs to a socket.
pub fn dir(socket: &Path) -> PathBuf {
    let mut path = OsString::from(socket);
    path.push(".queue");
    PathBuf::from(path)
}

/// Opens the directory without following a link, and checks whose it is.
fn open(dir: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let failed = |error: rustix::io::Errno| Error::Open(dir.to_owned(), error.into());
    let fd = rustix::fs::open(dir, flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&fd).map_err(failed)?;
    let mode = stat.st_mode & 0o7777;
    if stat.st_uid != 0 || mode & 0o022 != 0 {
        return Err(Error::Unsafe(dir.to_owned(), stat.st_uid, mode));
    }
    Ok(fd)
}
