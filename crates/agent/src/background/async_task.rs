//! The loop of background work that is async: that of the API's side, whose tasks share one thread. Owns when a task
//! runs, as [`task`](super::task) does for threads, and tells [`Progress`] of it.
//!
//! ```text
//!   first wait ──► pass ──► Ok(next) ──► wait for: wake, due time ──┐
//!                   ▲  └──► Err ───────► the same, and a retry ─────┤
//!                   └───────────────────────────────────────────────┘
//! ```

use crate::background::backoff::Backoff;
use crate::background::progress::{EndsProcess, Next, Progress, Reason, end_process};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

/// How long a failed task waits, at first and at most, unless it says otherwise.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Work in passes.
pub(crate) trait Work: Send + Sync {
    /// Ends when somebody wakes it. It may be dropped before, and must lose nothing then.
    fn woken(&self) -> impl Future<Output = Woken> + Send;

    /// Works once; says when the next pass is due.
    fn pass(&mut self, reason: Reason) -> impl Future<Output = Result<Next, String>> + Send;
}

/// Why it was woken, and how long it waits before its pass: whoever has woken it may not be done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    pub(crate) reason: Reason,
    pub(crate) delay: Duration,
}

impl Woken {
    /// Waits for one who wakes it.
    pub(crate) async fn by(notify: &Notify) -> Self {
        notify.notified().await;
        Self {
            reason: Reason::Woken,
            delay: Duration::ZERO,
        }
    }

    pub(crate) fn delayed(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

#[derive(Debug)]
pub(crate) struct AsyncTask {
    progress: Progress,
    first_wait: Duration,
    retry: (Duration, Duration),
    end: fn(&'static str),
}

impl Deref for AsyncTask {
    type Target = Progress;

    fn deref(&self) -> &Progress {
        &self.progress
    }
}

impl AsyncTask {
    pub(crate) fn new(progress: Progress) -> Self {
        Self {
            progress,
            first_wait: Duration::ZERO,
            retry: RETRY,
            end: end_process,
        }
    }

    /// How long it waits for its first pass, unless it is woken.
    pub(crate) fn starting_after(mut self, wait: Duration) -> Self {
        self.first_wait = wait;
        self
    }

    /// When it is tried again after a failure, always as late as that.
    pub(crate) fn retried_after(mut self, wait: Duration) -> Self {
        self.retry = (wait, wait);
        self
    }

    /// Starts it on a runtime, on which it ends when the work says that it is done, or with the runtime.
    pub(crate) fn start(
        self: &Arc<Self>,
        runtime: &Handle,
        work: impl Work + 'static,
    ) -> JoinHandle<()> {
        let task = Arc::clone(self);
        runtime.spawn(async move {
            let _guard = EndsProcess::by(task.progress.name, task.end);
            task.repeat(work).await;
        })
    }

    async fn repeat(&self, mut work: impl Work) {
        let mut backoff = Backoff::between(self.retry.0, self.retry.1);
        let mut due = Instant::now().checked_add(self.first_wait);
        let mut then = Reason::Start;
        loop {
            self.progress.waits(due);
            let reason = wait(&work, due).await.unwrap_or(then);
            let begun = self.progress.begin();
            let ran = work.pass(reason).await;
            self.progress.end(begun, reason, ran.as_ref().err());
            let now = Instant::now().into_std();
            let Some((at, why)) = Next::due(&ran, &mut backoff, now) else {
                return;
            };
            (due, then) = (at.map(Instant::from_std), why);
        }
    }
}

/// Until it is woken; none: the time has come.
async fn wait(work: &impl Work, due: Option<Instant>) -> Option<Reason> {
    if due.is_some_and(|due| due <= Instant::now()) {
        return None;
    }
    let passed = async {
        match due {
            Some(due) => sleep_until(due).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        woken = work.woken() => {
            if !woken.delay.is_zero() {
                sleep(woken.delay).await;
            }
            Some(woken.reason)
        }
        () = passed => None,
    }
}

/// Runs what never ends: the process ends if it does, and if it panics.
pub(crate) fn start_endless(
    runtime: &Handle,
    name: &'static str,
    endless: impl Future<Output = ()> + Send + 'static,
) {
    runtime.spawn(end_after(name, endless, end_process));
}

async fn end_after(
    name: &'static str,
    endless: impl Future<Output = ()> + Send + 'static,
    end: fn(&'static str),
) {
    let _guard = EndsProcess::by(name, end);
    endless.await;
    end(name);
}

#[cfg(test)]
#[path = "async_task_tests.rs"]
mod tests;
