//! GC: removes what the runtime no longer knows. Only with a list: no list is not an empty list.

use crate::agent::Agent;
use crate::failure;
use crate::journal::{Record, State, Stored};
use crate::serve::call::Call;
use crate::span;
use plexus_api::cni::{Body, Error, NetConf, ValidAttachment};
use plexus_types::{ContainerId, NetworkName};
use std::collections::BTreeSet;

impl Agent {
    /// Removes the network's attachments that are not in the list. A valid container id covers all
    /// of its interfaces in standalone mode, where the runtime knows only the first.
    pub(crate) fn collect(&self, call: &Call<'_>) -> Result<(), Error> {
        let conf = call.conf()?;
        let Some(valid) = &conf.valid_attachments else {
            tracing::info!(network = %conf.name, "GC without a list of valid attachments removes nothing");
            return Ok(());
        };
        let standalone = matches!(conf.body, Body::All { .. } | Body::Pod);
        let is_covered = |record: &Record| {
            valid.iter().any(|one| {
                one.container == record.container && (standalone || one.ifname == record.ifname)
            })
        };
        let stored = self.stored()?;
        let records = stored.iter().map(|stored| &stored.record);
        let mut problems = Vec::new();
        for record in records.filter(|record| is_of(record, conf) && !is_covered(record)) {
            let removed = self
                .lock_other_container(&record.container)
                .and_then(|_lock| self.collect_one(record));
            problems.extend(removed.err().map(|error| error.to_string()));
        }
        let collected = self.collect_delegates(&conf.body, valid, &mut problems);
        problems.extend(collected.err().map(|error| error.to_string()));
        failure::all_of(&problems, "repeat the GC")
    }

    /// Removes what was listed, unless an ADD has put something else in its place meanwhile.
    fn collect_one(&self, listed: &Record) -> Result<(), Error> {
        match self.journal()?.find(&listed.container, &listed.ifname)? {
            Some(stored) if stored.record.cookie == listed.cookie => {
                let _span = span::of_record("gc", &stored.record).entered();
                tracing::info!("GC removes an attachment");
                self.undo(&stored.record)
            }
            _ => Ok(()),
        }
    }

    /// A delegate removes what is not in its list, so the list must have everything that is
    /// there; the runtime's has no interface but the first of each container.
    fn collect_delegates(
        &self,
        body: &Body,
        valid: &[ValidAttachment],
        problems: &mut Vec<String>,
    ) -> Result<(), Error> {
        let mut networks = body.networks().iter();
        if !networks.any(|network| network.backend.executed().is_some()) {
            return Ok(());
        }
        let Some(stored) = self.stored_if_readable()? else {
            tracing::warn!("GC runs no delegates: not every row of the journal can be read");
            return Ok(());
        };
        if matches!(body, Body::All { .. })
            && let Some(container) = unknown(valid, &stored)
        {
            tracing::warn!(%container, "GC runs no delegates: which interfaces they made for a valid container is not known");
            return Ok(());
        }
        for network in body.networks() {
            if let Some(chain) = network.backend.executed() {
                let valid = still_there(&network.name, valid, &stored);
                let errors = self.runner.gc(&network.name, chain, &valid);
                problems.extend(errors.iter().map(|error| error.to_cni().to_string()));
            }
        }
        Ok(())
    }
}

/// A container that is valid, and whose record was lost with an earlier journal: adopting finds
/// our own links only.
fn unknown<'a>(valid: &'a [ValidAttachment], stored: &[Stored]) -> Option<&'a ContainerId> {
    let known = |container: &ContainerId| {
        let mut records = stored.iter().map(|stored| &stored.record);
        records.any(|record| record.container == *container && !record.details.adopted)
    };
    let mut containers = valid.iter().map(|one| &one.container);
    containers.find(|container| !known(container))
}

/// What a network's delegates must not remove: what the runtime names, and what they made for any
/// record that is not on its way out, also one of another configuration with the same network.
fn still_there(
    network: &NetworkName,
    valid: &[ValidAttachment],
    stored: &[Stored],
) -> Vec<ValidAttachment> {
    let mut all: BTreeSet<ValidAttachment> = valid.iter().cloned().collect();
    for stored in stored.iter().filter(|s| s.state != State::Deleting) {
        let record = &stored.record;
        let plugins = record.begun_plugins().chain(record.executed_ipams());
        for (attachment, _) in plugins.filter(|(one, _)| one.network == *network) {
            all.insert(ValidAttachment {
                container: stored.record.container.clone(),
                ifname: attachment.ifname.clone(),
            });
        }
    }
    all.into_iter().collect()
}

/// Whether a record belongs to the configuration. The mark of an adopted link names its own
/// network, not the list that it was in.
fn is_of(record: &Record, conf: &NetConf) -> bool {
    let networks = conf.body.networks();
    let is_listed = |name: &NetworkName| networks.iter().any(|network| network.name == *name);
    let are_listed = || record.natives().all(|(one, _)| is_listed(&one.network));
    record.network == conf.name || (record.details.adopted && are_listed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{AttachmentRecord, BackendRecord, Details, PluginsRecord, Record};
    use plexus_types::NetnsCookie;

    fn stored(container: &str, state: State, delegates: &[(&str, &str)]) -> Stored {
        let delegate = |(reference, (network, ifname)): (usize, &(&str, &str))| AttachmentRecord {
            reference,
            ordinal: 0,
            network: network.parse().unwrap(),
            ifname: ifname.parse().unwrap(),
            origin: None,
            backend: BackendRecord::Plugins(PluginsRecord {
                version: "1.1.0".to_owned(),
                ipam: false,
                plugins: Vec::new(),
                runtime: Default::default(),
                begun: 1,
                results: Vec::new(),
            }),
        };
        let record = Record {
            container: container.parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
            network: "all".parse().unwrap(),
            pod_uid: None,
            boot: "boot".to_owned(),
            cookie: NetnsCookie(1),
            netns: "/run/netns/x".to_owned(),
            details: Details::default(),
            attachments: delegates.iter().enumerate().map(delegate).collect(),
        };
        Stored {
            record,
            state,
            result: None,
        }
    }

    fn valid(container: &str, ifname: &str) -> ValidAttachment {
        ValidAttachment {
            container: container.parse().unwrap(),
            ifname: ifname.parse().unwrap(),
        }
    }

    #[test]
    fn a_delegate_is_told_of_its_own_interfaces() {
        let all = [
            stored("g1", State::Done, &[("red", "net1"), ("blue", "net2")]),
            stored("g2", State::Intent, &[("red", "x7")]),
            stored("gone", State::Deleting, &[("red", "net1")]),
        ];
        let list = still_there(&"red".parse().unwrap(), &[valid("g1", "eth0")], &all);
        let wanted = [valid("g1", "eth0"), valid("g1", "net1"), valid("g2", "x7")];
        assert_eq!(list, wanted);
    }

    #[test]
    fn a_valid_container_without_a_record_is_noticed() {
        let mut all = [stored("g1", State::Done, &[("red", "net1")])];
        let list = [valid("g1", "eth0"), valid("g0", "eth0")];
        assert_eq!(unknown(&list[..1], &all), None);
        assert_eq!(unknown(&list, &all), Some(&list[1].container));
        all[0].record.details.adopted = true;
        assert_eq!(unknown(&list, &all), Some(&list[0].container));
    }
}
