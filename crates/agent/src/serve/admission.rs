//! Admits requests. Owns the bound on ADDs that wait or run, the smaller one on those that wait for somebody outside,
//! and the order of operations on one container. Does no work itself.
//!
//! An ADD that waits for a link or for a service outside gives its slot back meanwhile, so that slow ADDs do not keep
//! fast ones out.
//!
//! DEL is never refused. Operations on one container run one at a time, in the order in which
//! they came; different containers do not wait for each other.

use plexus_types::ContainerId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bounds the ADDs, and locks containers.
#[derive(Debug)]
pub(crate) struct Admission {
    bound: usize,
    slow_bound: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    adds: usize,
    slow: usize,
    next_ticket: u64,
    queues: BTreeMap<ContainerId, VecDeque<u64>>,
}

/// Why a request was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{bound} ADDs are in the queue already (--queue {bound})")]
    Full { bound: usize },
    #[error("{bound} ADDs wait for links or services already (half of --queue)")]
    SlowFull { bound: usize },
    /// The caller left while it waited in the queue.
    #[error("the caller went away before its turn came")]
    CallerGone,
    /// Another operation on the container takes too long.
    #[error("another operation on this container is still running after {0:?}")]
    Busy(Duration),
}

/// One of the slots for ADDs; freed when dropped.
#[derive(Debug)]
pub(crate) struct Slot<'a>(&'a Admission);

/// The lock that one operation holds on one container; the next in the queue gets it when this is dropped.
#[derive(Debug)]
pub(crate) struct ContainerLock<'a> {
    admission: &'a Admission,
    container: ContainerId,
    ticket: u64,
}

impl Admission {
    /// At most `bound` ADDs at a time, waiting or running.
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            bound,
            slow_bound: bound.div_ceil(2),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Takes a slot for an ADD, at once or not at all.
    pub(crate) fn take_slot(&self) -> Result<Slot<'_>, Refused> {
        let mut state = self.lock();
        if state.adds >= self.bound {
            return Err(Refused::Full { bound: self.bound });
        }
        state.adds += 1;
        Ok(Slot(self))
    }

    /// How many ADDs wait or run, slow ones too.
    pub(crate) fn adds(&self) -> usize {
        let state = self.lock();
        state.adds + state.slow
    }

    /// How many operations run, one a container, and how many wait for their container's lock.
    pub(crate) fn operations(&self) -> (usize, usize) {
        let state = self.lock();
        let all: usize = state.queues.values().map(VecDeque::len).sum();
        let running = state
            .queues
            .values()
            .filter(|line| !line.is_empty())
            .count();
        (running, all - running)
    }

    /// Waits for the container's lock. Calls `gone` now and then to see whether the caller has left.
    pub(crate) fn lock_container(
        &self,
        container: &ContainerId,
        timeout: Duration,
        mut gone: impl FnMut() -> bool,
    ) -> Result<ContainerLock<'_>, Refused> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state
            .queues
            .entry(container.clone())
            .or_default()
            .push_back(ticket);
        let lock = ContainerLock {
            admission: self,
            container: container.clone(),
            ticket,
        };
        let is_next =
            |state: &State| state.queues.get(container).and_then(VecDeque::front) == Some(&ticket);
        while !is_next(&state) {
            let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if is_next(&state) {
                break;
            }
            // Whoever asks the kernel whether the caller is there keeps nobody else out meanwhile.
            drop(state);
            if gone() {
                return Err(Refused::CallerGone);
            }
            state = self.lock();
            if !is_next(&state) && Instant::now() >= deadline {
                drop(state);
                return Err(Refused::Busy(timeout));
            }
        }
        drop(state);
        Ok(lock)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot<'_> {
    /// Does something slow without the slot, which another ADD may have meanwhile. Refused if too many are slow.
    pub(crate) fn given_back<T>(&self, slow: impl FnOnce() -> T) -> Result<T, Refused> {
        let bound = self.0.slow_bound;
        {
            let mut state = self.0.lock();
            if state.slow >= bound {
                return Err(Refused::SlowFull { bound });
            }
            state.slow += 1;
            state.adds -= 1;
        }
        let _taken_again = TakenAgain(self.0);
        Ok(slow())
    }
}

/// A slow ADD gets its slot back, also if the bound is reached: the number of slow ones is the limit of that.
struct TakenAgain<'a>(&'a Admission);

impl Drop for TakenAgain<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.slow -= 1;
        state.adds += 1;
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.lock().adds -= 1;
    }
}

impl Drop for ContainerLock<'_> {
    fn drop(&mut self) {
        let mut state = self.admission.lock();
        let mut waiting = false;
        if let Some(line) = state.queues.get_mut(&self.container) {
            line.retain(|ticket| *ticket != self.ticket);
            waiting = !line.is_empty();
            if !waiting {
                state.queues.remove(&self.container);
            }
        }
        drop(state);
        if waiting {
            self.admission.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ContainerId {
        text.parse().unwrap()
    }

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn the_bound_holds_and_places_come_back() {
        let admission = Admission::new(2);
        let one = admission.take_slot().unwrap();
        let _two = admission.take_slot().unwrap();
        assert_eq!(
            admission.take_slot().unwrap_err(),
            Refused::Full { bound: 2 }
        );
        drop(one);
        assert!(admission.take_slot().is_ok());
        assert_eq!(admission.adds(), 1);
    }

    #[test]
    fn slow_adds_keep_no_fast_one_out() {
        let admission = Admission::new(2);
        let (one, two) = (
            admission.take_slot().unwrap(),
            admission.take_slot().unwrap(),
        );
        let inside = one.given_back(|| {
            let refused = two.given_back(|| ()).unwrap_err();
            assert_eq!(refused, Refused::SlowFull { bound: 1 });
            let fast = admission.take_slot();
            assert!(fast.is_ok(), "a slow one's slot is free");
            assert_eq!(admission.adds(), 3);
            assert!(admission.take_slot().is_err());
            fast
        });
        assert!(admission.take_slot().is_err(), "it has its slot again");
        drop((inside, one));
        assert!(admission.take_slot().is_ok());
    }

    #[test]
    fn one_container_is_served_in_order() {
        let admission = Admission::new(9);
        let order = Mutex::new(Vec::new());
        let first = admission.lock_container(&id("c"), LONG, || false).unwrap();
        std::thread::scope(|scope| {
            for i in 0..5 {
                let (admission, order) = (&admission, &order);
                scope.spawn(move || {
                    let _lock = admission.lock_container(&id("c"), LONG, || false).unwrap();
                    order.lock().unwrap().push(i);
                });
                while admission.lock().queues[&id("c")].len() < i + 2 {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
        assert!(admission.lock().queues.is_empty());
    }

    #[test]
    fn other_containers_do_not_wait() {
        let admission = Admission::new(9);
        let _held = admission.lock_container(&id("a"), LONG, || false).unwrap();
        assert!(
            admission
                .lock_container(&id("b"), Duration::ZERO, || false)
                .is_ok()
        );
    }

    /// To look whether a caller is still there asks the kernel: nobody else waits for that.
    #[test]
    fn others_are_admitted_while_a_caller_is_looked_for() {
        let admission = Admission::new(9);
        let _held = admission.lock_container(&id("a"), LONG, || false).unwrap();
        let look = || {
            let admitted = admission.state.try_lock().is_ok();
            assert!(
                admitted,
                "the admission is locked while a caller is looked for"
            );
            true
        };
        let refused = admission.lock_container(&id("a"), LONG, look).unwrap_err();
        assert_eq!(refused, Refused::CallerGone);
    }

    #[test]
    fn who_leaves_the_line_is_dropped_from_it() {
        let admission = Admission::new(9);
        let held = admission.lock_container(&id("a"), LONG, || false).unwrap();
        let refused = admission
            .lock_container(&id("a"), LONG, || true)
            .unwrap_err();
        assert_eq!(refused, Refused::CallerGone);
        let refused = admission
            .lock_container(&id("a"), Duration::from_millis(1), || false)
            .unwrap_err();
        assert!(matches!(refused, Refused::Busy(_)));
        drop(held);
        assert!(admission.lock_container(&id("a"), LONG, || false).is_ok());
    }
}
