//! The file under the journal: format number, tables, pragmas, checkpoints.

use super::JournalError;
use rusqlite::{Connection, ErrorCode};
use std::path::Path;
use std::time::Duration;

/// The format that this agent writes and reads. 1 and 2 had one row for all attachments of a request.
pub(super) const FORMAT: i64 = 3;

const TABLES: &str = "
CREATE TABLE request (
    container TEXT NOT NULL,
    ifname    TEXT NOT NULL,
    network   TEXT NOT NULL,
    pod_uid   TEXT,
    state     TEXT NOT NULL CHECK (state IN ('intent', 'done', 'deleting')),
    boot      TEXT NOT NULL,
    cookie    TEXT NOT NULL,
    netns     TEXT NOT NULL,
    version   INTEGER NOT NULL,
    details   TEXT NOT NULL,
    result    TEXT,
    PRIMARY KEY (container, ifname)
) WITHOUT ROWID;
CREATE INDEX request_by_pod ON request (pod_uid) WHERE pod_uid IS NOT NULL;
CREATE INDEX request_deleting ON request (container, ifname) WHERE state = 'deleting';
CREATE TABLE attachment (
    container TEXT NOT NULL,
    ifname    TEXT NOT NULL,
    reference INTEGER NOT NULL,
    ordinal   INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (container, ifname, reference, ordinal)
) WITHOUT ROWID;
CREATE TABLE address (
    pool      TEXT NOT NULL,
    address   TEXT NOT NULL,
    container TEXT NOT NULL,
    ifname    TEXT NOT NULL,
    owner     TEXT NOT NULL,
    PRIMARY KEY (pool, address)
) WITHOUT ROWID;
CREATE INDEX address_by_request ON address (container, ifname);
CREATE TABLE network (
    name TEXT PRIMARY KEY,
    boot TEXT NOT NULL,
    plan TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE gift (
    network TEXT NOT NULL,
    part    TEXT NOT NULL,
    block   TEXT NOT NULL,
    node    TEXT NOT NULL,
    PRIMARY KEY (network, part)
) WITHOUT ROWID;
CREATE TABLE directory (path TEXT PRIMARY KEY) WITHOUT ROWID;
";

/// How long somebody else may lock the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long somebody else may look at it before it is shared.
const EXCLUSIVE_TIMEOUT: Duration = Duration::from_secs(1);
/// The size of a new journal's pages. What is written of a pod with several networks fits its place in one of them: a
/// smaller page has chains of further ones for it, and each of them is two system calls.
const PAGE_BYTES: u32 = 8 << 10;
/// A log of so many pages (64 MiB) is moved into the journal by whoever writes; before that, off the ADD path.
const LOG_PAGES: u32 = (64 << 20) / PAGE_BYTES;

/// Opens, checks and if need be creates the journal. It is ours alone, which saves a system call for each lock; if
/// somebody looks at it just now, it is shared.
pub(super) fn open(path: &Path) -> Result<Connection, JournalError> {
    match open_with(path, "EXCLUSIVE", EXCLUSIVE_TIMEOUT) {
        Err(JournalError::Sqlite { source, .. }) if is_busy(&source) => {
            tracing::warn!(path = %path.display(), "somebody else has the journal open: it is shared");
            open_with(path, "NORMAL", BUSY_TIMEOUT)
        }
        opened => opened,
    }
}

fn open_with(path: &Path, locking: &str, timeout: Duration) -> Result<Connection, JournalError> {
    let connection = Connection::open(path).map_err(|source| failed(path, source))?;
    let prepared = connection
        .busy_timeout(timeout)
        .and_then(|()| prepare(&connection, locking));
    let found = prepared.map_err(|source| failed(path, source))?;
    if found > FORMAT {
        let path = path.to_owned();
        return Err(JournalError::Newer { path, found });
    }
    if (1..FORMAT).contains(&found) {
        let path = path.to_owned();
        return Err(JournalError::Older { path, found });
    }
    if found == 0 {
        let create = format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT;");
        connection
            .execute_batch(&create)
            .map_err(|source| failed(path, source))?;
    }
    check(&connection, path)?;
    Ok(connection)
}

/// Writers wait meanwhile: two flushes. Afterwards the log is empty, and the first write flushes once, so it should
/// be done seldom.
pub(super) fn checkpoint(connection: &Connection, path: &Path) -> Result<(), JournalError> {
    let run = || {
        // Not for those who read it, if it is shared.
        connection.busy_timeout(Duration::ZERO)?;
        let done = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        done
    };
    run().map_err(|source| JournalError::Sqlite {
        what: "write a checkpoint to".to_owned(),
        path: path.to_owned(),
        source,
    })
}

/// Whether SQLite says that the file itself is broken.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn prepare(connection: &Connection, locking: &str) -> rusqlite::Result<i64> {
    connection.set_prepared_statement_cache_capacity(32);
    // Before the log is used: then its index needs no file.
    connection.pragma_update(None, "locking_mode", locking)?;
    // One that is there keeps what it has.
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "cache_size", -512)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn check(connection: &Connection, path: &Path) -> Result<(), JournalError> {
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|source| failed(path, source))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(JournalError::Damaged {
        path: path.to_owned(),
        problem: verdict,
    })
}

fn failed(path: &Path, source: rusqlite::Error) -> JournalError {
    JournalError::of("open".to_owned(), path, source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn fixture(name: &str) -> PathBuf {
        let name = format!("plexus-schema-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn insert_network(journal: &Connection, name: &str) -> rusqlite::Result<usize> {
        let sql = "INSERT INTO network (name, boot, plan) VALUES (?1, '', '')";
        journal.execute(sql, [name])
    }

    fn count(journal: &Connection) -> rusqlite::Result<i64> {
        journal.query_row("SELECT count(*) FROM network", [], |row| row.get(0))
    }

    #[test]
    fn it_is_ours_alone_and_a_checkpoint_empties_the_log() {
        let fixture = fixture("alone");
        let path = fixture.join("journal.db");
        let journal = open(&path).unwrap();
        insert_network(&journal, "a").unwrap();
        let other = Connection::open(&path).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        assert!(is_busy(&count(&other).unwrap_err()));
        assert!(!fixture.join("journal.db-shm").exists());
        let log = || {
            let log = std::fs::metadata(fixture.join("journal.db-wal"));
            log.unwrap().len()
        };
        assert!(log() > 0);
        checkpoint(&journal, &path).unwrap();
        assert_eq!(log(), 0);
        insert_network(&journal, "b").unwrap();
        assert_eq!(count(&journal).unwrap(), 2);
        std::fs::remove_dir_all(fixture).unwrap();
    }

    #[test]
    fn it_is_shared_if_somebody_looks_at_it() {
        let fixture = fixture("shared");
        let path = fixture.join("journal.db");
        insert_network(&open(&path).unwrap(), "a").unwrap();
        let other = Connection::open(&path).unwrap();
        assert_eq!(count(&other).unwrap(), 1);
        let journal = open(&path).unwrap();
        insert_network(&journal, "b").unwrap();
        checkpoint(&journal, &path).unwrap();
        assert_eq!(count(&other).unwrap(), 2);
        std::fs::remove_dir_all(fixture).unwrap();
    }
}
