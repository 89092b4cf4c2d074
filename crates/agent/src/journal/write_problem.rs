//! Whether the journal can be written: what the last write said, and whether that is over.
//!
//! Owns the memory of one error. Only what is wrong with the disk or the file counts; a row that
//! contradicts another is the caller's problem, not the journal's.

use super::{Journal, JournalError};
use crate::failure;
use crate::sync::lock;
use plexus_api::cni::Error;
use plexus_faults::effect;
use std::sync::MutexGuard;

impl Journal {
    /// Why nothing can be written, if that is so. Tries a write before it says so again: that a
    /// disk has space again must not need an ADD to be noticed.
    pub(crate) fn write_problem(&self) -> Option<Error> {
        self.remembered().as_ref()?;
        self.try_write();
        self.remembered().clone()
    }

    /// Takes note of a write that failed. That one succeeded says little: a small one may fit
    /// where an ADD does not.
    pub(super) fn written<T>(
        &self,
        what: &'static str,
        result: rusqlite::Result<T>,
    ) -> Result<(), JournalError> {
        let error = match result {
            Ok(_) => return Ok(()),
            Err(source) => self.write_error(what, source),
        };
        if failure::is_of_disk(&error) {
            *self.remembered() = Some(failure::journal(&error));
        }
        Err(error)
    }

    /// Writes more than an ADD does and removes it again. A write that failed has left space in
    /// the log that a smaller one would fit in. What is left if we die in between is of no boot,
    /// and goes when the next agent starts.
    fn try_write(&self) {
        // Whoever asks next learns it; do not wait for a disk that hangs.
        let Ok(connection) = self.connection.try_lock() else {
            return;
        };
        effect("journal.try<");
        let result = connection.execute_batch(
            "INSERT OR REPLACE INTO network (name, boot, plan) VALUES ('', '', zeroblob(65536));
             DELETE FROM network WHERE name = '';",
        );
        drop(connection);
        effect("journal.try>");
        // An error is kept for whoever asks.
        if self.written("anything", result).is_ok() && self.remembered().take().is_some() {
            tracing::info!("the journal can be written again");
        }
    }

    fn remembered(&self) -> MutexGuard<'_, Option<Error>> {
        lock(&self.last_write_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_core::plan::NodePlan;

    fn limit_pages(journal: &Journal, pages: i64) {
        let set = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let sql = format!("PRAGMA max_page_count = {pages}");
        journal.lock().query_row(&sql, [], set).unwrap();
    }

    #[test]
    fn a_full_disk_is_remembered_until_it_has_space() {
        let path = std::env::temp_dir().join(format!("plexus-trouble-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        let journal = Journal::open(&path.join("journal.db")).unwrap();
        assert_eq!(journal.write_problem(), None);
        limit_pages(&journal, 1);
        let fill = || {
            (0..10_000).find_map(|i| {
                let network = format!("n{i}").parse().unwrap();
                journal
                    .put_node_plan(&network, "b", &NodePlan::default())
                    .err()
            })
        };
        let error = fill().expect("the disk is full at some time");
        assert!(failure::is_of_disk(&error), "{error}");
        for _ in 0..2 {
            let write_problem = journal.write_problem().expect("still full");
            assert!(
                write_problem.details.contains("free space"),
                "{write_problem}"
            );
        }
        limit_pages(&journal, 1 << 30);
        assert_eq!(journal.write_problem(), None, "no ADD was needed");
        let plans = journal.node_plans("b").unwrap();
        assert!(plans.iter().all(|(name, _)| name.starts_with('n')));

        let contradiction = journal.written("a row", Err::<(), _>(constraint()));
        assert!(contradiction.is_err());
        assert_eq!(journal.write_problem(), None);
        std::fs::remove_dir_all(path).unwrap();
    }

    fn constraint() -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(19), None)
    }
}
