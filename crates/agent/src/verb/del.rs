//! DEL, and every other reason to take an attachment away. From the journal alone: no network
//! object, no namespace, no memory is needed. Tries everything, reports every error, and may be
//! repeated.

use crate::addresses::Addresses;
use crate::addresses::host_local::Locked;
use crate::agent::Agent;
use crate::failure;
use crate::journal::{AttachmentRecord, Journal, JournalError, Record, Stored};
use crate::recover::sandbox::{self, Sandbox};
use crate::report::provider;
use crate::serve::call::Call;
use crate::span;
use crate::verb::plugins as executed;
use plexus_api::cni::{Body, Error, RemainsNetwork};
use plexus_kernel::{Netns, pod};
use plexus_types::{ContainerId, IfName};
use std::collections::BTreeSet;
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
        let at = |error| failure::at(call.context(), error);
        let stored = match &self.journal {
            Ok(journal) => journal.find(&container, &ifname),
            Err(_) => return self.detach_without_journal(call).map_err(at),
        };
        let detached = match stored {
            Ok(Some(Stored { record, .. })) if self.is_another(call, &record) => {
                let network = &record.network;
                tracing::info!(%network, "a DEL of another network leaves the interface alone");
                Ok(())
            }
            Ok(Some(Stored { record, .. })) => {
                let undone = self.undo_at(&record, call.netns().map(PathBuf::as_path));
                // Links tell nothing of plugins that were executed: the request does.
                match record.details.adopted {
                    true => undone.and_then(|()| self.detach_without_journal(call)),
                    false => undone,
                }
            }
            // A repeated DEL, most likely. Cheap, and harmless.
            Ok(None) => self.remove_marked(call).inspect(|()| {
                self.addresses.release_unrecorded(&container, &ifname);
            }),
            Err(error) => {
                tracing::error!(
                    error = failure::chain(&error),
                    "the journal cannot be read: DEL works from the request"
                );
                match error {
                    JournalError::Unreadable { .. } => self.detach_unreadable(call),
                    _ => self.detach_without_journal(call),
                }
            }
        };
        detached.map_err(at)
    }

    /// Takes away what a record describes, if there is one.
    pub(crate) fn detach_record(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), Error> {
        match self.journal()?.find(container, ifname)? {
            Some(stored) => self.undo(&stored.record),
            None => Ok(()),
        }
    }

    /// Removes what a record describes, wherever its namespace is.
    pub(crate) fn undo(&self, record: &Record) -> Result<(), Error> {
        self.undo_at(record, None)
    }

    /// Removes links, plugins' work, files and addresses, then the record. If something of an attachment stays, so
    /// does its row, in a record that is marked as being removed, and it is tried again; the others' addresses are
    /// free. `hint` is another path at which the namespace may be.
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
            Sandbox::Unknown(why) => {
                // Whoever asked for this ends the namespace next; waiting would help nobody.
                tracing::warn!(why, "removing without the container's namespace");
                None
            }
        };
        let left = self.undo_attachments(record, netns.as_ref(), &mut problems);
        if left.is_empty() {
            self.forget(record, journal);
            return Ok(());
        }
        self.forget_all_but(record, &left, journal);
        let undone = failure::all_of(
            &problems,
            "repeat the DEL; the agent tries again by itself too",
        );
        undone.map_err(|error| failure::at(format!("removing interface {}", record.ifname), error))
    }

    /// Takes everything away that can be: plugins' work, links, files. Gives the positions of the attachments of which
    /// something is left.
    fn undo_attachments(
        &self,
        record: &Record,
        netns: Option<&Netns>,
        problems: &mut Vec<String>,
    ) -> BTreeSet<usize> {
        let mut left = BTreeSet::new();
        let path = netns.map(|netns| netns.path().to_string_lossy().into_owned());
        let path = path.unwrap_or_default();
        for (index, attachment) in record.attachments.iter().enumerate().rev() {
            let Some(plugins) = attachment.plugins().filter(|plugins| plugins.begun > 0) else {
                continue;
            };
            let this = std::slice::from_ref(attachment);
            let undone = span::of_step("plugin", this)
                .in_scope(|| executed::del(&self.runner, (attachment, plugins), record, &path));
            if let Err(error) = undone {
                span::failed(this);
                problems.push(error.to_string());
                left.insert(index);
            }
        }
        let mut plan = record.plan();
        // After a reboot every device is on the node, under whatever name it has now.
        plan.links
            .retain(|link| record.boot == self.boot || link.kind.moved().is_none());
        let removed = pod::remove(&plan, netns, &self.node);
        log_warnings(&removed);
        let links_stay = removed.is_err();
        problems.extend(removed.err().map(|error| failure::chain(&error)));
        for (index, attachment) in record.attachments.iter().enumerate().rev() {
            let Some(native) = attachment.native() else {
                continue;
            };
            if links_stay && native.link.is_some() {
                left.insert(index);
                continue;
            }
            let mut errors = self.undo_preparations(record, attachment, &path);
            let released = self.addresses.release(native, &record.container);
            errors.extend(released.err().map(|error| error.to_string()));
            if !errors.is_empty() {
                span::failed(std::slice::from_ref(attachment));
                problems.append(&mut errors);
                left.insert(index);
            }
        }
        left
    }

    /// Everything is gone: so are the record and its addresses.
    fn forget(&self, record: &Record, journal: &Journal) {
        let key = record.key();
        match journal.forget(&record.container, &record.ifname) {
            Ok(()) => {
                self.removed().remove(&key);
                for attachment in &record.attachments {
                    self.addresses.forget(record, attachment);
                }
                if record.details.adopted {
                    // Links of it that were not seen in the pod.
                    self.addresses
                        .release_unrecorded(&record.container, &record.ifname);
                }
                self.report_detached(record);
            }
            Err(error) => {
                // Everything is gone but the row. Its addresses stay reserved until it is.
                tracing::error!(
                    error = failure::chain(&error),
                    "cannot journal the end of a removal"
                );
                self.removed().insert(key);
            }
        }
    }

    /// Some attachments are gone: their addresses are free, though others of the record are left.
    fn forget_all_but(&self, record: &Record, left: &BTreeSet<usize>, journal: &Journal) {
        let attachments = record.attachments.iter().enumerate();
        let is_gone = |(index, one)| (!left.contains(&index)).then_some(one);
        let gone: Vec<&AttachmentRecord> = attachments.filter_map(is_gone).collect();
        match journal.forget_attachments(record, &gone) {
            Ok(()) => {
                for attachment in gone {
                    self.addresses.forget(record, attachment);
                }
            }
            Err(error) => tracing::error!(
                error = failure::chain(&error),
                "cannot journal that a part of a removal is done"
            ),
        }
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
            if let Err(error) = executed::del_from_request(&self.runner, call, network, result) {
                // Whoever is still there keeps its address.
                problems.push(error.to_string());
            } else if let Err(error) = release_files(&self.addresses, call, network) {
                problems.push(error.to_string());
            }
        }
        failure::all_of(&problems, "repeat the DEL")
    }

    /// Some rows of the record cannot be read: what the others say is undone, then what the request says. The rows stay,
    /// as being removed, if plugins may have made something that neither tells.
    fn detach_unreadable(&self, call: &Call<'_>) -> Result<(), Error> {
        let (container, ifname) = call.key()?;
        let journal = self.journal()?;
        let readable = journal.readable_part(&container, &ifname)?;
        let mut problems = Vec::new();
        if let Some((record, _)) = &readable {
            let hint = call.netns().map(PathBuf::as_path);
            let netns = match self.sandbox_of(record, hint, &sandbox::search()) {
                Sandbox::Here(netns) => Some(netns),
                Sandbox::Gone | Sandbox::Unknown(_) => None,
            };
            self.undo_attachments(record, netns.as_ref(), &mut problems);
        }
        failure::all_of(&problems, "repeat the DEL")?;
        self.detach_without_journal(call)?;
        let taken = journal.addresses_of(&container, &ifname)?;
        let are_all = readable.is_some_and(|(_, are_all)| are_all);
        if !are_all && call.remains().networks.is_empty() {
            journal.deleting(&container, &ifname)?;
            tracing::error!(
                "what plugins made for the container may be left: its rows stay for an agent that can read them"
            );
            return Ok(());
        }
        journal.forget(&container, &ifname)?;
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
        let has_that = |journal: &Journal| {
            let own = journal.of_container(&record.container);
            own.is_ok_and(|own| own.iter().any(|one| one.record.network == conf.name))
        };
        differs && self.journal().is_ok_and(has_that)
    }

    fn remove_marked(&self, call: &Call<'_>) -> Result<(), Error> {
        let (container, ifname) = (call.container()?, call.ifname()?);
        let netns = call.netns().and_then(|path| Netns::open(path).ok());
        let removed = pod::remove_marked(
            netns.as_ref(),
            self.here,
            container.as_str(),
            ifname.as_str(),
            &self.node,
        );
        log_warnings(&removed);
        removed
            .map(drop)
            .map_err(|error| failure::failed(&error, "repeat the DEL"))
    }
}

/// What the node has again, but not as it was.
pub(crate) fn log_warnings(removed: &Result<pod::Removed, pod::RemoveError>) {
    let removed = removed.as_ref().unwrap_or_else(|error| &error.removed);
    for warning in &removed.warnings {
        tracing::warn!(warning, "a device was not given back as it was");
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
    let directory = addresses.directory(data_dir, name, false);
    let released = Locked::open_existing(&directory).and_then(|locked| match locked {
        Some(locked) => locked.release_all(container, ifname),
        None => Ok(()),
    });
    released.map_err(|error| failure::failed(&error, "repeat the DEL"))
}
