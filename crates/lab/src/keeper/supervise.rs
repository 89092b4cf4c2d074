//! One process, kept running: adopted if it runs already, started if not, started again when it ends. What it
//! is doing is asked of it, and reported.

use super::ask;
use super::server;
use super::shared::Shared;
use crate::error::chain;
use crate::part::Part;
use crate::process::Process;
use crate::tail;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot::{self, Receiver};

/// The first pause before it is started again; each further one is twice as long.
const FIRST_RESTART_DELAY: Duration = Duration::from_millis(200);
const MAX_RESTART_DELAY: Duration = Duration::from_secs(5);
/// One that ran this long starts with short pauses again.
const STABLE_AFTER: Duration = Duration::from_secs(10);
/// How often one that is not ready is asked, and one that is.
const UNREADY_PROBE_INTERVAL: Duration = Duration::from_millis(50);
const READY_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps it running until the task is dropped; the process then stays as it is.
pub(super) async fn supervise(shared: Arc<Shared>, part: Part) {
    let mut pause = FIRST_RESTART_DELAY;
    loop {
        may_start(&shared, part).await;
        let begun = Instant::now();
        match begin(&shared, part).await {
            Ok(ended) => {
                watch(&shared, part, ended).await;
                let last_lines = tail::of(&shared.layout.log(part));
                tracing::warn!(%part, said = last_lines, "it has ended");
                not_ready(
                    &shared,
                    part,
                    format!("it ended; its log says last: {last_lines}"),
                );
            }
            Err(why) => {
                tracing::error!(%part, why, "it cannot be started");
                not_ready(&shared, part, why);
            }
        }
        pause = if begun.elapsed() > STABLE_AFTER {
            FIRST_RESTART_DELAY
        } else {
            (pause * 2).min(MAX_RESTART_DELAY)
        };
        tokio::time::sleep(pause).await;
    }
}

/// Finds it, or starts it; gives what comes when it has ended.
async fn begin(shared: &Arc<Shared>, part: Part) -> Result<Receiver<()>, String> {
    let inner = Arc::clone(shared);
    let begun = tokio::task::spawn_blocking(move || {
        if let Some(found) = Process::of_part(&inner.layout, part) {
            return Ok((found, None));
        }
        let child = part.start(&inner.layout, &inner.spec());
        let child = child.map_err(|error| chain(&error))?;
        let process = i32::try_from(child.id()).ok().and_then(Process::open);
        process
            .map(|process| (process, Some(child)))
            .ok_or_else(|| format!("it ended at once: {}", tail::of(&inner.layout.log(part))))
    });
    let (process, child) = begun.await.map_err(|error| error.to_string())??;
    let pid = process.pid();
    shared.report(part, |report| {
        report.pid = Some(pid);
        report.starts += u32::from(child.is_some());
        report.message = "starting".to_owned();
    });
    let (send, ended) = oneshot::channel();
    let wait = move || {
        while !process.has_ended(Duration::from_secs(3600)) {}
        // Ours is to be buried; one that we adopted has another parent.
        let _ = child.map(|mut child| child.wait());
        let _ = send.send(());
    };
    let thread = std::thread::Builder::new()
        .name(format!("wait-{part}"))
        .stack_size(128 * 1024);
    thread.spawn(wait).map_err(|error| error.to_string())?;
    Ok(ended)
}

/// Asks it now and then until it has ended.
async fn watch(shared: &Arc<Shared>, part: Part, ended: Receiver<()>) {
    let asking = async {
        loop {
            let answer = answer(shared, part).await;
            let ready = answer.is_ok();
            shared.report(part, |report| {
                report.ready = ready;
                report.message = answer.err().unwrap_or_default();
            });
            tokio::time::sleep(if ready {
                READY_PROBE_INTERVAL
            } else {
                UNREADY_PROBE_INTERVAL
            })
            .await;
        }
    };
    tokio::select! {
        _ = ended => {}
        () = asking => {}
    }
}

async fn answer(shared: &Arc<Shared>, part: Part) -> Result<(), String> {
    match part {
        Part::Keeper => Ok(()),
        Part::Server => server::ready(shared).await,
        Part::Controller => ask::controller(&shared.layout).await,
        Part::Agent(node) => ask::agent(&shared.layout, node).await,
    }
}

/// Waits until it makes sense to start it: clients after the server has answered once, what somebody killed
/// for good not before it is released.
async fn may_start(shared: &Arc<Shared>, part: Part) {
    if part != Part::Server {
        if shared.client_now().is_none() {
            not_ready(shared, part, "waits for the server".to_owned());
        }
        shared.client().await;
    }
    let held = shared.layout.held(part);
    while held.exists() {
        let why = format!("held: `plexus lab start {}` starts it", part.target());
        not_ready(shared, part, why);
        tokio::time::sleep(UNREADY_PROBE_INTERVAL).await;
    }
}

fn not_ready(shared: &Shared, part: Part, why: String) {
    shared.report(part, |report| {
        report.pid = None;
        report.ready = false;
        report.message = why;
    });
}
