//! What happens without anyone asking: queued DELs, removals that failed, checkpoints.

use crate::failure;
use crate::journal::{Record, State};
use crate::sandbox::{self, Sandbox};
use crate::verbs::Agent;
use plexus_api::cni::Error;
use plexus_kernel::observe;
use plexus_types::{ContainerId, IfName};
use std::sync::Arc;
use std::time::Duration;

/// How often removals that failed are tried again.
const RETRY: Duration = Duration::from_secs(30);
/// How often the log's size is looked at, and the queue in case a notice was lost.
const TICK: Duration = Duration::from_millis(500);
/// A write-ahead log larger than this is moved into the journal.
const LOG_BYTES: u64 = 4 << 20;
/// How long a background removal waits for a container's turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the thread; it ends with the process.
pub(crate) fn start(agent: Arc<Agent>) -> std::io::Result<()> {
    std::thread::Builder::new()
        .name("background".to_owned())
        .spawn(move || {
            let mut removals = Pace::new(RETRY);
            let mut settling = Pace::new(TICK);
            loop {
                std::thread::sleep(TICK);
                agent.drain_queue();
                agent.tend_conflist();
                agent.tend_conflists();
                agent.checkpoint_if_large();
                if removals.is_due() {
                    agent.retry_removals();
                }
                if settling.is_due() && agent.settle_the_rest() {
                    settling.slower();
                }
            }
        })?;
    Ok(())
}

/// How often something is done, in ticks.
struct Pace {
    every: Duration,
    waited: Duration,
}

impl Pace {
    fn new(every: Duration) -> Self {
        Self {
            every,
            waited: Duration::ZERO,
        }
    }

    /// Called every tick.
    fn is_due(&mut self) -> bool {
        self.waited += TICK;
        let due = self.waited >= self.every;
        if due {
            self.waited = Duration::ZERO;
        }
        due
    }

    fn slower(&mut self) {
        self.every = (self.every * 2).min(RETRY);
    }
}

impl Agent {
    /// Waits a little for another container's turn, while holding one's own.
    pub(crate) fn second_turn(
        &self,
        container: &ContainerId,
    ) -> Result<crate::admission::Turn<'_>, Error> {
        self.admission
            .turn(container, PATIENCE, || false)
            .map_err(failure::refused)
    }

    /// What was being removed, or was not settled, when it failed; and what is removed but could
    /// not be journaled. Each is looked at again once its container's turn has come.
    fn retry_removals(&self) {
        let Ok(journal) = self.journal() else { return };
        let Ok(stored) = journal.all() else { return };
        let mut keys = std::mem::take(&mut *self.removed());
        let deleting = stored
            .into_iter()
            .filter(|one| one.state == State::Deleting);
        keys.extend(deleting.map(|one| (one.record.container, one.record.ifname)));
        for key in keys {
            match self.retry_removal(&key) {
                Ok(()) => tracing::info!(container = %key.0, "a removal that had failed is done"),
                Err(error) => {
                    tracing::error!(container = %key.0, %error, "a removal failed again");
                }
            }
        }
    }

    fn retry_removal(&self, key: &(ContainerId, IfName)) -> Result<(), Error> {
        let _turn = self.second_turn(&key.0)?;
        let found = self
            .journal()?
            .find(&key.0, &key.1)
            .map_err(|e| failure::journal(&e))?;
        match found {
            Some(stored) if stored.state == State::Deleting || self.is_gone(&stored.record) => {
                self.undo(&stored.record)
            }
            _ => Ok(()),
        }
    }

    /// Whether no link of a record is there any more: its row is all that is left.
    fn is_gone(&self, record: &Record) -> bool {
        let Sandbox::Here(netns) = self.sandbox_of(record, None, &sandbox::search()) else {
            return true;
        };
        let links = self
            .node
            .socket_in(&netns)
            .and_then(|mut socket| observe::links(&mut socket));
        let planned = |name: &str| {
            record
                .body
                .plan
                .links
                .iter()
                .any(|l| l.name.as_str() == name)
        };
        links.is_ok_and(|links| !links.iter().any(|link| planned(&link.name)))
    }

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
