//! The store: every object of every kind, the last changes of each kind, and one version counter.
//!
//! ```text
//!   write(job) ──► queue ──► writer thread: run jobs on an overlay ─► one SQLite commit, flushed
//!                                            ─► memory ─► watchers are woken ─► jobs are answered
//!   get, list, changes ──► memory
//! ```
//! Nothing is seen by a reader, and no writer is answered, before it is on the disk. Jobs run one after
//! the other, each on what all before it have left, so that none ever has to try again; those that wait
//! share one flush. If the flush fails, all of them are refused, and what may be in the file all the same
//! is removed from it; only if the process is killed before that can be done may the next one find it.
//! Objects are kept as the bytes that go over the wire. Knows labels, selectable fields and owners; never
//! what an object means.

mod changes;
mod disk;
mod history;
mod key;
mod log;
mod memory;
mod object;
mod writer;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::{TempDir, sample};

pub(crate) use changes::Changes;
pub(crate) use key::{Key, Table};
pub(crate) use log::{Change, Entry};
pub(crate) use object::{Stored, parse_uid};

use crate::kinds::{Kind, Kinds, Storage};
use crate::status::Refused;
use disk::Disk;
use memory::Memory;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::{oneshot, watch};

/// Why the store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be used.
    #[error("cannot open the store {path}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rusqlite::Error,
    },
    /// Another server has it.
    #[error("the store {path} is in use: another server runs on this directory")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It contradicts itself.
    #[error("the store {path} is damaged: {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        problem: String,
    },
    /// A newer server wrote it.
    #[error("the store {path} has format {found}, this server knows up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The thread that writes could not be started.
    #[error("cannot start the thread that writes to the store")]
    Thread(#[source] std::io::Error),
}

/// What readers and the writer share.
pub(crate) struct Shared {
    kinds: Vec<Arc<Kind>>,
    memory: RwLock<Memory>,
    version: watch::Sender<u64>,
    changed: Vec<watch::Sender<u64>>,
    /// Why the last commit failed, if it did.
    problem: RwLock<Option<String>>,
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Memory> {
        self.memory.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_problem(&self, problem: Option<String>) {
        *self.problem.write().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    fn kind(&self, table: Table) -> Option<&Arc<Kind>> {
        self.kinds.get(table.index())
    }
}

/// A part of a table, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListScope<'a> {
    /// Only this namespace.
    pub(crate) namespace: Option<&'a str>,
    /// Only what comes after this key.
    pub(crate) after: Option<&'a str>,
}

/// A version that is no longer, or not, known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// The oldest version that is known.
    pub(crate) oldest: u64,
}

/// The objects of all kinds: in memory for reading, on disk for the next start.
pub(crate) struct Store {
    shared: Arc<Shared>,
    jobs: Mutex<Option<writer::Jobs>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Store {
    /// Opens the store in `file`, with a table for each kind that is stored under its own name.
    /// `now` is the time, in milliseconds since 1970: versions of a new store begin there, so that
    /// they are above those of any store that was here before.
    ///
    /// # Errors
    /// The file cannot be used; it says why.
    pub(crate) fn open(file: &Path, kinds: &Kinds, now: u64) -> Result<Self, StoreError> {
        let kinds: Vec<Arc<Kind>> = kinds
            .iter()
            .filter(|kind| matches!(kind.storage, Storage::Own))
            .cloned()
            .collect();
        let (disk, memory) = Disk::open(file, &kinds, now)?;
        let version = memory.version();
        let shared = Arc::new(Shared {
            changed: kinds.iter().map(|_| watch::Sender::new(version)).collect(),
            kinds,
            memory: RwLock::new(memory),
            version: watch::Sender::new(version),
            problem: RwLock::new(None),
        });
        let (jobs, thread) =
            writer::start(Arc::clone(&shared), disk).map_err(StoreError::Thread)?;
        Ok(Self {
            shared,
            jobs: Mutex::new(Some(jobs)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The table of a kind; none for kinds that are stored as another, or not at all.
    pub(crate) fn table(&self, kind: &Kind) -> Option<Table> {
        let same = |known: &Arc<Kind>| {
            known.group == kind.group
                && known.version == kind.version
                && known.plural == kind.plural
        };
        self.shared.kinds.iter().position(same).map(Table::new)
    }

    /// The kind of a table.
    pub(crate) fn kind(&self, table: Table) -> Option<&Arc<Kind>> {
        self.shared.kind(table)
    }

    /// All tables and their kinds.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (Table, &Arc<Kind>)> {
        let tables = self.shared.kinds.iter().enumerate();
        tables.map(|(index, kind)| (Table::new(index), kind))
    }

    /// The newest version.
    pub(crate) fn version(&self) -> u64 {
        self.shared.read().version()
    }

    /// Why the last write was refused by the disk; none if it succeeded.
    pub(crate) fn write_problem(&self) -> Option<String> {
        let problem = &self.shared.problem;
        problem
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// An object.
    pub(crate) fn get(&self, table: Table, key: &Key) -> Option<Arc<Stored>> {
        self.shared.read().get(table, key)
    }

    /// A part of a table as it is, and the version that it is of.
    pub(crate) fn list(&self, table: Table, part: ListScope<'_>) -> (Vec<Arc<Stored>>, u64) {
        let memory = self.shared.read();
        (memory.list(table, part), memory.version())
    }

    /// A part of a table as it was.
    ///
    /// # Errors
    /// The version is too old, or one that was never given out.
    pub(crate) fn list_at(
        &self,
        table: Table,
        part: ListScope<'_>,
        version: u64,
    ) -> Result<Vec<Arc<Stored>>, Unknown> {
        self.shared.read().list_at(table, part, version)
    }

    /// At most `limit` changes of a table after `version`, oldest first, and the version up to which
    /// these are all.
    ///
    /// # Errors
    /// The version is too old, or one that was never given out.
    pub(crate) fn changes(
        &self,
        table: Table,
        version: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Entry>>, u64), Unknown> {
        self.shared.read().changes(table, version, limit)
    }

    /// Tells when a table has changed.
    pub(crate) fn follow(&self, table: Table) -> watch::Receiver<u64> {
        match self.shared.changed.get(table.index()) {
            Some(changed) => changed.subscribe(),
            None => self.shared.version.subscribe(),
        }
    }

    /// Tells when anything has changed.
    pub(crate) fn follow_all(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    /// Those that name it as an owner.
    pub(crate) fn owned_by(&self, uid: u128) -> Vec<(Table, Key)> {
        self.shared.read().owned_by(uid)
    }

    /// Runs `work` when it is its turn, and answers when what it did is on the disk. If it refuses,
    /// or the disk does, it has done nothing.
    ///
    /// # Errors
    /// The refusal of `work`, or of the disk.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, Refused>
    where
        T: Send + 'static,
        F: FnOnce(&mut Changes) -> Result<T, Refused> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let job: writer::Job = Box::new(move |changes| {
            let answer = changes.attempt(work);
            Box::new(move |committed| {
                let _ = sender.send(committed.and(answer));
            })
        });
        let jobs = self
            .jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let ended = || Refused::unavailable("the server is ending");
        let jobs = jobs.ok_or_else(ended)?;
        jobs.send(job).await.map_err(|_| ended())?;
        receiver.await.map_err(|_| ended())?
    }

    /// Writes what was asked for, and closes the file. Further writes are refused.
    pub(crate) fn close(&self) {
        let jobs = &self.jobs;
        drop(jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = &self.thread;
        let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}
