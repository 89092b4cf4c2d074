//! The tasks of the API's side: their names, how long they may take, and when they run again after a failure.

use super::{donations, restore, resync, shared};
use crate::background::async_task::AsyncTask;
use crate::background::progress::Progress;
use std::sync::Arc;
use std::time::Duration;

/// After how long a step counts as stuck: each of its requests to the API server may take a minute.
const STUCK_TIMEOUT: Duration = Duration::from_secs(300);

pub(super) struct Tasks {
    /// Writes what has changed to the cache on disk.
    pub(super) cache: Arc<AsyncTask>,
    /// Keeps this node's blocks in the API.
    pub(super) blocks: Arc<AsyncTask>,
    /// Keeps journal and API in agreement on parts of blocks.
    pub(super) donations: Arc<AsyncTask>,
    /// Compares records with the journal.
    pub(super) resync: Arc<AsyncTask>,
    /// Writes records.
    pub(super) records: Arc<AsyncTask>,
    pub(super) events: Arc<AsyncTask>,
    /// What watches bring is taken, one after another. When a watch is tried again is no matter of passes.
    pub(super) watches: Progress,
}

impl Tasks {
    pub(super) fn new() -> Self {
        let task = |name| AsyncTask::new(progress(name));
        Self {
            cache: Arc::new(task("cache").starting_after(shared::FLUSH_INTERVAL)),
            blocks: Arc::new(task("blocks").starting_after(restore::RETRY_INTERVAL)),
            donations: Arc::new(
                task("donations")
                    .starting_after(donations::CHECK_INTERVAL)
                    .retried_after(donations::RETRY_INTERVAL),
            ),
            resync: Arc::new(
                task("resync")
                    .starting_after(resync::CHECK_INTERVAL)
                    .retried_after(resync::CHECK_INTERVAL),
            ),
            records: Arc::new(task("records")),
            events: Arc::new(task("events")),
            watches: progress("watches"),
        }
    }

    pub(super) fn all(&self) -> [&Progress; 7] {
        [
            &self.cache,
            &self.blocks,
            &self.donations,
            &self.resync,
            &self.records,
            &self.events,
            &self.watches,
        ]
    }
}

fn progress(name: &'static str) -> Progress {
    Progress::new(name).stuck_after(STUCK_TIMEOUT)
}
