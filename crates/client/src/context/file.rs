//! A kubeconfig as a file: locked as kubectl locks it, read, written whole or not at all.

use super::ContextError;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Whoever changes a kubeconfig has it for milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// A lock of that age was left by a program that was killed, or by a power cut, whoever that was.
const STALE_AGE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What a kubeconfig says; an empty one says nothing.
pub(super) fn read(path: &Path) -> Result<Value, ContextError> {
    let text = fs::read(path).map_err(failed("read", path))?;
    let config: Value = serde_yaml_ng::from_slice(&text).map_err(|source| ContextError::Yaml {
        path: path.to_owned(),
        source,
    })?;
    match config {
        Value::Null => Ok(empty()),
        Value::Object(_) => Ok(config),
        _ => Err(ContextError::NoKubeconfig {
            path: path.to_owned(),
        }),
    }
}

fn empty() -> Value {
    json!({"apiVersion": "v1", "kind": "Config"})
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ContextError {
    let path = path.to_owned();
    move |source| ContextError::File { what, path, source }
}

/// A kubeconfig that nobody else changes meanwhile: kubectl makes the same file beside it.
pub(super) struct Locked {
    /// Where the file is, whatever links led there.
    path: PathBuf,
    lock: PathBuf,
}

impl Locked {
    pub(super) fn take(path: &Path) -> Result<Self, ContextError> {
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        if let Some(directory) = directory {
            let made = fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory);
            made.map_err(failed("make the directory of", path))?;
        }
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let until = Instant::now() + LOCK_TIMEOUT;
        loop {
            match OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(mut file) => {
                    let _ = write!(file, "{}", std::process::id());
                    break;
                }
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(failed("lock", path)(error));
                }
                Err(_) if is_stale(&lock) => {
                    let _ = fs::remove_file(&lock);
                }
                Err(_) if Instant::now() > until => {
                    return Err(ContextError::Locked {
                        path: path.to_owned(),
                        seconds: LOCK_TIMEOUT.as_secs(),
                    });
                }
                Err(_) => std::thread::sleep(POLL_INTERVAL),
            }
        }
        // From here on it is removed with us.
        let mut locked = Self {
            path: path.to_owned(),
            lock,
        };
        match fs::canonicalize(path) {
            Ok(real) => locked.path = real,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed("find", path)(error)),
        }
        Ok(locked)
    }

    /// What it says; nothing if there is none yet.
    pub(super) fn read(&self) -> Result<Value, ContextError> {
        match self.path.exists() {
            true => read(&self.path),
            false => Ok(empty()),
        }
    }

    /// Whether it is there, and nobody but its owner can read it.
    pub(super) fn is_private(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|file| file.mode() & 0o077 == 0)
    }

    /// Writes it: there are keys in it, so that only its owner can read it, who stays the same.
    pub(super) fn write(&self, config: &Value) -> Result<(), ContextError> {
        let failed = || failed("write", &self.path);
        let text = serde_yaml_ng::to_string(config).map_err(|source| ContextError::Yaml {
            path: self.path.clone(),
            source,
        })?;
        let mut beside = self.path.as_os_str().to_owned();
        // One name for all: what a program that was killed has left is written over.
        beside.push(".plexus-new");
        let beside = PathBuf::from(beside);
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&beside)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            if let Ok(before) = fs::metadata(&self.path) {
                fchown(&file, Some(before.uid()), Some(before.gid()))?;
            }
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)
        };
        let written = write();
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written.map_err(failed())?;
        match self.path.parent().map(File::open) {
            Some(Ok(directory)) => directory.sync_all().map_err(failed()),
            _ => Ok(()),
        }
    }

    pub(super) fn remove(&self) -> Result<(), ContextError> {
        fs::remove_file(&self.path).map_err(failed("remove", &self.path))
    }
}

/// Whether nobody has a lock any more: one of ours has the number of its process in it.
fn is_stale(lock: &Path) -> bool {
    let holder = fs::read_to_string(lock).unwrap_or_default();
    if holder.parse::<u32>().is_ok() {
        return !Path::new("/proc").join(holder).exists();
    }
    let modified = fs::metadata(lock).and_then(|file| file.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE_AGE))
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.lock);
    }
}
