//! Who must wait while the node is restored. The socket answers meanwhile, so that the agent is seen to be alive;
//! what changes anything waits here, and a restoration waits until nobody is inside.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting caller is asked whether it has left.
const GONE_INTERVAL: Duration = Duration::from_millis(100);

/// Closed at first.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: bool,
    inside: usize,
}

/// Leaves when dropped.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a Gate);

impl Gate {
    /// Lets everybody in, until it is closed.
    pub(crate) fn open(&self) {
        self.state().open = true;
        self.changed.notify_all();
    }

    /// Lets nobody in from now on, and waits until everybody has left: whether they have.
    pub(crate) fn close(&self, timeout: Duration) -> bool {
        let mut state = self.state();
        state.open = false;
        let waited = self
            .changed
            .wait_timeout_while(state, timeout, |state| state.inside > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.inside == 0
    }

    /// Waits until it is open; none if it is not in time. `gone` is asked now and then whether the caller has left.
    pub(crate) fn enter(
        &self,
        timeout: Duration,
        mut gone: impl FnMut() -> bool,
    ) -> Option<Inside<'_>> {
        let deadline = Instant::now() + timeout;
        let mut state = self.state();
        while !state.open && Instant::now() < deadline && !gone() {
            let waited = self.changed.wait_timeout(state, GONE_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.open.then(|| {
            state.inside += 1;
            Inside(self)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.inside -= 1;
        if !state.open {
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_waits_is_let_in_and_who_leaves_is_not() {
        let gate = Gate::default();
        assert!(gate.enter(Duration::ZERO, || false).is_none());
        assert!(gate.enter(LONG, || true).is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.enter(LONG, || false).is_some());
            gate.open();
            assert!(waiting.join().unwrap());
        });
        assert!(gate.enter(Duration::ZERO, || true).is_some());
    }

    #[test]
    fn who_closes_it_waits_until_everybody_has_left() {
        let gate = Gate::default();
        gate.open();
        let inside = gate.enter(Duration::ZERO, || false);
        assert!(!gate.close(Duration::ZERO));
        assert!(gate.enter(Duration::ZERO, || false).is_none());
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| gate.close(LONG));
            drop(inside);
            assert!(closing.join().unwrap());
        });
    }
}
