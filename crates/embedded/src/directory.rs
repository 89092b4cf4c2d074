//! The directory of a server: the names of the files that a server has in it, who works with them now, and
//! how they are removed. Whatever else somebody keeps in the same directory is never touched, and a
//! directory without a store of ours is nobody's of ours, whatever its files are called.

use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The objects; what SQLite needs besides has a name that begins so.
pub(crate) const STORE: &str = "store.db";
/// The key of the authority.
pub(crate) const KEY: &str = "ca.key";
/// For who may do everything.
pub(crate) const KUBECONFIG: &str = "kubeconfig";
const BESIDE_THE_STORE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// The kernel may still be ending whoever had the store.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a directory was not taken, or not removed.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A server runs.
    #[error("a plexus server works in {path} ({holder}): stop it first")]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Who has it.
        holder: String,
    },
    /// The file system says no.
    #[error("cannot use {path}")]
    File {
        /// Which file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// The directory of a server that does not run; while this is there, none starts in it.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// What holds the lock; nothing can be locked in a damaged file.
    _store: Option<Connection>,
}

impl Directory {
    /// Whether there is something that is called as our store is.
    pub fn has_store(path: &Path) -> bool {
        path.join(STORE).is_file()
    }

    /// Takes the directory of a server; none if there is no store of ours in it.
    ///
    /// # Errors
    /// A server works in it.
    pub fn take(path: &Path) -> Result<Option<Self>, DirectoryError> {
        if !Self::has_store(path) {
            return Ok(None);
        }
        let ours = |store| Self {
            path: path.to_owned(),
            _store: store,
        };
        match lock(&path.join(STORE)) {
            Ok((store, true)) => Ok(Some(ours(Some(store)))),
            Ok((_, false)) => Ok(None),
            Err(error) if is_busy(&error) => Err(DirectoryError::InUse {
                path: path.to_owned(),
                holder: holder(&path.join(STORE)),
            }),
            // It cannot say whose it is.
            Err(_) => Ok(path.join(KEY).is_file().then(|| ours(None))),
        }
    }

    /// Removes a server's files, and the directory if nothing else is in it; gives what else there is.
    ///
    /// # Errors
    /// A file cannot be removed: those that say whose the directory is are still there.
    pub fn remove(self) -> Result<Vec<PathBuf>, DirectoryError> {
        for file in self.files() {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(&file)(error));
                }
                _ => {}
            }
        }
        let entries = fs::read_dir(&self.path).map_err(failed(&self.path))?;
        let entries = entries.map(|entry| entry.map(|entry| entry.path()));
        let mut others: Vec<PathBuf> = entries
            .collect::<io::Result<_>>()
            .map_err(failed(&self.path))?;
        others.sort();
        if others.is_empty() {
            fs::remove_dir(&self.path).map_err(failed(&self.path))?;
        }
        Ok(others)
    }

    /// The store comes last: without it nobody knows that the rest is ours.
    fn files(&self) -> Vec<PathBuf> {
        let new = |name: &str| self.path.join(format!(".{name}.new"));
        let mut files = Vec::new();
        for name in [KUBECONFIG, KEY] {
            files.extend([new(name), self.path.join(name)]);
        }
        let beside = BESIDE_THE_STORE.iter();
        files.extend(beside.map(|more| self.path.join(format!("{STORE}{more}"))));
        files.push(self.path.join(STORE));
        files
    }
}

/// Opens a store as a server does, so that no other can, and says whether it is one of ours; one without
/// tables is of a server that ended as it began.
fn lock(file: &Path) -> Result<(Connection, bool), rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;")?;
    let question = "SELECT count(*), coalesce(sum(name IN ('revisions', 'counter')), 0) FROM sqlite_schema \
                    WHERE type = 'table'";
    let (all, ours): (i64, i64) =
        connection.query_row(question, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((connection, all == 0 || ours == 2))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Who has a file open, as far as the kernel tells us.
fn holder(file: &Path) -> String {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let has_it = |process: &Path| {
        let open = fs::read_dir(process.join("fd")).into_iter().flatten();
        open.flatten()
            .any(|one| fs::read_link(one.path()).is_ok_and(|target| target == file))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut numbers = processes.filter_map(|process| {
        let number: u32 = process.file_name().to_str()?.parse().ok()?;
        (number != std::process::id() && has_it(&process.path())).then_some(number)
    });
    match numbers.next() {
        Some(number) => format!("process {number}"),
        None => "a process that cannot be seen from here".to_owned(),
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use crate::store::Store;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("px-directory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn store(path: &Path) -> Store {
        Store::open(&path.join(STORE), &Kinds::builtin().unwrap(), 1000).unwrap()
    }

    #[test]
    fn what_is_not_a_servers_survives() {
        let path = scratch("others");
        drop(store(&path));
        for name in [KEY, KUBECONFIG, ".kubeconfig.new", "notes.txt"] {
            fs::write(path.join(name), "x").unwrap();
        }
        fs::create_dir(path.join("theirs")).unwrap();
        let directory = Directory::take(&path).unwrap().unwrap();
        let others = directory.remove().unwrap();
        assert_eq!(others, [path.join("notes.txt"), path.join("theirs")]);
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_servers_own_directory_goes_with_its_files() {
        let path = scratch("own");
        drop(store(&path));
        let directory = Directory::take(&path).unwrap().unwrap();
        assert_eq!(directory.remove().unwrap(), [""; 0].map(PathBuf::from));
        assert!(!path.exists());
        // A damaged one too.
        fs::create_dir(&path).unwrap();
        fs::write(
            path.join(STORE),
            "not a database, and long enough to be read as one",
        )
        .unwrap();
        fs::write(path.join(KEY), "x").unwrap();
        drop(Directory::take(&path).unwrap().unwrap().remove().unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_without_our_store_is_not_ours() {
        let path = scratch("theirs");
        fs::write(path.join(KEY), "theirs").unwrap();
        fs::write(path.join(KUBECONFIG), "theirs").unwrap();
        assert!(Directory::take(&path).unwrap().is_none());
        fs::remove_file(path.join(KEY)).unwrap();
        fs::write(
            path.join(STORE),
            "a shop's list, which is no database of any kind",
        )
        .unwrap();
        assert!(Directory::take(&path).unwrap().is_none());
        fs::remove_file(path.join(STORE)).unwrap();
        let shop = Connection::open(path.join(STORE)).unwrap();
        shop.execute_batch("CREATE TABLE fruit (name TEXT)")
            .unwrap();
        drop(shop);
        assert!(Directory::take(&path).unwrap().is_none());
        assert!(Directory::take(&path.join("nowhere")).unwrap().is_none());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn nobody_takes_what_a_server_works_with() {
        let path = scratch("used");
        let serving = store(&path);
        let error = Directory::take(&path).unwrap_err().to_string();
        assert!(error.contains("stop it first"), "{error}");
        drop(serving);
        let taken = Directory::take(&path).unwrap().unwrap();
        let kinds = Kinds::builtin().unwrap();
        assert!(Store::open(&path.join(STORE), &kinds, 1000).is_err());
        drop(taken);
        drop(store(&path));
        fs::remove_dir_all(path).unwrap();
    }
}
