//! How many plugins run at once. A slot is given back when it goes out of scope.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A counting semaphore.
#[derive(Debug)]
pub(super) struct Slots {
    count: usize,
    free: Mutex<usize>,
    given_back: Condvar,
}

impl Slots {
    /// At least one slot.
    pub(super) fn new(count: usize) -> Self {
        let count = count.max(1);
        Self {
            count,
            free: Mutex::new(count),
            given_back: Condvar::new(),
        }
    }

    /// How many are in use.
    pub(super) fn taken(&self) -> usize {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.saturating_sub(*free)
    }

    /// Waits for a slot; none if it takes longer than that.
    pub(super) fn take(&self, wait: Duration) -> Option<Slot<'_>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut free, _) = self
            .given_back
            .wait_timeout_while(free, wait, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free = free.checked_sub(1)?;
        Some(Slot(self))
    }
}

/// The right to run one plugin.
#[derive(Debug)]
pub(super) struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_there_are() {
        let slots = Slots::new(2);
        let (one, _two) = (slots.take(Duration::ZERO), slots.take(Duration::ZERO));
        assert!(one.is_some());
        assert!(slots.take(Duration::from_millis(5)).is_none());
        assert_eq!(slots.taken(), 2);
        drop(one);
        assert!(slots.take(Duration::ZERO).is_some());
    }

    #[test]
    fn none_at_all_would_be_forever() {
        assert!(Slots::new(0).take(Duration::ZERO).is_some());
    }

    #[test]
    fn a_waiting_thread_gets_the_slot() {
        let slots = Slots::new(1);
        let held = slots.take(Duration::ZERO);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slots.take(Duration::from_secs(10)).is_some());
            std::thread::sleep(Duration::from_millis(10));
            drop(held);
            assert!(waiting.join().unwrap());
        });
    }
}
