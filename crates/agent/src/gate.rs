//! Who must wait until the node is restored. The socket answers before that, so that the agent is seen
//! to be alive; what changes anything waits here.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting caller is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Closed at first; opened once.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Lets everybody in, from now on.
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Waits until it is open: whether it is. `gone` is asked now and then whether the caller has left.
    pub(crate) fn pass(&self, patience: Duration, mut gone: impl FnMut() -> bool) -> bool {
        let deadline = Instant::now() + patience;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open && Instant::now() < deadline && !gone() {
            let waited = self.opened.wait_timeout(open, LOOK);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_let_in_and_who_leaves_is_not() {
        let gate = Gate::default();
        assert!(!gate.pass(Duration::ZERO, || false));
        assert!(!gate.pass(Duration::from_secs(60), || true));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.pass(Duration::from_secs(60), || false));
            gate.open();
            assert!(waiting.join().unwrap());
        });
        assert!(gate.pass(Duration::ZERO, || true));
    }
}
