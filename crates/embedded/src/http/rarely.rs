//! What strangers can cause is said in the log now and then, not each time: a log can fill a disk.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const OFTEN: Duration = Duration::from_secs(60);

/// Whether something is to be said again.
#[derive(Debug, Default)]
pub(super) struct Rarely(Mutex<(Option<Instant>, u64)>);

impl Rarely {
    /// Whether it is time; then how many times it was not said since the last time.
    pub(super) fn now(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (said, unsaid) = &mut *state;
        if said.is_some_and(|said| said.elapsed() < OFTEN) {
            *unsaid += 1;
            return None;
        }
        *said = Some(Instant::now());
        Some(std::mem::take(unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::Rarely;

    #[test]
    fn the_first_is_said_and_not_the_next() {
        let rarely = Rarely::default();
        assert_eq!(rarely.now(), Some(0));
        assert_eq!(rarely.now(), None);
        assert_eq!(rarely.now(), None);
    }
}
