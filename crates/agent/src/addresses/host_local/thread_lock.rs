//! The lock of a directory among the threads of this process. Owns who holds it and who waits; knows nothing of files.
//!
//! Whoever waits sleeps until it is free. Polling for the lock of the file instead makes everybody
//! sleep longer and longer while it is free.

use super::Identity;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

static QUEUES: Mutex<BTreeMap<Identity, Queue>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Default)]
struct Queue {
    taken: bool,
    waiting: usize,
    freed: Arc<Condvar>,
}

/// The right to use a directory, among the threads of this process; ends when it is dropped.
#[derive(Debug)]
pub(super) struct ThreadLock(Identity);

impl ThreadLock {
    /// Waits for it; none if it does not come in time.
    pub(super) fn take(directory: Identity, until: Instant) -> Option<Self> {
        let mut queues = lock();
        let queue = queues.entry(directory).or_default();
        if !queue.taken {
            queue.taken = true;
            return Some(Self(directory));
        }
        queue.waiting += 1;
        let freed = Arc::clone(&queue.freed);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let waited = freed.wait_timeout(queues, left);
            queues = waited.unwrap_or_else(PoisonError::into_inner).0;
            let queue = queues.entry(directory).or_default();
            let is_ours = !queue.taken;
            if is_ours || left.is_zero() {
                queue.waiting -= 1;
                queue.taken = true;
                // Made only if it is ours: one that is dropped here would wait for the queues, which we hold.
                return is_ours.then(|| Self(directory));
            }
        }
    }
}

impl Drop for ThreadLock {
    fn drop(&mut self) {
        let mut queues = lock();
        if let Some(queue) = queues.get_mut(&self.0) {
            queue.taken = false;
            match queue.waiting {
                0 => drop(queues.remove(&self.0)),
                _ => queue.freed.notify_one(),
            }
        }
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<Identity, Queue>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    fn late() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn one_at_a_time_and_nobody_is_forgotten() {
        let directory = (u64::MAX, 1);
        let inside = Mutex::new(());
        let held = ThreadLock::take(directory, soon()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _held = ThreadLock::take(directory, late()).unwrap();
                        let _alone = inside.try_lock().expect("nobody else is inside");
                    }
                });
            }
            drop(held);
        });
        assert!(!lock().contains_key(&directory));
    }

    #[test]
    fn who_waits_in_vain_is_told_and_others_do_not_wait() {
        let (one, other) = ((u64::MAX, 2), (u64::MAX, 3));
        let held = ThreadLock::take(one, soon()).unwrap();
        assert!(ThreadLock::take(one, soon()).is_none());
        assert!(ThreadLock::take(other, Instant::now()).is_some());
        drop(held);
        assert!(ThreadLock::take(one, Instant::now()).is_some());
        assert!(!lock().contains_key(&one) && !lock().contains_key(&other));
    }
}
