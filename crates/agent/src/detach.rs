//! DEL, and every other reason to take an attachment away. From the journal alone: no network
//! object, no namespace, no memory is needed. Tries everything, reports every error, and may be
//! repeated.

use crate::call::Call;
use crate::delegate;
use crate::failure;
use crate::ipam::Addresses;
use crate::ipam::host_local::Locked;
use crate::journal::{JournalError, Record, Stored};
use crate::provider;
use crate::sandbox::{self, Sandbox};
use crate::verbs::Agent;
use plexus_api::cni::{Body, Code, Error, RemainsNetwork};
use plexus_kernel::{Netns, pod};
use plexus_types::{ContainerId, IfName};
use std::path::{Path, PathBuf};
use std::time::Instant;

impl Agent {
    /// DEL of a call. Unknown to the journal: whatever carries our mark is removed all the same.
    pub(crate) fn detach(&self, call: &Call<'_>) -> Result<(), Error> {
        // Only in test builds, and only when asked: proves that tests of leaks would notice.
        if plexus_faults::mistake("no-del") {
            return Ok(());
        }
        let (container, ifname) = call.key()?;
        let at = |error| failure::at(call.place(), error);
        let stored = match &self.journal {
            Ok(journal) => journal.find(&container, &ifname),
            Err(_) => return self.detach_without_journal(call).map_err(at),
        };
        match stored {
            Ok(Some(Stored { record, .. })) if self.is_another(call, &record) => {
                tracing::info!(
                    interface = %record.ifname, network = %record.network,
                    "a DEL of another network leaves the interface alone"
                );
                Ok(())
            }
            Ok(Some(Stored { record, .. })) => self
                .undo_at(&record, call.netns().map(PathBuf::as_path))
                .map_err(at),
            Ok(None) => self.detach_without_record(call).map_err(at),
            Err(error) => {
                tracing::error!(
                    error = failure::chain(&error),
                    "the journal cannot be read: DEL works from the request"
                );
                self.detach_without_journal(call).map_err(at)?;
                match error {
                    JournalError::Unreadable { .. } => self.forget_unreadable(&container, &ifname),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Takes away what a record describes, if there is one.
    pub(crate) fn detach_record(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), Error> {
        match self
            .journal()?
            .find(container, ifname)
            .map_err(|e| failure::journal(&e))?
        {
            Some(stored) => self.undo(&stored.record),
            None => Ok(()),
        }
    }

    /// Removes what a record describes, wherever its namespace is.
    pub(crate) fn undo(&self, record: &Record) -> Result<(), Error> {
        self.undo_at(record, None)
    }

    /// Removes links, plugins' work, files and addresses, then the record. If something stays, so
    /// does the record, marked as being removed, and it is tried again. `hint` is another path at
    /// which the namespace may be.
    pub(crate) fn undo_at(&self, record: &Record, hint: Option<&Path>) -> Result<(), Error> {
        let started = Instant::now();
        let undone = self.undo_all(record, hint);
        let provider = provider::of_record(record);
        self.metrics
            .detached(provider, undone.is_ok(), started.elapsed());
        undone
    }

    fn undo_all(&self, record: &Record, hint: Option<&Path>) -> Result<(), Error> {
        let journal = self.journal()?;
        let mut problems = Vec::new();
        if let Err(error) = journal.deleting(&record.container, &record.ifname) {
            // A full disk must not keep a pod from being removed.
            tracing::error!(
                error = failure::chain(&error),
                "cannot journal the beginning of a removal"
            );
        }
        let netns = match self.sandbox_of(record, hint, &sandbox::search()) {
            Sandbox::Here(netns) => Some(netns),
            Sandbox::Gone => None,
            Sandbox::OutOfSight(why) => {
                // Whoever asked for this ends the namespace next; waiting would help nobody.
                tracing::warn!(container = %record.container, why, "removing without the container's namespace");
                None
            }
        };
        self.undo_delegates(record, netns.as_ref(), &mut problems);
        if let Err(error) = pod::remove(&record.plan(), netns.as_ref(), &self.node) {
            problems.push(failure::chain(&error));
        }
        if problems.is_empty()
            && let Err(error) = self.addresses.release(record)
        {
            problems.push(error.to_string());
        }
        if !problems.is_empty() {
            return Err(Error::new(
                Code::Failed,
                format!(
                    "removing interface {}: {}",
                    record.ifname,
                    problems.join("; ")
                ),
                "repeat the DEL; the agent tries again by itself too",
            ));
        }
        match journal.forget(&record.container, &record.ifname) {
            Ok(()) => {
                let key = (record.container.clone(), record.ifname.clone());
                self.removed().remove(&key);
                self.addresses.forget(record);
                self.report_detached(record);
            }
            Err(error) => {
                // Everything is gone but the row. Its addresses stay reserved until it is.
                tracing::error!(
                    error = failure::chain(&error),
                    "cannot journal the end of a removal"
                );
                let key = (record.container.clone(), record.ifname.clone());
                self.removed().insert(key);
            }
        }
        Ok(())
    }

    fn undo_delegates(&self, record: &Record, netns: Option<&Netns>, problems: &mut Vec<String>) {
        let netns = netns
            .map(|netns| netns.path().to_string_lossy().into_owned())
            .unwrap_or_default();
        for plugins in record.begun_plugins().rev() {
            if let Err(error) = delegate::del(&self.runner, plugins, record, &netns) {
                problems.push(error.to_string());
            }
        }
    }

    /// The journal is fine and knows nothing: a repeated DEL, most likely. Cheap, and harmless.
    fn detach_without_record(&self, call: &Call<'_>) -> Result<(), Error> {
        self.remove_marked(call)
    }

    /// There is no journal to ask: marks in the kernel, host-local's files by container and
    /// interface, plugins by the result that the runtime kept.
    fn detach_without_journal(&self, call: &Call<'_>) -> Result<(), Error> {
        let mut problems = Vec::new();
        if let Err(error) = self.remove_marked(call) {
            problems.push(error.to_string());
        }
        let remains = call.remains();
        for network in remains.networks.iter().rev() {
            let result = remains.prev_result.as_ref();
            let result = result.filter(|_| network.interface.is_none());
            if let Err(error) = delegate::del_from_request(&self.runner, call, network, result) {
                // Whoever is still there keeps its address.
                problems.push(error.to_string());
            } else if let Err(error) = release_files(&self.addresses, call, network) {
                problems.push(error.to_string());
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Code::Failed,
            problems.join("; "),
            "repeat the DEL",
        ))
    }

    /// What an unreadable record had is gone: its addresses are free, and so is its row.
    fn forget_unreadable(&self, container: &ContainerId, ifname: &IfName) -> Result<(), Error> {
        let journal = self.journal()?;
        let taken = journal.addresses_of(container, ifname);
        let taken = taken.map_err(|e| failure::journal(&e))?;
        let forgotten = journal.forget(container, ifname);
        forgotten.map_err(|e| failure::journal(&e))?;
        for (pool, _, owner) in taken {
            self.addresses.release_owner(&pool, &owner);
        }
        Ok(())
    }

    /// Whether a delegating plugin means another attachment of the container, under an interface that is
    /// this one's. Only if the container has one of that name: else the configuration was renamed, and
    /// nobody but this DEL will ever ask for what the record has.
    fn is_another(&self, call: &Call<'_>, record: &Record) -> bool {
        let Ok(conf) = call.conf() else { return false };
        let differs = matches!(conf.body, Body::Named(_))
            && conf.name != record.network
            && !record.details.adopted;
        differs
            && self.journal().is_ok_and(|journal| {
                let own = journal.of_container(&record.container);
                own.is_ok_and(|own| own.iter().any(|one| one.record.network == conf.name))
            })
    }

    fn remove_marked(&self, call: &Call<'_>) -> Result<(), Error> {
        let (container, ifname) = (call.container()?, call.ifname()?);
        let netns = call.netns().and_then(|path| Netns::open(path).ok());
        pod::remove_marked(
            netns.as_ref(),
            self.here,
            container.as_str(),
            ifname.as_str(),
            &self.node,
        )
        .map(drop)
        .map_err(|error| failure::failed(&error, "repeat the DEL"))
    }
}

/// Frees what host-local's files keep for the network's interface.
fn release_files(
    addresses: &Addresses,
    call: &Call<'_>,
    network: &RemainsNetwork,
) -> Result<(), Error> {
    let (Some(name), Some(data_dir)) = (&network.name, &network.data_dir) else {
        return Ok(());
    };
    let (container, ifname) = (call.container()?, call.ifname()?);
    let ifname = network.interface.as_ref().unwrap_or(ifname);
    let directory = addresses.directory(data_dir, name);
    let released = Locked::open_existing(&directory).and_then(|locked| match locked {
        Some(locked) => locked.release_all(container, ifname),
        None => Ok(()),
    });
    released.map_err(|error| failure::failed(&error, "repeat the DEL"))
}
