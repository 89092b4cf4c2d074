//! Files that others read while we write them: written beside and renamed, so that whoever opens one sees all
//! of it. Values go in and come out as JSON.

use crate::error::LabError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes a value.
pub(crate) fn put_json<T: Serialize>(path: &Path, value: &T) -> Result<(), LabError> {
    let text = serde_json::to_vec_pretty(value).map_err(io::Error::other);
    text.and_then(|text| put(path, &text))
        .map_err(LabError::file("write", path))
}

/// Reads a value; none if the file is not there.
pub(crate) fn get_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, LabError> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(LabError::file("read", path))?,
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| LabError::file("understand", path)(error.into()))
}

/// Writes a file that only root can read.
pub(crate) fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let _ = fs::remove_file(&beside);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let written = file
        .write_all(content)
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Makes a directory and those above it.
pub(crate) fn make_dir(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(LabError::file("make", path))
}

/// As [`make_dir`], while others may remove it: whether it was there when we looked last. A directory that is
/// there when it is made and gone when it is looked at is neither ours nor an error.
pub(crate) fn make_fleeting_dir(path: &Path) -> Result<bool, LabError> {
    match fs::create_dir_all(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        // In the way is only what is still there and no directory.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            match fs::symlink_metadata(path) {
                Ok(found) if !found.is_dir() => Err(LabError::file("make", path)(error)),
                _ => Ok(false),
            }
        }
        Err(error) => Err(LabError::file("make", path)(error)),
    }
}

/// Removes a file; none is fine.
pub(crate) fn remove(path: &Path) -> Result<(), LabError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(LabError::file("remove", path)),
    }
}

/// Two writers of the same file do not meet: the name has the thread's own number.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let thread = rustix::thread::gettid().as_raw_nonzero();
    path.with_file_name(format!(".{name}.{thread}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A directory of its own, removed when dropped.
    pub(crate) struct Scratch(pub(crate) PathBuf);

    impl Scratch {
        pub(crate) fn new() -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("px-lab-{}-{count}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn written_whole_and_nothing_beside() {
        let scratch = Scratch::new();
        let path = scratch.0.join("a.json");
        assert_eq!(get_json::<Vec<u8>>(&path).unwrap(), None);
        put_json(&path, &vec![1, 2]).unwrap();
        put_json(&path, &vec![3]).unwrap();
        assert_eq!(get_json::<Vec<u8>>(&path).unwrap(), Some(vec![3]));
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);
        fs::write(&path, "{").unwrap();
        let error = get_json::<Vec<u8>>(&path).unwrap_err().to_string();
        assert!(error.contains("a.json"), "{error}");
        let nowhere = scratch.0.join("absent/a.json");
        assert!(put_json(&nowhere, &1).is_err());
    }

    #[test]
    fn a_directory_that_others_remove_is_made_or_not_and_a_file_in_its_place_is_an_error() {
        let scratch = Scratch::new();
        let path = scratch.0.join("above/labs");
        assert!(make_fleeting_dir(&path).unwrap());
        assert!(make_fleeting_dir(&path).unwrap());
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "").unwrap();
        let error = make_fleeting_dir(&path).unwrap_err().to_string();
        assert!(error.contains("labs"), "{error}");
    }
}
