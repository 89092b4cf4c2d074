//! Removals that nobody waits for: those that failed, those that were left for later at start, and
//! those of namespaces that went without a DEL. Each under its container's lock.

use crate::agent::Agent;
use crate::background::backoff::Backoff;
use crate::failure;
use crate::journal::{Key, Record, State, Stored};
use crate::recover::sandbox::{self, Sandbox};
use crate::serve::admission::{ContainerLock, Refused};
use crate::span;
use plexus_api::cni::Error;
use plexus_kernel::pod;
use plexus_types::ContainerId;
use std::time::{Duration, Instant};
use tracing::Span;

/// How long a caller that holds one container's lock, or has other work, waits for another's.
const CONTAINER_LOCK_TIMEOUT: Duration = Duration::from_secs(10);

impl Agent {
    /// Waits a little for another container's lock; the caller may hold its own.
    pub(crate) fn lock_other_container(
        &self,
        container: &ContainerId,
    ) -> Result<ContainerLock<'_>, Error> {
        self.admission
            .lock_container(container, CONTAINER_LOCK_TIMEOUT, || false)
            .map_err(failure::refused)
    }

    /// What is being removed, and what is removed but could not be journaled. One that is seen for the
    /// first time is likely to be a DEL on its way; only at start (`at_once`) it is nobody's.
    pub(crate) fn retry_removals(
        &self,
        backoff: &mut Backoff<Key>,
        at_once: bool,
        mut step: impl FnMut(String),
    ) -> Result<(), String> {
        let Ok(journal) = self.journal() else {
            return Ok(());
        };
        let deleting = journal
            .being_removed()
            .map_err(|e| format!("cannot read what is to be removed: {}", failure::chain(&e)))?;
        let mut keys = self.removed().clone();
        keys.extend(deleting);
        backoff.keep_only(|key| keys.contains(key));
        for key in &keys {
            if !at_once && !backoff.knows(key) {
                backoff.put_off(key, Instant::now());
            }
            if !backoff.is_due(key, Instant::now()) {
                continue;
            }
            let (container, ifname) = key;
            step(format!("removing {ifname} of {container}"));
            let _span = span::of_container("remove", container, ifname).entered();
            if let Err(error) = self.retry_removal(key) {
                tracing::error!(%error, "a removal failed again");
            }
            backoff.put_off(key, Instant::now());
        }
        Ok(())
    }

    fn retry_removal(&self, key: &Key) -> Result<(), Error> {
        let Some(_lock) = self.try_lock_container(&key.0)? else {
            return Ok(());
        };
        let found = self.journal()?.find(&key.0, &key.1)?;
        // Only what is still said of the key under its lock: an ADD may have been there.
        let removed = self.removed().contains(key);
        match found {
            Some(stored)
                if stored.state == State::Deleting || removed && self.is_gone(&stored.record) =>
            {
                if let Some(pod) = &stored.record.details.pod {
                    Span::current().record("pod", pod);
                }
                self.undo(&stored.record)?;
                match self.removed().contains(key) {
                    true => tracing::warn!("a removal that was left is done, but for the journal"),
                    false => tracing::info!("a removal that was left is done"),
                }
            }
            _ => drop(self.removed().remove(key)),
        }
        Ok(())
    }

    /// Removes what a namespace had that is gone without a DEL. The evidence is the same as at start.
    pub(crate) fn remove_what_is_gone(&self, mut step: impl FnMut(String)) {
        // Before the namespaces are looked for: each of these had one.
        let Ok(stored) = self.stored() else { return };
        let search = sandbox::search();
        let done = stored.iter().filter(|one| one.state == State::Done);
        for record in done.map(|one| &one.record) {
            step(format!("looking whether {} is gone", record.container));
            if !matches!(self.sandbox_of(record, None, &search), Sandbox::Gone) {
                continue;
            }
            let _span = span::of_record("remove", record).entered();
            if let Err(error) = self.remove_if_gone(record) {
                tracing::error!(%error, "cannot remove what a namespace had that is gone");
            }
        }
    }

    /// Looks once more: between the first look and the lock, a path may have come back.
    fn remove_if_gone(&self, listed: &Record) -> Result<(), Error> {
        let Some(_lock) = self.try_lock_container(&listed.container)? else {
            return Ok(());
        };
        let stored = self.journal()?.find(&listed.container, &listed.ifname)?;
        let is_done = |stored: Stored| stored.state == State::Done && stored.record == *listed;
        let is_gone = || {
            let sandbox = self.sandbox_of(listed, None, &sandbox::search());
            matches!(sandbox, Sandbox::Gone)
        };
        if !stored.is_some_and(is_done) || !is_gone() {
            return Ok(());
        }
        let netns = &listed.netns;
        tracing::info!(
            netns,
            "the namespace is gone, and no DEL came: removing its attachments"
        );
        self.undo(listed)
    }

    /// None if somebody is at work on the container.
    pub(crate) fn try_lock_container(
        &self,
        container: &ContainerId,
    ) -> Result<Option<ContainerLock<'_>>, Error> {
        let at_once = Duration::ZERO;
        match self.admission.lock_container(container, at_once, || false) {
            Ok(lock) => Ok(Some(lock)),
            Err(Refused::Busy(_)) => Ok(None),
            Err(refused) => Err(failure::refused(refused)),
        }
    }

    /// Whether no link of a record is there any more: its row is all that is left.
    fn is_gone(&self, record: &Record) -> bool {
        let Sandbox::Here(netns) = self.sandbox_of(record, None, &sandbox::search()) else {
            return true;
        };
        let there = pod::is_there(&record.plan(), &netns, &self.node);
        there.is_ok_and(|there| !there)
    }
}
