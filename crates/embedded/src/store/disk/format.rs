//! How the file is made and opened, and what is checked before it is believed.

use super::super::StoreError;
use rusqlite::{Connection, ErrorCode};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FORMAT: i64 = 1;

const SETUP: &str = "
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -1024;
    PRAGMA wal_autocheckpoint = 256;
    PRAGMA journal_size_limit = 1048576;
";

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS revisions (
        version INTEGER PRIMARY KEY, resource INTEGER NOT NULL, key TEXT NOT NULL,
        written INTEGER NOT NULL, object BLOB
    ) STRICT;
    CREATE TABLE IF NOT EXISTS resources (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, floor INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS starts (first INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS counter (
        id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL
    ) STRICT;
";

/// Opens the file; it may be new. Only its owner can read it: what SQLite puts beside it is like it.
pub(super) fn open(path: &Path) -> Result<Connection, rusqlite::Error> {
    let _ = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path);
    let connection = Connection::open(path)?;
    connection.execute_batch(SETUP)?;
    Ok(connection)
}

/// Opens it for the first time, and says what is wrong if it cannot be.
pub(super) fn connect(path: &Path) -> Result<Connection, StoreError> {
    open(path).map_err(|source| refused(path, source))
}

/// Whether it is sound and of a format that we know; makes its tables if it is new.
pub(super) fn check(path: &Path, connection: &Connection) -> Result<(), StoreError> {
    let refused = |source| refused(path, source);
    let found: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(refused)?;
    if found > FORMAT {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known: FORMAT,
        });
    }
    let sound: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(refused)?;
    if sound != "ok" {
        return Err(StoreError::Damaged {
            path: path.to_owned(),
            problem: sound,
        });
    }
    if found == FORMAT {
        return Ok(());
    }
    connection.execute_batch(TABLES).map_err(refused)?;
    connection
        .pragma_update(None, "user_version", FORMAT)
        .map_err(refused)
}

fn refused(path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::InUse { path },
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Damaged {
            path,
            problem: source.to_string(),
        },
        _ => StoreError::Open { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Killing a process loses nothing that it wrote; a power cut does, unless every commit is flushed.
    #[test]
    fn every_commit_is_flushed() {
        let path = std::env::temp_dir().join(format!("plexus-format-{}.db", std::process::id()));
        let connection = open(&path).unwrap();
        let asked = |what: &str| {
            let question = format!("PRAGMA {what}");
            connection.query_row(&question, [], |row| row.get::<_, rusqlite::types::Value>(0))
        };
        let (mode, flush) = (asked("journal_mode"), asked("synchronous"));
        drop(connection);
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
        }
        assert_eq!(mode.unwrap(), "wal".to_owned().into());
        // FULL: in this mode the log is flushed by each commit, not by checkpoints alone.
        assert_eq!(flush.unwrap(), 2.into());
    }
}
