//! Tells those who wait for a network that something which resolution reads has changed. Owns a counter of
//! changes; never says what changed: whoever waited resolves again.
//!
//! ```text
//!   count ──► resolve ──(try again later)──► wait until the counter is not what it was ──► count …
//! ```
//! The counter is read before resolving, so that a change during it is not missed.

use plexus_api::cni::Error;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Changes {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Changes {
    /// Something has changed. To be called when the change can be read.
    pub(super) fn note(&self) {
        let mut count = self.count();
        *count = count.wrapping_add(1);
        self.changed.notify_all();
    }

    /// Calls `resolve`, and once more after each change as long as it answers "try again later"; not after
    /// `timeout`, when its last answer counts.
    pub(super) fn retry<T>(
        &self,
        timeout: Duration,
        mut resolve: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let until = Instant::now() + timeout;
        loop {
            let known = *self.count();
            match resolve() {
                Err(error) if error.is_pending() && self.wait(known, until) => {}
                resolved => return resolved,
            }
        }
    }

    /// Whether there was a change since the counter was `known`.
    fn wait(&self, known: u64, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let same = |count: &mut u64| *count == known;
        let waited = self.changed.wait_timeout_while(self.count(), left, same);
        *waited.unwrap_or_else(PoisonError::into_inner).0 != known
    }

    fn count(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
