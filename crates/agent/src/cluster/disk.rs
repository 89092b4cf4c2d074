//! The cache on disk: what was known of the cluster last, so that an agent that starts while the API
//! is away can serve. Owns one SQLite file; it is a cache, and one that cannot be used is made anew.
//!
//! Rows are objects as they came, one by one: writing grows with what changed.

use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The layout of the file; another one is made anew.
const FORMAT: i64 = 1;
const COMPLETE: (&str, &str) = ("meta", "complete");

/// Rows of one kind: key and text.
pub(super) type Rows = Vec<(String, String)>;

/// The file, and what is to be written to it.
pub(super) struct Disk {
    path: PathBuf,
    file: Mutex<Option<Connection>>,
    pending: Mutex<BTreeMap<(&'static str, String), Option<String>>>,
    pub(super) changed: Notify,
}

impl Disk {
    /// Opens or makes it. Without a disk everything works, but not across a restart without the
    /// API.
    pub(super) fn open(path: &Path, node: &str) -> Self {
        let file = match open(path, node) {
            Ok(file) => Some(file),
            Err(first) => {
                tracing::warn!(path = %path.display(), error = %first, "the cache of the cluster's objects is made anew");
                remove(path);
                let again = open(path, node);
                again
                    .inspect_err(|error| tracing::error!(path = %path.display(), %error, "no cache on disk: without the API server this agent will not know networks after a restart"))
                    .ok()
            }
        };
        Self {
            path: path.to_owned(),
            file: Mutex::new(file),
            pending: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn rows(&self, kind: &str) -> Rows {
        let read = |file: &Connection| -> rusqlite::Result<Rows> {
            let mut found = file.prepare("SELECT key, body FROM objects WHERE kind = ?1")?;
            let rows = found.query_map([kind], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        let file = self.file();
        match file.as_ref().map(read) {
            Some(Ok(rows)) => rows,
            Some(Err(error)) => {
                tracing::warn!(path = %self.path.display(), %error, kind, "cannot read the cache");
                Rows::new()
            }
            None => Rows::new(),
        }
    }

    /// Whether it has everything that pods need: it did once.
    pub(super) fn is_complete(&self) -> bool {
        !self.rows(COMPLETE.0).is_empty()
    }

    pub(super) fn set_complete(&self) {
        self.put(COMPLETE.0, COMPLETE.1, Some("1".to_owned()));
    }

    /// Writes a row with the next [`flush`](Self::flush); none removes it.
    pub(super) fn put(&self, kind: &'static str, key: &str, body: Option<String>) {
        self.pending().insert((kind, key.to_owned()), body);
        self.changed.notify_one();
    }

    pub(super) fn flush(&self) {
        let pending = std::mem::take(&mut *self.pending());
        let mut file = self.file();
        let Some(file) = file.as_mut().filter(|_| !pending.is_empty()) else {
            return;
        };
        if let Err(error) = write(file, &pending) {
            tracing::warn!(path = %self.path.display(), %error, "cannot write the cache");
            let mut newer = self.pending();
            for (key, body) in pending {
                newer.entry(key).or_insert(body);
            }
            self.changed.notify_one();
        }
    }

    fn file(&self) -> MutexGuard<'_, Option<Connection>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<(&'static str, String), Option<String>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(path: &Path, node: &str) -> rusqlite::Result<Connection> {
    let file = Connection::open(path)?;
    file.pragma_update(None, "journal_mode", "WAL")?;
    file.pragma_update(None, "synchronous", "NORMAL")?;
    file.pragma_update(None, "cache_size", -256)?;
    let format: i64 = file.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if format != FORMAT {
        file.execute_batch("DROP TABLE IF EXISTS objects")?;
    }
    file.execute_batch(
        "CREATE TABLE IF NOT EXISTS objects (
             kind TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL,
             PRIMARY KEY (kind, key)) WITHOUT ROWID",
    )?;
    file.pragma_update(None, "user_version", FORMAT)?;
    let owner: Option<String> = file
        .query_row("SELECT body FROM objects WHERE kind = 'owner'", [], |row| {
            row.get(0)
        })
        .optional()?;
    if owner.as_deref() != Some(node) {
        file.execute("DELETE FROM objects", [])?;
        file.execute("INSERT INTO objects VALUES ('owner', '', ?1)", [node])?;
    }
    Ok(file)
}

fn write(
    file: &mut Connection,
    pending: &BTreeMap<(&'static str, String), Option<String>>,
) -> rusqlite::Result<()> {
    let all = file.transaction()?;
    {
        let mut put = all.prepare_cached("INSERT OR REPLACE INTO objects VALUES (?1, ?2, ?3)")?;
        let mut drop = all.prepare_cached("DELETE FROM objects WHERE kind = ?1 AND key = ?2")?;
        for ((kind, key), body) in pending {
            match body {
                Some(body) => put.execute([*kind, key, body])?,
                None => drop.execute([*kind, key])?,
            };
        }
    }
    all.commit()
}

fn remove(path: &Path) {
    for tail in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(tail);
        // What is not there need not be removed; anything else shows when it is made anew.
        let _ = std::fs::remove_file(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let place =
            std::env::temp_dir().join(format!("plexus-cache-{}-{name}", std::process::id()));
        remove(&place);
        place
    }

    #[test]
    fn rows_survive_and_a_damaged_file_is_made_anew() {
        let path = scratch("rows");
        let disk = Disk::open(&path, "n1");
        assert!(!disk.is_complete());
        disk.put("network", "a/b", Some("1".into()));
        disk.put("network", "a/c", Some("2".into()));
        disk.put("network", "a/c", None);
        disk.set_complete();
        disk.flush();
        drop(disk);
        let disk = Disk::open(&path, "n1");
        assert!(disk.rows("node").is_empty());
        assert_eq!(disk.rows("network"), [("a/b".to_owned(), "1".to_owned())]);
        assert!(disk.is_complete());
        drop(disk);
        // Another node's cache says nothing about this one's.
        assert!(Disk::open(&path, "n2").rows("network").is_empty());
        std::fs::write(
            &path,
            b"this is no database, not even nearly, but long enough",
        )
        .unwrap();
        let disk = Disk::open(&path, "n1");
        assert!(!disk.is_complete());
        disk.put("network", "x/y", Some("3".into()));
        disk.flush();
        assert_eq!(disk.rows("network").len(), 1);
        drop(disk);
        remove(&path);
    }
}
