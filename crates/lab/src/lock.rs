//! One change of a lab at a time, and one keeper. Locks on files, which the kernel lets go of whenever their
//! holder ends, however it does.

use crate::error::LabError;
use crate::files;
use crate::layout::Layout;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than any change takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);

/// Held while a lab is made, changed or removed.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Waits for whoever is at work on the lab.
    pub(crate) fn take(layout: &Layout) -> Result<Self, LabError> {
        let path = layout.lock();
        let start = Instant::now();
        while start.elapsed() < LOCK_TIMEOUT {
            // Again and again: the last lab that goes takes the directory with it.
            if files::make_fleeting_dir(layout.root())?
                && let Some(file) = try_lock(&path)?
            {
                return Ok(Self { path, _file: file });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(LabError::NotYet {
            what: format!("lab {} to be free", layout.name()),
            limit: LOCK_TIMEOUT,
            last: "another `plexus lab` is at work on it".to_owned(),
        })
    }

    /// Lets go, and removes the file: for when the lab is gone.
    pub(crate) fn remove_with_lab(self) -> Result<(), LabError> {
        files::remove(&self.path)
    }
}

/// Locks a file, made if it is missing; none if somebody else has it, or removed it or its directory meanwhile.
pub(crate) fn try_lock(path: &Path) -> Result<Option<File>, LabError> {
    let mut options = File::options();
    let opened = options.create(true).truncate(false).write(true).open(path);
    let file = match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(LabError::file("open", path))?,
    };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    let same = match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    };
    Ok(same.then_some(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn the_directory_may_go_with_another_lab() {
        let scratch = Scratch::new();
        let root = scratch.0.join("labs");
        let layout = Layout::in_root(&root, "x".parse().unwrap());
        let removing = root.clone();
        let other = std::thread::spawn(move || {
            for _ in 0..20_000 {
                let _ = fs::remove_dir(&removing);
            }
        });
        while !other.is_finished() {
            Lock::take(&layout).unwrap().remove_with_lab().unwrap();
        }
        other.join().unwrap();
    }

    #[test]
    fn held_once_and_gone_with_the_lab() {
        let scratch = Scratch::new();
        let layout = Layout::in_root(&scratch.0, "x".parse().unwrap());
        let lock = Lock::take(&layout).unwrap();
        assert!(try_lock(&layout.lock()).unwrap().is_none());
        let waiting = layout.clone();
        let next = std::thread::spawn(move || Lock::take(&waiting).map(drop));
        std::thread::sleep(Duration::from_millis(60));
        assert!(!next.is_finished());
        // The one who waits has opened the file that is removed now: it must not be content with that.
        lock.remove_with_lab().unwrap();
        next.join().unwrap().unwrap();
        assert!(layout.lock().exists());
    }
}
