//! The file: one row per version of an object, newest last, as long as somebody may ask for it.
//!
//! ```text
//!   revisions(version, resource, key, written, object)   object NULL: it was deleted
//!   resources(id, name, floor)    changes up to `floor` are forgotten: only current rows are left
//!   starts(first, last)           versions between `last` and `first` were never given out
//!   counter(version)              the newest version; it never goes back
//! ```
//! A commit is flushed (WAL, `synchronous=FULL`). One server per file: the lock is held while it is
//! open. Rows of kinds that this server does not have are left alone.

mod format;
mod load;

use super::StoreError;
use super::key::Table;
use super::log::{Change, Entry};
use super::memory::{Evicted, Memory};
use crate::kinds::Kind;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Beyond this (the year 3084) a clock is not believed.
const LAST_BELIEVABLE: u64 = 1 << 45;

/// Versions that were never given out, because the counter was set forward at a start. Whoever
/// names one has it from another store, or from a state of this one that was lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(Vec<(u64, u64)>);

impl Gaps {
    pub(super) fn have(&self, version: u64) -> bool {
        // In order, and none overlaps another.
        let next = self.0.partition_point(|(_, first)| *first <= version);
        self.0.get(next).is_some_and(|(last, _)| *last < version)
    }
}

/// The open file.
pub(super) struct Disk {
    path: PathBuf,
    connection: Connection,
    /// What each table's rows say of themselves.
    resources: Vec<i64>,
    forgotten: Evicted,
    uncertain: Option<UncertainCommit>,
    /// The next commit says that it failed, though it did not.
    #[cfg(test)]
    fails_once_written: bool,
}

/// A commit that failed and may be in the file nevertheless.
#[derive(Clone, Copy, Debug)]
struct UncertainCommit {
    /// The newest version that was answered.
    known: u64,
    /// The file has to be opened again.
    reopen: bool,
}

impl Disk {
    /// Opens the file, makes it if it is not there, and reads everything.
    pub(super) fn open(
        path: &Path,
        kinds: &[Arc<Kind>],
        now: u64,
    ) -> Result<(Self, Memory), StoreError> {
        let connection = format::connect(path)?;
        format::check(path, &connection)?;
        let opened = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        let mut disk = Self {
            path: path.to_owned(),
            connection,
            resources: Vec::new(),
            forgotten: Evicted::default(),
            uncertain: None,
            #[cfg(test)]
            fails_once_written: false,
        };
        let start = match disk.begin(now) {
            // There is no room to set the counter forward: it goes on where it was, and what is
            // there can be read.
            Err(error) if is_full(&error) => disk.begin(0).map_err(opened)?,
            begun => begun.map_err(opened)?,
        };
        let floors = disk.register(kinds, start).map_err(opened)?;
        let mut memory = Memory::new(&floors, disk.gaps().map_err(opened)?);
        disk.load(kinds, &mut memory)?;
        memory.set_version(start.max(memory.version()));
        Ok((disk, memory))
    }

    /// Writes changes in one flushed commit: all or none. `known` is the newest version before them.
    ///
    /// # Errors
    /// What the disk says. Nothing was written, or it has been removed again; if not even that is
    /// possible, it is tried before the next commit and at the end. Should the process be killed before,
    /// it is not known whether the next server finds these changes.
    pub(super) fn commit(
        &mut self,
        made: &[(Table, Arc<Entry>)],
        known: u64,
    ) -> Result<(), rusqlite::Error> {
        let version = made.last().map_or(known, |(_, entry)| entry.version());
        let done = self.repair().and_then(|()| self.transact(made, version));
        match &done {
            Ok(()) => self.forgotten = Evicted::default(),
            Err(error) => {
                let reopen =
                    !is_full(error) || self.uncertain.is_some_and(|uncertain| uncertain.reopen);
                self.uncertain = Some(UncertainCommit { known, reopen });
                self.settle();
            }
        }
        done
    }

    /// Removes what was refused and may be in the file nevertheless, if that can be done now.
    pub(super) fn settle(&mut self) {
        if let Err(error) = self.repair() {
            tracing::debug!(%error, "what may have been written cannot be removed yet");
        }
    }

    /// What can be removed from the file with the next commit.
    pub(super) fn forgotten(&mut self) -> &mut Evicted {
        &mut self.forgotten
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn transact(
        &mut self,
        made: &[(Table, Arc<Entry>)],
        version: u64,
    ) -> Result<(), rusqlite::Error> {
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO revisions (version, resource, key, written, object)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for (table, entry) in made {
                let object = &entry.object;
                let body = (entry.change != Change::Deleted).then_some(&object.body[..]);
                let resource = self.resources.get(table.index());
                let key = object.key.text();
                let row = params![signed(object.version), resource, key, object.written, body];
                let _ = insert.execute(row)?;
            }
            let mut remove =
                transaction.prepare_cached("DELETE FROM revisions WHERE version = ?1")?;
            for row in &self.forgotten.rows {
                let _ = remove.execute([signed(*row)])?;
            }
            let mut floor =
                transaction.prepare_cached("UPDATE resources SET floor = ?2 WHERE id = ?1")?;
            for (table, version) in &self.forgotten.floors {
                let resource = self.resources.get(table.index());
                let _ = floor.execute(params![resource, signed(*version)])?;
            }
            let _ = transaction
                .prepare_cached("UPDATE counter SET version = ?1")?
                .execute([signed(version)])?;
        }
        transaction.commit()?;
        #[cfg(test)]
        if std::mem::take(&mut self.fails_once_written) {
            return Err(rusqlite::Error::InvalidQuery);
        }
        Ok(())
    }

    /// After a commit that failed: removes what may have reached the file after all.
    fn repair(&mut self) -> Result<(), rusqlite::Error> {
        let Some(uncertain) = self.uncertain else {
            return Ok(());
        };
        if uncertain.reopen {
            // A file is closed before it is opened: it has but one lock.
            self.connection = Connection::open_in_memory()?;
            self.connection = format::open(&self.path)?;
        }
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        let removed = self.connection.execute(
            "DELETE FROM revisions WHERE version > ?1",
            [signed(uncertain.known)],
        )?;
        if removed > 0 {
            tracing::warn!(removed, "removed what was written but never answered");
        }
        self.uncertain = None;
        Ok(())
    }

    /// Sets the counter forward to the clock, and remembers what is skipped.
    fn begin(&mut self, now: u64) -> Result<u64, rusqlite::Error> {
        let transaction = self.connection.transaction()?;
        let last: Option<i64> = transaction
            .query_row("SELECT version FROM counter", [], |row| row.get(0))
            .optional()?;
        let newest: i64 = transaction.query_row(
            "SELECT coalesce(max(version), 0) FROM revisions",
            [],
            |row| row.get(0),
        )?;
        let last = unsigned(last.unwrap_or(0)).max(unsigned(newest));
        let believed = if now < LAST_BELIEVABLE { now } else { 0 };
        let start = last.max(believed).max(2);
        if start == last {
            return Ok(start);
        }
        let gap = params![signed(start), signed(last)];
        let _ = transaction.execute("INSERT INTO starts (first, last) VALUES (?1, ?2)", gap)?;
        let _ = transaction.execute(
            "INSERT INTO counter (id, version) VALUES (1, ?1)
             ON CONFLICT (id) DO UPDATE SET version = ?1",
            [signed(start)],
        )?;
        transaction.commit()?;
        Ok(start)
    }

    /// Numbers the kinds that are new; gives the floor of each.
    fn register(&mut self, kinds: &[Arc<Kind>], start: u64) -> Result<Vec<u64>, rusqlite::Error> {
        let transaction = self.connection.transaction()?;
        let mut floors = Vec::new();
        for kind in kinds {
            let name = kind.group_resource();
            let known = transaction
                .query_row(
                    "SELECT id, floor FROM resources WHERE name = ?1",
                    [&name],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            let (id, floor): (i64, i64) = match known {
                Some(known) => known,
                None => {
                    let _ = transaction.execute(
                        "INSERT INTO resources (name, floor) VALUES (?1, ?2)",
                        params![name, signed(start)],
                    )?;
                    (transaction.last_insert_rowid(), signed(start))
                }
            };
            self.resources.push(id);
            floors.push(unsigned(floor));
        }
        transaction.commit()?;
        Ok(floors)
    }

    fn gaps(&self) -> Result<Gaps, rusqlite::Error> {
        let mut starts = self
            .connection
            .prepare("SELECT last, first FROM starts ORDER BY first")?;
        let rows =
            starts.query_map([], |row| Ok((unsigned(row.get(0)?), unsigned(row.get(1)?))))?;
        rows.collect::<Result<_, _>>().map(Gaps)
    }
}

/// Whether there is no room; SQLite then has undone everything.
pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Versions are far below the sign.
fn signed(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

fn unsigned(version: i64) -> u64 {
    u64::try_from(version).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Disk, Table};
    use crate::kinds::{Kind, Kinds};
    use crate::store::key::Key;
    use crate::store::log::{Change, Entry};
    use crate::store::object::Stored;
    use hyper::body::Bytes;
    use serde_json::json;
    use std::sync::Arc;

    fn entry(kind: &Kind, name: &str, version: u64) -> Arc<Entry> {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let body = Bytes::from(object.to_string());
        let key = Key::new("default", name);
        Arc::new(Entry {
            change: Change::Added,
            object: Arc::new(Stored::new(kind, key, version, 0, &object, body)),
            before: None,
        })
    }

    #[test]
    fn what_was_refused_is_not_there_after_a_kill() {
        let directory = std::env::temp_dir().join(format!("px-doubt-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("store.db");
        let kinds = Kinds::builtin().unwrap();
        let kind = kinds.get("", "v1", "configmaps").unwrap();
        let table = Table::new(0);
        let (mut disk, memory) = Disk::open(&file, std::slice::from_ref(kind), 1000).unwrap();
        assert_eq!(memory.version(), 1000);
        disk.commit(&[(table, entry(kind, "a", 1001))], 1000)
            .unwrap();
        disk.fails_once_written = true;
        let refused = disk.commit(&[(table, entry(kind, "b", 1002))], 1001);
        assert!(refused.is_err());
        // Nothing is asked of it any more, as if it was killed.
        let Disk { connection, .. } = disk;
        drop(connection);
        let (_disk, memory) = Disk::open(&file, std::slice::from_ref(kind), 1000).unwrap();
        assert!(memory.get(table, &Key::new("default", "a")).is_some());
        assert!(memory.get(table, &Key::new("default", "b")).is_none());
        std::fs::remove_dir_all(directory).unwrap();
    }
}
