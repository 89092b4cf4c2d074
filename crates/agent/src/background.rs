//! What happens without anyone asking, each on a thread of its own where it may take long: queued DELs,
//! removals that were left, and the small things, which never wait for a plugin.

use crate::backoff::Backoff;
use crate::failure;
use crate::verbs::Agent;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often one looks whether there is something to do.
const TICK: Duration = Duration::from_millis(500);
/// How often, at least, what could not be settled is looked at again.
const SETTLE: Duration = Duration::from_secs(30);
/// How often namespaces are looked for that went without a DEL.
const GONE: Duration = Duration::from_secs(300);
/// How often one looks whether somebody has removed rules of ours from nftables.
const RULES: Duration = Duration::from_secs(2);
/// A write-ahead log larger than this is moved into the journal.
const LOG_BYTES: u64 = 4 << 20;

/// Starts the threads; they end with the process.
pub(crate) fn start(agent: &Arc<Agent>) -> std::io::Result<()> {
    spawn(agent, "background", |agent| {
        loop {
            agent.tend_conflist();
            agent.tend_conflists();
            agent.checkpoint_if_large();
            // Whoever makes a network wants to use it by its name.
            agent.networks.wait(TICK);
        }
    })?;
    spawn(agent, "firewall", |agent| {
        let mut said = None;
        loop {
            let wrong = agent.tend_firewall();
            if let Some(error) = wrong.as_ref().filter(|_| wrong != said) {
                tracing::error!(
                    error,
                    "rules of ours in nftables cannot be looked at or put back, will be tried again"
                );
            }
            said = wrong;
            std::thread::sleep(RULES);
        }
    })?;
    spawn(agent, "queue", |agent| {
        let mut backoff = Backoff::new();
        every_tick(|| agent.drain_queue(&mut backoff));
    })?;
    spawn(agent, "removals", |agent| {
        let mut backoff = Backoff::new();
        let mut settling = Pace::new(TICK);
        let mut looking = Pace::new(plexus_faults::hastened(GONE));
        agent.retry_removals(&mut backoff, true);
        every_tick(|| {
            agent.retry_removals(&mut backoff, false);
            if settling.is_due() && agent.settle_the_rest() {
                settling.slower();
            }
            if looking.is_due() {
                agent.remove_what_is_gone();
            }
        });
    })
}

fn spawn(
    agent: &Arc<Agent>,
    name: &str,
    work: impl FnOnce(&Agent) + Send + 'static,
) -> std::io::Result<()> {
    let agent = Arc::clone(agent);
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(move || work(&agent)).map(drop)
}

fn every_tick(mut work: impl FnMut()) {
    loop {
        work();
        std::thread::sleep(TICK);
    }
}

/// How often something is done.
struct Pace {
    every: Duration,
    last: Instant,
}

impl Pace {
    fn new(every: Duration) -> Self {
        let last = Instant::now();
        Self { every, last }
    }

    fn is_due(&mut self) -> bool {
        let due = self.last.elapsed() >= self.every;
        if due {
            self.last = Instant::now();
        }
        due
    }

    fn slower(&mut self) {
        self.every = (self.every * 2).min(SETTLE);
    }
}

impl Agent {
    fn checkpoint_if_large(&self) {
        let Ok(journal) = self.journal() else { return };
        let mut log = journal.path().as_os_str().to_owned();
        log.push("-wal");
        if std::fs::metadata(&log).is_ok_and(|log| log.len() > LOG_BYTES)
            && let Err(error) = journal.checkpoint()
        {
            tracing::warn!(
                error = failure::chain(&error),
                "cannot move the write-ahead log into the journal"
            );
        }
    }
}
