//! The loop of all background work, written once. Owns when a task runs (at start, when somebody wakes it, when
//! something it watches changes, when it is due, after a failure), how long it may take, and what is known of it:
//! counts for `/metrics`, and whether it is stuck, for `/healthz`.
//!
//! ```text
//!   run ──► Ok(next) ──► wait for: wake, event, due time ──┐
//!    ▲  └─► Err ───────► the same, and a retry ────────────┤   1 s, 2 s, 4 s … up to the task's longest
//!    └─────────────────────────────────────────────────────┘
//! ```
//! A task's thread ends only if the task says that it is done. If it ends in any other way, the process ends: it is
//! started again, and a task that is missing would not be noticed.

use crate::background::backoff::Backoff;
use plexus_kernel::events::{self, Source, Wake};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// After how long a step counts as stuck, unless the task says otherwise.
const STUCK_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a failed task waits at most, unless it says otherwise.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// Between attempts to wait, if the kernel does not let us.
const WAIT_FAILED_INTERVAL: Duration = Duration::from_secs(1);

/// When a task wants to run again; when it is woken in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    After(Duration),
    /// Never: it has done its work.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Start,
    Woken,
    /// Something that it watches has changed.
    Event,
    Due,
    Retry,
}

impl Reason {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Woken => "woken",
            Self::Event => "event",
            Self::Due => "due",
            Self::Retry => "retry",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Task {
    name: &'static str,
    stuck_timeout: Duration,
    longest_retry: Duration,
    delay: Duration,
    pause: Duration,
    wake: Wake,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Running>,
    runs: BTreeMap<(Reason, bool), u64>,
    last_duration: Duration,
    /// What was said last about a failure that is not over.
    error: Option<String>,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    step: Option<String>,
}

/// What `/metrics` shows of a task.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) name: &'static str,
    pub(crate) runs: Vec<(Reason, bool, u64)>,
    pub(crate) last_duration: Duration,
    pub(crate) stuck: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub(crate) name: &'static str,
    pub(crate) step: Option<String>,
    pub(crate) elapsed: Duration,
    pub(crate) timeout: Duration,
}

pub(crate) struct Run<'a> {
    task: &'a Task,
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
        self.task.state().running = Some(Running {
            since: Instant::now(),
            step: Some(what.into()),
        });
    }
}

impl Task {
    pub(crate) fn new(name: &'static str) -> io::Result<Self> {
        Ok(Self {
            name,
            stuck_timeout: STUCK_TIMEOUT,
            longest_retry: LONGEST_RETRY,
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            wake: Wake::new()?,
            state: Mutex::default(),
        })
    }

    pub(crate) fn stuck_after(mut self, timeout: Duration) -> Self {
        self.stuck_timeout = timeout;
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
        let thread = std::thread::Builder::new().name(self.name.to_owned());
        let repeat = move || {
            let _guard = EndsProcess(task.name);
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

    pub(crate) fn stuck(&self) -> Option<Stuck> {
        let state = self.state();
        let running = state.running.as_ref()?;
        let elapsed = running.since.elapsed();
        (elapsed >= self.stuck_timeout).then(|| Stuck {
            name: self.name,
            step: running.step.clone(),
            elapsed,
            timeout: self.stuck_timeout,
        })
    }

    pub(crate) fn counts(&self) -> Counts {
        let stuck = self.stuck().is_some();
        let state = self.state();
        let runs = state.runs.iter();
        Counts {
            name: self.name,
            runs: runs
                .map(|((reason, success), count)| (*reason, *success, *count))
                .collect(),
            last_duration: state.last_duration,
            stuck,
        }
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
            let now = Instant::now();
            let (due, then) = match ran {
                Ok(Next::Done) => return,
                Ok(Next::After(time)) => {
                    backoff.keep_only(|()| false);
                    (now.checked_add(time), Reason::Due)
                }
                Err(_) => (Some(backoff.put_off(&(), now)), Reason::Retry),
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
        let begun = Instant::now();
        self.state().running = Some(Running {
            since: begun,
            step: None,
        });
        let done = work(&Run { task: self, reason });
        let mut state = self.state();
        state.running = None;
        state.last_duration = begun.elapsed();
        *state.runs.entry((reason, done.is_ok())).or_default() += 1;
        let task = self.name;
        match done.as_ref().err() {
            Some(error) if state.error.as_ref() != Some(error) => {
                tracing::error!(task, error, "background work failed, will be tried again");
                state.error = Some(error.clone());
            }
            None if state.error.take().is_some() => {
                tracing::info!(task, "background work succeeds again");
            }
            _ => {}
        }
        done
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Ends the process if whoever holds it panics: nobody else would notice that it is missing. Has its name.
pub(crate) struct EndsProcess(pub(crate) &'static str);

impl Drop for EndsProcess {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let task = self.0;
        tracing::error!(
            task,
            "background work has ended unexpectedly: the process ends, so that it is started again"
        );
        std::process::abort();
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
