//! The loop of all background work, written once. Owns when a task runs (at start, when somebody wakes it, when
//! something it watches changes, when it is due, after a failure), and tells [`Progress`] of it: so `/metrics` has its
//! counts, and `/healthz` says whether it is stuck. What is async has its loop in [`async_task`](super::async_task).
//!
//! ```text
//!   run ──► Ok(next) ──► wait for: wake, event, due time ──┐
//!    ▲  └─► Err ───────► the same, and a retry ────────────┤   1 s, 2 s, 4 s … up to the task's longest
//!    └─────────────────────────────────────────────────────┘
//! ```
//! A task's thread ends only if the task says that it is done. If it ends in any other way, the process ends: it is
//! started again, and a task that is missing would not be noticed.

use crate::background::backoff::Backoff;
use crate::background::progress::{EndsProcess, Progress};
pub(crate) use crate::background::progress::{Next, Reason};
use plexus_kernel::events::{self, Source, Wake};
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a failed task waits at most, unless it says otherwise.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Between attempts to wait, if the kernel does not let us.
const WAIT_FAILED_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Task {
    progress: Progress,
    longest_retry: Duration,
    delay: Duration,
    pause: Duration,
    wake: Wake,
}

pub(crate) struct Run<'a> {
    task: &'a Progress,
    reason: Reason,
}

impl Run<'_> {
    /// Whether nothing has happened: it runs because it is time.
    pub(crate) fn is_routine(&self) -> bool {
        matches!(self.reason, Reason::Start | Reason::Due)
    }

    /// Whether somebody of this process has woken it, and nothing that it watches has changed.
    pub(crate) fn is_woken(&self) -> bool {
        self.reason == Reason::Woken
    }

    /// It goes on: its time begins anew. What it does now is said if it gets stuck.
    pub(crate) fn step(&self, what: impl Into<String>) {
        self.task.step(what);
    }
}

impl Deref for Task {
    type Target = Progress;

    fn deref(&self) -> &Progress {
        &self.progress
    }
}

impl Task {
    pub(crate) fn new(name: &'static str) -> io::Result<Self> {
        Ok(Self {
            progress: Progress::new(name),
            longest_retry: LONGEST_RETRY,
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            wake: Wake::new()?,
        })
    }

    pub(crate) fn stuck_after(mut self, timeout: Duration) -> Self {
        self.progress = self.progress.stuck_after(timeout);
        self
    }

    /// How long it waits at most before it is tried again.
    pub(crate) fn retried_within(mut self, longest: Duration) -> Self {
        self.longest_retry = longest;
        self
    }

    /// How long it waits after an event: whoever has made it may not be done.
    pub(crate) fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// How long it rests after each run, whatever happens: events that come many at a time are one.
    pub(crate) fn resting(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    pub(crate) fn wake(&self) {
        self.wake.wake();
    }

    /// Starts its thread, which ends when the work says that it is done, or with the process.
    pub(crate) fn start(
        self: &Arc<Self>,
        sources: Vec<Box<dyn Source>>,
        mut work: impl FnMut(&Run<'_>) -> Result<Next, String> + Send + 'static,
    ) -> io::Result<()> {
        let task = Arc::clone(self);
        let thread = std::thread::Builder::new().name(self.progress.name.to_owned());
        let repeat = move || {
            let _guard = EndsProcess::new(task.progress.name);
            task.repeat(&sources, &mut work);
        };
        thread.spawn(repeat).map(drop)
    }

    /// Runs it once on the calling thread, as at its start.
    pub(crate) fn run_here<T>(
        &self,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        self.run(Reason::Start, |_| work())
    }

    fn repeat(
        &self,
        sources: &[Box<dyn Source>],
        work: &mut dyn FnMut(&Run<'_>) -> Result<Next, String>,
    ) {
        let mut all: Vec<&dyn Source> = vec![&self.wake];
        all.extend(sources.iter().map(|source| &**source));
        let mut backoff = Backoff::up_to(self.longest_retry);
        let mut reason = Reason::Start;
        loop {
            let ran = self.run(reason, &mut *work);
            let Some((due, then)) = Next::due(&ran, &mut backoff, Instant::now()) else {
                return;
            };
            std::thread::sleep(self.pause);
            reason = wait(&all, due).unwrap_or(then);
            if reason == Reason::Event && !self.delay.is_zero() {
                std::thread::sleep(self.delay);
                // What came meanwhile is seen by the same run.
                let _ = events::wait(&all, Some(Duration::ZERO));
            }
        }
    }

    fn run<T>(
        &self,
        reason: Reason,
        work: impl FnOnce(&Run<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let begun = self.progress.begin();
        let task = &self.progress;
        let done = work(&Run { task, reason });
        task.end(begun, reason, done.as_ref().err());
        done
    }
}

/// Until something happens; none: the time has come.
fn wait(sources: &[&dyn Source], due: Option<Instant>) -> Option<Reason> {
    loop {
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return None;
        }
        match events::wait(sources, left) {
            Ok(Some(0)) => return Some(Reason::Woken),
            Ok(Some(_)) => return Some(Reason::Event),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, "cannot wait for events");
                std::thread::sleep(WAIT_FAILED_INTERVAL);
                return None;
            }
        }
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
