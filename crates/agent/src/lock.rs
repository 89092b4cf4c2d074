//! One agent per state directory. The lock is taken before the socket is touched, so a second
//! agent leaves the first one's socket alone.

use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The lock on a state directory; free again when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct StateLock {
    _file: File,
}

/// Why the directory is not ours.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another agent has it.
    #[error(
        "another agent (process {holder}) uses the state directory {directory}; stop it first, or give this one its own --state-dir"
    )]
    Taken {
        /// The directory.
        directory: PathBuf,
        /// Who has it.
        holder: String,
    },
    /// The directory or the lock file cannot be made.
    #[error("cannot lock the state directory {directory}")]
    Io {
        /// The directory.
        directory: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl StateLock {
    /// Makes the directory if need be and locks it.
    pub(crate) fn take(directory: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            directory: directory.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(io)?;
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .open(directory.join("lock"))
            .map_err(io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _ = (&mut file).take(20).read_to_string(&mut holder);
                return Err(LockError::Taken {
                    directory: directory.to_owned(),
                    holder,
                });
            }
            Err(errno) => return Err(io(errno.into())),
        }
        note_holder(&mut file);
        Ok(Self { _file: file })
    }
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
        let first = StateLock::take(&directory).unwrap();
        let error = StateLock::take(&directory).unwrap_err().to_string();
        assert!(
            error.contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        drop(first);
        StateLock::take(&directory).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
