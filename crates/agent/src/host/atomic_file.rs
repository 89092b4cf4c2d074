//! Files that others read while we write them: never half there. Owns writing beside and renaming;
//! knows nothing of what is in them.

use plexus_faults::effect;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name in the same directory, flushes it to disk and renames it:
/// whoever opens the path sees all of the old content or all of the new.
pub(crate) fn put(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    swap(path, |temporary| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(temporary)?;
        file.write_all(content)?;
        // The mode that was asked for, whatever the umask is.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    })
}

/// Gives an existing file a second name, in place of whatever has that name.
pub(crate) fn link(existing: &Path, name: &Path) -> io::Result<()> {
    swap(name, |temporary| fs::hard_link(existing, temporary))
}

fn swap(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(path);
    let _ = fs::remove_file(&temporary);
    effect("file.place<");
    let made = make(&temporary).and_then(|()| fs::rename(&temporary, path));
    effect("file.place>");
    if made.is_err() {
        let _ = fs::remove_file(&temporary);
        return made;
    }
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Hidden, and with no extension that a runtime reads.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.new"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A directory of its own, removed when dropped.
    #[derive(Debug)]
    pub(crate) struct Scratch(pub(crate) PathBuf);

    impl Scratch {
        pub(crate) fn new(name: &str) -> Self {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("px-{name}-{}-{count}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn join(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        pub(crate) fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
            let mut names: Vec<String> = entries
                .map(|entry| name(entry).into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn replaces_whole_and_leaves_nothing_beside() {
        let scratch = Scratch::new("place");
        let path = scratch.join("file.conf");
        // What a crash left behind does not get in the way.
        fs::write(scratch.join(".file.conf.new"), "half").unwrap();
        put(&path, b"one", 0o644).unwrap();
        let open = File::open(&path).unwrap();
        put(&path, b"two", 0o755).unwrap();
        assert_eq!(io::read_to_string(&open).unwrap(), "one");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(scratch.names(), ["file.conf"]);
    }

    #[test]
    fn a_failure_changes_nothing() {
        let scratch = Scratch::new("place");
        let folder = scratch.join("folder");
        fs::create_dir_all(folder.join("inner")).unwrap();
        assert!(put(&folder, b"x", 0o644).is_err());
        assert!(put(&scratch.join("absent/file"), b"x", 0o644).is_err());
        assert_eq!(scratch.names(), ["folder"]);
    }
}
