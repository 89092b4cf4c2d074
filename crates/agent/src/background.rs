//! What happens without anyone asking: queued DELs, removals that failed, checkpoints.

use crate::call::Call;
use crate::failure;
use crate::journal::State;
use crate::verbs::Agent;
use plexus_api::cni::{Command, Error, Version};
use plexus_cni::queue;
use plexus_types::ContainerId;
use std::path::Path;
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
            let mut since_retry = Duration::ZERO;
            loop {
                std::thread::sleep(TICK);
                since_retry += TICK;
                agent.drain_queue();
                agent.checkpoint_if_large();
                if since_retry >= RETRY {
                    since_retry = Duration::ZERO;
                    agent.retry_removals();
                }
            }
        })?;
    Ok(())
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

    /// DELs that the shim queued while no agent answered, oldest first.
    pub(crate) fn drain_queue(&self) {
        self.drain(None);
    }

    /// Those of one container, before its ADD; its turn is the caller's.
    pub(crate) fn drain_queue_of(&self, container: &ContainerId) {
        self.drain(Some(container));
    }

    fn drain(&self, only: Option<&ContainerId>) {
        let directory = queue::dir(&self.options.socket);
        if !directory.exists() {
            return;
        }
        if only.is_none()
            && let Err(error) = queue::sweep(&directory)
        {
            tracing::warn!(
                error = queue::describe(&error),
                "cannot remove what dead shims left in the queue"
            );
        }
        let names = match queue::list(&directory) {
            Ok(names) => names,
            Err(error) => {
                tracing::error!(
                    error = queue::describe(&error),
                    "cannot read the queue of DELs"
                );
                return;
            }
        };
        for name in names {
            if only.is_none_or(|container| queue::may_concern(&name, container.as_str())) {
                self.drain_one(&directory, &name, only);
            }
        }
    }

    fn drain_one(&self, directory: &Path, name: &str, only: Option<&ContainerId>) {
        let body = match queue::read(directory, name) {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(
                    name,
                    error = queue::describe(&error),
                    "cannot read a queued DEL"
                );
                return;
            }
        };
        let done = Call::read(Command::Del, body.as_bytes(), &mut Version::V1_1_0.clone())
            .and_then(|call| {
                let container = call.container()?.clone();
                let _turn = match only {
                    Some(held) if *held == container => None,
                    Some(_) => return Ok(false),
                    None => Some(self.second_turn(&container)?),
                };
                self.detach(&call).map(|()| true)
            });
        match done {
            Ok(false) => {}
            Ok(true) => {
                tracing::info!(name, "a queued DEL is done");
                if let Err(error) = queue::remove(directory, name) {
                    tracing::error!(
                        name,
                        error = queue::describe(&error),
                        "cannot remove a queued DEL"
                    );
                }
            }
            Err(error) => tracing::error!(name, %error, "a queued DEL failed, will be tried again"),
        }
    }

    fn retry_removals(&self) {
        let Ok(journal) = self.journal() else { return };
        let Ok(stored) = journal.all() else { return };
        for one in stored.iter().filter(|one| one.state == State::Deleting) {
            let record = &one.record;
            let done = self
                .second_turn(&record.container)
                .and_then(|_turn| self.detach_record(&record.container, &record.ifname));
            match done {
                Ok(()) => {
                    tracing::info!(container = %record.container, "a removal that had failed is done")
                }
                Err(error) => {
                    tracing::error!(container = %record.container, %error, "a removal failed again")
                }
            }
        }
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
