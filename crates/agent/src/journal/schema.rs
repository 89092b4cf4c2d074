//! The file under the journal: format number, tables, pragmas, checkpoints.

use super::JournalError;
use rusqlite::{Connection, ErrorCode, OpenFlags};
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

/// Opens, checks and if need be creates the journal.
pub(super) fn open(path: &Path) -> Result<Connection, JournalError> {
    let connection = Connection::open(path).map_err(|source| failed(path, source))?;
    let format = prepare(&connection).map_err(|source| failed(path, source))?;
    if format > FORMAT {
        return Err(JournalError::Newer {
            path: path.to_owned(),
            found: format,
            known: FORMAT,
        });
    }
    if (1..FORMAT).contains(&format) {
        return Err(JournalError::Older {
            path: path.to_owned(),
            found: format,
            known: FORMAT,
        });
    }
    if format == 0 {
        let create = format!("BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT;");
        connection
            .execute_batch(&create)
            .map_err(|source| failed(path, source))?;
    }
    check(&connection, path)?;
    Ok(connection)
}

/// A connection of its own, so that the flush of a checkpoint never holds a writer up.
pub(super) fn checkpoint(path: &Path) -> Result<(), JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let run = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_millis(100))?;
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
    };
    run().map_err(|source| JournalError::Write {
        what: "a checkpoint",
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

fn prepare(connection: &Connection) -> rusqlite::Result<i64> {
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
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
    if is_damage(&source) {
        return JournalError::Damaged {
            path: path.to_owned(),
            problem: source.to_string(),
        };
    }
    JournalError::Open {
        path: path.to_owned(),
        source,
    }
}
