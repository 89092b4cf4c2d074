//! What is known of background work, whoever does it: why it ran and how often, how long the last run took, whether it
//! fails, and whether it is stuck. Owns no thread and never waits.

use crate::background::backoff::Backoff;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{self, Duration};
use tokio::time::Instant;

/// After how long a step counts as stuck, unless the task says otherwise.
const STUCK_TIMEOUT: Duration = Duration::from_secs(120);
/// The step of a task that should run and does not: others keep its thread.
const OVERDUE: &str = "waiting for its turn";

/// When a task wants to run again; when it is woken in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    After(Duration),
    /// Never: it has done its work.
    Done,
}

impl Next {
    /// Not before it is woken.
    pub(crate) const WOKEN: Self = Self::After(Duration::MAX);

    /// When a task runs again after a run, at the latest, and why then; none: never.
    pub(super) fn due(
        ran: &Result<Self, String>,
        backoff: &mut Backoff<()>,
        now: time::Instant,
    ) -> Option<(Option<time::Instant>, Reason)> {
        match ran {
            Ok(Self::Done) => None,
            Ok(Self::After(time)) => {
                backoff.keep_only(|()| false);
                Some((now.checked_add(*time), Reason::Due))
            }
            Err(_) => Some((Some(backoff.put_off(&(), now)), Reason::Retry)),
        }
    }
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
pub(crate) struct Progress {
    pub(super) name: &'static str,
    stuck_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Running>,
    /// When it is to run, of a task whose thread has others to run.
    due: Option<Instant>,
    runs: BTreeMap<(Reason, bool), u64>,
    last_duration: Duration,
    /// What was said last about a failure that is not over.
    error: Option<String>,
}

#[derive(Debug)]
struct Running {
    /// Since when it is at its step.
    since: Instant,
    step: Option<String>,
    failed: bool,
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

impl Progress {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            stuck_timeout: STUCK_TIMEOUT,
            state: Mutex::default(),
        }
    }

    pub(crate) fn stuck_after(mut self, timeout: Duration) -> Self {
        self.stuck_timeout = timeout;
        self
    }

    /// It waits until then, or until it is woken.
    pub(super) fn waits(&self, due: Option<Instant>) {
        self.state().due = due;
    }

    /// A run begins now.
    pub(crate) fn begin(&self) -> Instant {
        let since = Instant::now();
        let mut state = self.state();
        state.due = None;
        state.running = Some(Running {
            since,
            step: None,
            failed: false,
        });
        since
    }

    /// The run goes on: its time begins anew. What it does now is said if it gets stuck.
    pub(crate) fn step(&self, what: impl Into<String>) {
        if let Some(running) = &mut self.state().running {
            running.since = Instant::now();
            running.step = Some(what.into());
        }
    }

    /// Something has failed in this run, and whoever saw it has said so. The run goes on, and counts as failed.
    pub(crate) fn failed(&self) {
        if let Some(running) = &mut self.state().running {
            running.failed = true;
        }
    }

    /// One run that took no time.
    pub(crate) fn count(&self, reason: Reason, success: bool) {
        *self.state().runs.entry((reason, success)).or_default() += 1;
    }

    /// The run that began then is over.
    pub(crate) fn end(&self, begun: Instant, reason: Reason, error: Option<&String>) {
        let mut state = self.state();
        let failed = state.running.take().is_some_and(|running| running.failed);
        state.last_duration = begun.elapsed();
        let success = error.is_none() && !failed;
        *state.runs.entry((reason, success)).or_default() += 1;
        let task = self.name;
        match error {
            Some(error) if state.error.as_ref() != Some(error) => {
                tracing::error!(task, error, "background work failed, will be tried again");
                state.error = Some(error.clone());
            }
            None if state.error.take().is_some() => {
                tracing::info!(task, "background work succeeds again");
            }
            _ => {}
        }
    }

    pub(crate) fn stuck(&self) -> Option<Stuck> {
        let (state, now) = (self.state(), Instant::now());
        let (since, step) = match (&state.running, state.due) {
            (Some(running), _) => (running.since, running.step.clone()),
            (None, Some(due)) if due <= now => (due, Some(OVERDUE.to_owned())),
            _ => return None,
        };
        let elapsed = now.saturating_duration_since(since);
        (elapsed >= self.stuck_timeout).then_some(Stuck {
            name: self.name,
            step,
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the process if whoever holds it panics: nobody else would notice that it is missing. Has its name.
pub(crate) struct EndsProcess {
    name: &'static str,
    end: fn(&'static str),
}

impl EndsProcess {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            end: end_process,
        }
    }

    /// The same, with another end.
    pub(super) fn by(name: &'static str, end: fn(&'static str)) -> Self {
        Self { name, end }
    }
}

impl Drop for EndsProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.end)(self.name);
        }
    }
}

/// What should never end has ended.
pub(crate) fn end_process(task: &'static str) {
    tracing::error!(
        task,
        "background work has ended unexpectedly: the process ends, so that it is started again"
    );
    std::process::abort();
}
