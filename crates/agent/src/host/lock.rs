//! One agent per state directory, and one per socket: two that shared a socket would end each
//! other's plugins. Both locks are taken before anything else is touched, so a second agent leaves
//! everything of the first one's alone. Lock files stay: removing one could free a lock that
//! somebody else has just taken.

use crate::options::beside;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The lock on a state directory or a socket; free again when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why the directory or the socket is not ours.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent has the directory.
    #[error(
        "another agent (process {1}) uses the state directory {0}; stop it first, or give this one its own --state-dir"
    )]
    Taken(PathBuf, String),
    /// Another agent has the socket.
    #[error(
        "another agent (process {1}) serves the socket {0}; stop it first, or give this one its own --socket"
    )]
    SocketTaken(PathBuf, String),
    /// Something else is where the directory should be.
    #[error(
        "{0} is not a directory: remove it, or name another place with --state-dir or --socket"
    )]
    NotADirectory(PathBuf),
    /// The lock file or its directory cannot be made.
    #[error("cannot take the lock {0}")]
    Io(PathBuf, #[source] std::io::Error),
}

impl Lock {
    /// Makes the state directory if need be and locks it.
    pub(crate) fn state(directory: &Path) -> Result<Self, LockError> {
        take(&directory.join("lock"), 0o700, |holder| {
            LockError::Taken(directory.to_owned(), holder)
        })
    }

    /// Locks the socket by a file beside it; makes its directory if need be.
    pub(crate) fn socket(socket: &Path) -> Result<Self, LockError> {
        take(&beside(socket, ".lock"), 0o755, |holder| {
            LockError::SocketTaken(socket.to_owned(), holder)
        })
    }
}

/// Locks a file, made if need be in a directory of that mode; `taken` says who was first.
fn take(
    path: &Path,
    directory_mode: u32,
    taken: impl FnOnce(String) -> LockError,
) -> Result<Lock, LockError> {
    let io = |source| LockError::Io(path.to_owned(), source);
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(directory_mode)
            .create(directory)
            .map_err(|source| in_the_way(directory).unwrap_or_else(|| io(source)))?;
    }
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(io)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            let _ = (&mut file).take(20).read_to_string(&mut holder);
            if holder.is_empty() {
                "unknown".clone_into(&mut holder);
            }
            return Err(taken(holder));
        }
        Err(errno) => return Err(io(errno.into())),
    }
    note_holder(&mut file);
    Ok(Lock { _file: file })
}

/// What is neither absent nor a directory on the way to this one.
fn in_the_way(directory: &Path) -> Option<LockError> {
    let wrong = |path: &&Path| path.symlink_metadata().is_ok() && !path.is_dir();
    let directory = directory.ancestors().find(wrong)?.to_owned();
    Some(LockError::NotADirectory(directory))
}

/// For the message of the next one; without it the lock holds all the same (a full disk).
fn note_holder(file: &mut File) {
    let _ = file.seek(SeekFrom::Start(0));
    let _ = file.set_len(0);
    let _ = write!(file, "{}", std::process::id());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let directory = std::env::temp_dir().join(format!("plexus-lock-{}", std::process::id()));
        let first = Lock::state(&directory).unwrap();
        let error = Lock::state(&directory).unwrap_err().to_string();
        assert!(
            error.contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        drop(first);
        Lock::state(&directory).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_socket_is_locked_whatever_the_state_directory() {
        let directory = std::env::temp_dir().join(format!("plexus-sock-{}", std::process::id()));
        let socket = directory.join("run/agent.sock");
        let first = Lock::socket(&socket).unwrap();
        let error = Lock::socket(&socket).unwrap_err().to_string();
        let holder = format!("process {}", std::process::id());
        assert!(
            error.contains(&holder) && error.contains("run/agent.sock;"),
            "{error}"
        );
        drop(first);
        assert!(
            directory.join("run/agent.sock.lock").exists(),
            "the file stays"
        );
        Lock::socket(&socket).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_is_not_a_directory() {
        let file = std::env::temp_dir().join(format!("plexus-file-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        for directory in [file.clone(), file.join("a/b")] {
            let error = Lock::state(&directory).unwrap_err().to_string();
            let wanted = format!("{} is not a directory", file.display());
            assert!(error.starts_with(&wanted), "{error}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_link_is_not_followed() {
        let directory = std::env::temp_dir().join(format!("plexus-link-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::os::unix::fs::symlink("/dev/null", directory.join("lock")).unwrap();
        assert!(matches!(Lock::state(&directory), Err(LockError::Io { .. })));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
