//! From options to a process that works until it is asked to stop: event loop, signals, client,
//! health, election. What is done while leading is [`crate::engine`]'s.

use crate::crds;
use crate::engine::Engine;
use crate::health::{self, Readiness};
use crate::lease::Election;
use crate::metrics::Metrics;
use crate::{Error, Options};
use plexus_client::Timeouts;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long the API server may take.
const API_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(30),
    send: None,
    answer: Duration::from_secs(60),
};

/// Runs the controller until SIGTERM or SIGINT.
///
/// Blocks; makes its own event loop. Waits as long as it takes for the API server, the CRDs and the
/// lease. An error means that this process must end and be started again.
pub fn run(options: Options) -> Result<(), Error> {
    check(&options)?;
    event_loop()?.block_on(async {
        let mut term = signal(SignalKind::terminate()).map_err(Error::Signal)?;
        let mut int = signal(SignalKind::interrupt()).map_err(Error::Signal)?;
        let asked = async {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
        };
        until(options, asked).await
    })
}

/// The same until `stop` is there: for a process that does more than this.
pub fn run_until(options: Options, stop: impl Future<Output = ()>) -> Result<(), Error> {
    check(&options)?;
    event_loop()?.block_on(until(options, stop))
}

fn event_loop() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)
}

async fn until(options: Options, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let client = options.server.client(API_TIMEOUTS).await?;
    let readiness = Readiness::default();
    let metrics = Arc::new(Metrics::default());
    let mut election = Election::new(client.clone(), &options.namespace, &options.identity);
    let served = health::serve(&options, &readiness, &metrics);
    let ended = tokio::select! {
        () = stop => Ok(()),
        result = served => result,
        result = lead(client, &options, &mut election, &readiness, &metrics) => result,
    };
    // What acted was dropped with the select: nothing of ours is under way any more.
    if ended.is_ok() && metrics.leading.load(Relaxed) {
        election.release().await;
    }
    tracing::info!("stopped");
    ended
}

async fn lead(
    client: kube::Client,
    options: &Options,
    election: &mut Election,
    readiness: &Readiness,
    metrics: &Arc<Metrics>,
) -> Result<(), Error> {
    loop {
        crds::wait(&client, readiness).await;
        let acquired = election.acquire().await;
        metrics.leading.store(true, Relaxed);
        let reached = options.server.addresses().await?;
        let engine = Engine::new(client.clone(), &reached, options.clone(), metrics.clone());
        let why = tokio::select! {
            why = election.hold(acquired) => why,
            ended = engine.run(readiness) => return Err(ended),
        };
        // What acted was dropped with the select. The process goes on: if it ended whenever the API server is
        // away, the kubelet would wait longer and longer before it starts the next one.
        metrics.leading.store(false, Relaxed);
        tracing::warn!(why, "no longer leading: standing for election again");
    }
}

fn check(options: &Options) -> Result<(), Error> {
    for (what, value) in [
        ("--namespace", &options.namespace),
        ("--identity", &options.identity),
    ] {
        let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
        if value.is_empty() || value.len() > 253 || !value.to_ascii_lowercase().bytes().all(fine) {
            return Err(Error::Option {
                what,
                value: value.chars().take(64).collect(),
                why: "write 1 to 253 letters, digits, \"-\" and \".\"",
            });
        }
    }
    Ok(())
}
