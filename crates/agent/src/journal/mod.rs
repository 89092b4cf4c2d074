//! The journal: what this node has promised and done, in one SQLite file. Owns the records of
//! requests, a row for each attachment, the addresses of `plexus` pools, what networks keep on the node and which parts
//! of its blocks were given away.
//!
//! ```text
//!   begin ──► intent ──► done ──► deleting ──► (gone)
//!               └───────────────────▲  undo: an ADD that failed, or an agent that died in it
//! ```
//! A row that cannot be read is quarantined: whoever asks for that request gets an error, everybody else goes on
//! ([`quarantine`]).
//! A row is written before the side effect that it describes. It survives the death of the
//! process without a disk flush; a machine crash wipes the kernel state that it describes, so
//! rows of an earlier boot are void, except where they stand for something that outlives a
//! reboot: those are flushed ([`Record::outlives_reboot`], and every donation). Decides nothing.

mod donation;
mod quarantine;
mod record;
mod row;
mod schema;
mod write_problem;

pub(crate) use record::{
    AttachmentRecord, BackendRecord, Details, Key, NativeRecord, PluginsRecord, PreparationRecord,
    Record, State, Stored, owner_of,
};

use crate::sync::lock;
use plexus_core::plan::NodePlan;
use plexus_faults::effect;
use plexus_types::{ContainerId, IfName, NetworkName};
use quarantine::Quarantine;
use record::{RawAttachment, RawRecord, VERSION};
use row::NodePlanRow;
use rusqlite::{Connection, params};
use std::net::IpAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// SQLite cannot do something with it: a full disk, most likely.
    #[error("cannot {what} the journal {path}")]
    Sqlite {
        /// What was to be done, as a sentence that ends with the file.
        what: String,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// It is not a database, or its pages contradict each other.
    #[error("the journal {path} is damaged: {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says of it.
        problem: String,
    },
    /// An older agent wrote it.
    #[error("the journal {path} has format {found}, this agent reads only {known}", known = schema::FORMAT)]
    Older {
        /// The file.
        path: PathBuf,
        /// Its format number.
        found: i64,
    },
    /// A newer agent wrote it.
    #[error("the journal {path} has format {found}, this agent knows up to {known}", known = schema::FORMAT)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format number.
        found: i64,
    },
    /// A row does not hold what it should.
    #[error("the journal {path} has a record of {key} that cannot be read: {problem}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Container and interface.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl JournalError {
    fn of(what: String, path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match schema::is_damage(&source) {
            true => Self::Damaged {
                path,
                problem: source.to_string(),
            },
            false => Self::Sqlite { what, path, source },
        }
    }
}

#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    connection: Mutex<Connection>,
    last_write_error: Mutex<Option<plexus_api::cni::Error>>,
    unreadable: Quarantine,
    unreadable_networks: Quarantine,
}

impl Journal {
    /// Opens or creates the journal. An older agent refuses a newer one's journal.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let connection = schema::open(path)?;
        Ok(Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
            last_write_error: Mutex::default(),
            unreadable: Quarantine::default(),
            unreadable_networks: Quarantine::default(),
        })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the intent of an ADD with its addresses, before any side effect.
    pub(crate) fn begin(&self, record: &Record) -> Result<(), JournalError> {
        self.insert(record, State::Intent)
    }

    /// Writes a record of something that is there already: never an intent, not for a moment.
    pub(crate) fn adopt(&self, record: &Record) -> Result<(), JournalError> {
        self.insert(record, State::Done)
    }

    fn insert(&self, record: &Record, state: State) -> Result<(), JournalError> {
        effect("journal.begin<");
        let connection = self.lock();
        let details = serde_json::to_string(&record.details).unwrap_or_default();
        let result = durable(&connection, record.outlives_reboot(), |tx| {
            tx.prepare_cached(
                "INSERT INTO request
                 (container, ifname, network, pod_uid, state, boot, cookie, netns, version, details)
                 VALUES (?1, ?2, ?3, ?4, ?9, ?5, ?6, ?7, ?10, ?8)",
            )?
            .execute(params![
                record.container.as_str(),
                record.ifname.as_str(),
                record.network.as_str(),
                record.pod_uid,
                record.boot,
                record.cookie.0.to_string(),
                record.netns,
                details,
                state.word(),
                VERSION,
            ])?;
            put_attachments(tx, record, 0..record.attachments.len())?;
            insert_addresses(tx, record)
        });
        drop(connection);
        effect("journal.begin>");
        self.written("the intent of an ADD", result)
    }

    /// Replaces some attachments: a plugin has begun or answered, or links behind a plugin are planned. What is decided with
    /// the links, such as ports of the node, is written with them.
    pub(crate) fn update(
        &self,
        record: &Record,
        attachments: Range<usize>,
    ) -> Result<(), JournalError> {
        effect("journal.update<");
        let connection = self.lock();
        let details = serde_json::to_string(&record.details).unwrap_or_default();
        let (container, ifname) = (record.container.as_str(), record.ifname.as_str());
        let result = durable(&connection, record.outlives_reboot(), |tx| {
            tx.prepare_cached(
                "UPDATE request SET details = ?3 WHERE container = ?1 AND ifname = ?2",
            )?
            .execute(params![container, ifname, details])?;
            put_attachments(tx, record, attachments)
        });
        drop(connection);
        effect("journal.update>");
        self.written("a step of an ADD", result)
    }

    /// The ADD is complete: from now on only evidence undoes it.
    pub(crate) fn done(&self, record: &Record, result: &str) -> Result<(), JournalError> {
        effect("journal.done<");
        let written = self.execute(
            "UPDATE request SET state = 'done', result = ?3 WHERE container = ?1 AND ifname = ?2",
            params![record.container.as_str(), record.ifname.as_str(), result],
        );
        effect("journal.done>");
        self.written("a completed ADD", written)
    }

    /// From now on the attachment is being removed, also by the next agent.
    pub(crate) fn deleting(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), JournalError> {
        effect("journal.deleting<");
        let written = self.execute(
            "UPDATE request SET state = 'deleting' WHERE container = ?1 AND ifname = ?2",
            params![container.as_str(), ifname.as_str()],
        );
        effect("journal.deleting>");
        self.written("the beginning of a DEL", written)
    }

    /// Everything is gone from the kernel and from disk: the addresses are free.
    pub(crate) fn forget(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), JournalError> {
        effect("journal.forget<");
        let connection = self.lock();
        let result = durable(&connection, false, |tx| {
            for sql in [
                "DELETE FROM address WHERE container = ?1 AND ifname = ?2",
                "DELETE FROM attachment WHERE container = ?1 AND ifname = ?2",
                "DELETE FROM request WHERE container = ?1 AND ifname = ?2",
            ] {
                tx.prepare_cached(sql)?
                    .execute(params![container.as_str(), ifname.as_str()])?;
            }
            Ok(())
        });
        drop(connection);
        if result.is_ok() {
            self.unreadable.release(&format!("{container}/{ifname}"));
        }
        effect("journal.forget>");
        self.written("the end of a DEL", result)
    }

    /// Some attachments of a request are gone from the kernel and from disk: their addresses are free.
    pub(crate) fn forget_attachments(
        &self,
        record: &Record,
        gone: &[&AttachmentRecord],
    ) -> Result<(), JournalError> {
        effect("journal.forget-some<");
        let connection = self.lock();
        let (container, ifname) = (record.container.as_str(), record.ifname.as_str());
        let result = durable(&connection, false, |tx| {
            let mut address = tx.prepare_cached(
                "DELETE FROM address WHERE container = ?1 AND ifname = ?2 AND owner = ?3",
            )?;
            let mut attachment = tx.prepare_cached(
                "DELETE FROM attachment
                 WHERE container = ?1 AND ifname = ?2 AND reference = ?3 AND ordinal = ?4",
            )?;
            for one in gone {
                let owner = owner_of(&record.container, &record.ifname, &one.ifname);
                address.execute(params![container, ifname, owner])?;
                let number = params![container, ifname, column(one.reference), one.ordinal];
                attachment.execute(number)?;
            }
            // What is left is no attachment any more, whatever it was before.
            tx.prepare_cached(
                "UPDATE request SET state = 'deleting' WHERE container = ?1 AND ifname = ?2",
            )?
            .execute(params![container, ifname])?;
            Ok(())
        });
        drop(connection);
        effect("journal.forget-some>");
        self.written("a part of a DEL", result)
    }

    pub(crate) fn find(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<Option<Stored>, JournalError> {
        let key = params![container.as_str(), ifname.as_str()];
        let mut found = self.read_rows("WHERE container = ?1 AND ifname = ?2", key)?;
        match found.pop() {
            Some((raw, attachments)) => raw.parse(attachments, &self.path).map(Some),
            None => Ok(None),
        }
    }

    /// The records of a pod, whatever the sandbox.
    pub(crate) fn of_pod(&self, pod_uid: &str) -> Result<Vec<Stored>, JournalError> {
        let rows = self.read_rows("WHERE pod_uid = ?1", params![pod_uid])?;
        Ok(self.readable(rows))
    }

    /// The records of a container, in the order of its interfaces.
    pub(crate) fn of_container(
        &self,
        container: &ContainerId,
    ) -> Result<Vec<Stored>, JournalError> {
        let rows = self.read_rows("WHERE container = ?1", params![container.as_str()])?;
        Ok(self.readable(rows))
    }

    pub(crate) fn all(&self) -> Result<Vec<Stored>, JournalError> {
        let rows = self.read_rows("", [])?;
        Ok(self.readable(rows))
    }

    /// What is being removed.
    pub(crate) fn being_removed(&self) -> Result<Vec<(ContainerId, IfName)>, JournalError> {
        let rows: Vec<(String, String)> = self.select(
            "what is being removed",
            "SELECT container, ifname FROM request WHERE state = 'deleting'",
            [],
        )?;
        // Whoever reads the whole row says what is wrong with it.
        let keys = rows.iter().filter_map(|(container, ifname)| {
            Some((container.parse().ok()?, ifname.parse().ok()?))
        });
        Ok(keys.collect())
    }

    /// Every address of every `plexus` pool, with its owner.
    pub(crate) fn addresses(&self) -> Result<Vec<(String, IpAddr, String)>, JournalError> {
        let rows: Vec<(String, String, String)> = self.select(
            "the addresses",
            "SELECT pool, address, owner FROM address ORDER BY pool, address",
            [],
        )?;
        let parsed = rows.into_iter().filter_map(|(pool, address, owner)| {
            let parsed = address.parse().ok();
            if parsed.is_none() {
                let key = format!("address {address} of pool {pool}");
                let problem = "not an IP address".to_owned();
                self.unreadable.add(key, problem, &self.path);
            }
            Some((pool, parsed?, owner))
        });
        Ok(parsed.collect())
    }

    /// Writes what a network needs on the node, before the agent makes it.
    pub(crate) fn put_node_plan(
        &self,
        network: &NetworkName,
        boot: &str,
        plan: &NodePlan,
    ) -> Result<(), JournalError> {
        effect("journal.write_node_plan<");
        let text = row::text::<NodePlanRow>(plan);
        let written = self.execute(
            "INSERT OR REPLACE INTO network (name, boot, plan) VALUES (?1, ?2, ?3)",
            params![network.as_str(), boot, text],
        );
        effect("journal.write_node_plan>");
        if written.is_ok() {
            self.unreadable_networks.release(network.as_str());
        }
        self.written("what a network keeps on the node", written)
    }

    /// Deletes it: the network needs nothing on the node any more.
    pub(crate) fn delete_node_plan(&self, network: &NetworkName) -> Result<(), JournalError> {
        effect("journal.delete_node_plan<");
        let written = self.execute("DELETE FROM network WHERE name = ?1", [network.as_str()]);
        effect("journal.delete_node_plan>");
        if written.is_ok() {
            self.unreadable_networks.release(network.as_str());
        }
        written
            .map(drop)
            .map_err(|source| self.write_error("what a network keeps on the node", source))
    }

    /// What all networks need on the node, of this boot; deletes the rows of an earlier boot.
    pub(crate) fn node_plans(&self, boot: &str) -> Result<Vec<(String, NodePlan)>, JournalError> {
        let what = "what networks keep";
        self.execute("DELETE FROM network WHERE boot <> ?1", [boot])
            .map_err(|source| self.read_error(what, source))?;
        let sql = "SELECT name, plan FROM network ORDER BY name";
        let rows: Vec<(String, String)> = self.select(what, sql, [])?;
        let parse = |(name, plan): (String, String)| match row::parse::<NodePlanRow>(&plan) {
            Ok(plan) => Some((name, plan)),
            Err(error) => {
                let quarantine = &self.unreadable_networks;
                quarantine.add(name, error.to_string(), &self.path);
                None
            }
        };
        Ok(rows.into_iter().filter_map(parse).collect())
    }

    /// host-local's directories in which an address was ever taken here.
    pub(crate) fn directories(&self) -> Result<Vec<PathBuf>, JournalError> {
        let sql = "SELECT path FROM directory ORDER BY path";
        let rows: Vec<(String,)> = self.select("host-local's directories", sql, [])?;
        Ok(rows.into_iter().map(|(path,)| path.into()).collect())
    }

    /// Moves the write-ahead log into the file; called off the ADD path.
    pub(crate) fn checkpoint(&self) -> Result<(), JournalError> {
        schema::checkpoint(&self.lock(), &self.path)
    }

    /// Requests with their attachments, in the order of containers and interfaces.
    fn read_rows(
        &self,
        filter: &str,
        parameters: impl rusqlite::Params + Copy,
    ) -> Result<Vec<Rows>, JournalError> {
        let connection = self.lock();
        let read = || {
            let mut requests = connection
                .prepare_cached(&format!("{REQUESTS} {filter} ORDER BY container, ifname"))?;
            let requests = requests.query_map(parameters, request_row)?;
            let mut rows = Vec::new();
            for request in requests {
                let request = request?;
                let mut attachments = connection.prepare_cached(ATTACHMENTS)?;
                let key = params![request.container, request.ifname];
                let attachments = attachments.query_map(key, attachment_row)?;
                let attachments = attachments.collect::<Result<Vec<_>, _>>()?;
                rows.push((request, attachments));
            }
            Ok(rows)
        };
        read().map_err(|source| self.read_error("records", source))
    }

    /// All rows of a query.
    fn select<T>(
        &self,
        what: &'static str,
        sql: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<T>, JournalError>
    where
        T: for<'r> TryFrom<&'r rusqlite::Row<'r>, Error = rusqlite::Error>,
    {
        let connection = self.lock();
        let read = || -> rusqlite::Result<Vec<T>> {
            let mut select = connection.prepare_cached(sql)?;
            let rows = select.query_map(parameters, |row| T::try_from(row))?;
            rows.collect()
        };
        read().map_err(|source| self.read_error(what, source))
    }

    fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.lock().prepare_cached(sql)?.execute(parameters)
    }

    /// A thread that panicked has left no half of a transaction: that is rolled back ([`durable`]).
    fn lock(&self) -> MutexGuard<'_, Connection> {
        lock(&self.connection)
    }

    fn write_error(&self, what: &str, source: rusqlite::Error) -> JournalError {
        JournalError::of(format!("write {what} to"), &self.path, source)
    }

    fn read_error(&self, what: &str, source: rusqlite::Error) -> JournalError {
        JournalError::of(format!("read {what} from"), &self.path, source)
    }
}

/// A request and its attachments, as SQLite has them.
type Rows = (RawRecord, Vec<RawAttachment>);

const REQUESTS: &str = "SELECT container, ifname, network, pod_uid, state, boot, cookie, netns, version, details, result FROM request";
const ATTACHMENTS: &str = "SELECT reference, ordinal, version, body FROM attachment WHERE container = ?1 AND ifname = ?2 ORDER BY reference, ordinal";

fn request_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<RawRecord> {
    Ok(RawRecord {
        container: row.get(0)?,
        ifname: row.get(1)?,
        network: row.get(2)?,
        pod_uid: row.get(3)?,
        state: row.get(4)?,
        boot: row.get(5)?,
        cookie: row.get(6)?,
        netns: row.get(7)?,
        version: row.get(8)?,
        details: row.get(9)?,
        result: row.get(10)?,
    })
}

fn attachment_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<RawAttachment> {
    Ok(RawAttachment {
        reference: row.get(0)?,
        ordinal: row.get(1)?,
        version: row.get(2)?,
        body: row.get(3)?,
    })
}

/// Fewer references than that are ever asked for.
fn column(reference: usize) -> i64 {
    i64::try_from(reference).unwrap_or(i64::MAX)
}

fn put_attachments(
    tx: &Connection,
    record: &Record,
    attachments: Range<usize>,
) -> rusqlite::Result<()> {
    let mut put = tx.prepare_cached(
        "INSERT OR REPLACE INTO attachment (container, ifname, reference, ordinal, version, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for one in record.attachments.get(attachments).unwrap_or_default() {
        put.execute(params![
            record.container.as_str(),
            record.ifname.as_str(),
            column(one.reference),
            one.ordinal,
            VERSION,
            serde_json::to_string(one).unwrap_or_default(),
        ])?;
    }
    Ok(())
}

fn insert_addresses(tx: &Connection, record: &Record) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT OR ABORT INTO address (pool, address, container, ifname, owner)
         SELECT ?1, ?2, ?3, ?4, ?5
         WHERE NOT EXISTS (SELECT 1 FROM address WHERE pool = ?1 AND address = ?2 AND owner = ?5)",
    )?;
    for (pool, address, owner) in record.pool_addresses() {
        insert.execute(params![
            pool,
            address.to_string(),
            record.container.as_str(),
            record.ifname.as_str(),
            owner
        ])?;
    }
    let mut insert = tx.prepare_cached("INSERT OR IGNORE INTO directory (path) VALUES (?1)")?;
    for (directory, _) in record
        .natives()
        .filter_map(|(_, native)| native.host_local())
    {
        insert.execute([directory.to_string_lossy()])?;
    }
    Ok(())
}

/// Runs a transaction; flushed to disk before it returns if `flush` says so. It is rolled back if `work` fails or panics.
fn durable<T>(
    connection: &Connection,
    flush: bool,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = Transaction::begin(connection, flush)?;
    let value = work(connection)?;
    transaction.commit()?;
    Ok(value)
}

/// A transaction; rolled back when dropped, also by a panic, unless it was committed.
struct Transaction<'a> {
    connection: &'a Connection,
    flush: bool,
}

impl<'a> Transaction<'a> {
    fn begin(connection: &'a Connection, flush: bool) -> rusqlite::Result<Self> {
        let transaction = Self { connection, flush };
        if flush {
            connection.pragma_update(None, "synchronous", "FULL")?;
        }
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(transaction)
    }

    fn commit(self) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("COMMIT")?
            .execute([])
            .map(drop)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Some errors have ended the transaction by themselves. If this fails, the next one cannot begin, and says so.
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        // If this fails, later transactions are flushed too.
        if self.flush {
            let _ = self.connection.pragma_update(None, "synchronous", "NORMAL");
        }
    }
}

#[cfg(test)]
mod tests;
