//! Locks of the agent's memory. A thread that dies with one leaves nothing half changed, so the next one goes on.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for a lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
