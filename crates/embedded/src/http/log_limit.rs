//! A limit for log lines that unauthenticated peers can cause: they must not fill the disk.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Allows one log line per interval and counts those that it suppresses.
#[derive(Debug, Default)]
pub(super) struct LogLimit(Mutex<(Option<Instant>, u64)>);

impl LogLimit {
    /// Returns how many lines were suppressed since the last one, or `None` if this one must be suppressed.
    pub(super) fn now(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, suppressed) = &mut *state;
        if last.is_some_and(|last| last.elapsed() < REPORT_INTERVAL) {
            *suppressed += 1;
            return None;
        }
        *last = Some(Instant::now());
        Some(std::mem::take(suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::LogLimit;

    #[test]
    fn the_first_is_said_and_not_the_next() {
        let log_limit = LogLimit::default();
        assert_eq!(log_limit.now(), Some(0));
        assert_eq!(log_limit.now(), None);
        assert_eq!(log_limit.now(), None);
    }
}
