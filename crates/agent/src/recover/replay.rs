//! Start: what the last agent left is finished, undone or repaired before anyone is served.
//!
//! | the journal says | the kernel shows | what happens |
//! |---|---|---|
//! | an earlier boot | nothing | files go, then the record |
//! | intent | all of it | done: the shim repeats its ADD and gets the answer |
//! | intent | less | undone |
//! | deleting | anything | undone |
//! | done | the namespace is gone | undone: that is evidence |
//! | done | the namespace is there | the node's side is repaired, the pod's side reported |
//! | anything | the namespace cannot be observed | left alone: that is no evidence |
//! | nothing | links with our mark that the node's side confirms | adopted, with their ports ([`crate::recover::adopt`]) |
//!
//! Nobody waits for plugins here: where undoing means to execute one, the record is marked as being
//! removed, keeps its addresses, and the background does it ([`crate::recover::removals`]).

use crate::addresses::host_local;
use crate::agent::Agent;
use crate::failure;
use crate::journal::{AttachmentRecord, BackendRecord, JournalError, Record, State, Stored};
use crate::recover::sandbox::{self, Sandbox, Search};
use crate::span;
use crate::verb::add::observed_macs;
use plexus_api::cni::{Args, Error, NetConf};
use plexus_core::attach::{answer, complete_macs};
use plexus_core::plan;
use plexus_kernel::{Netns, nft, node, pod};

impl Agent {
    /// Brings journal and kernel together. What cannot be undone now is tried again later.
    pub(crate) fn replay(&self) -> Result<(), Error> {
        let journal = self.journal()?;
        for (pool, address, owner) in journal.addresses()? {
            if let Err(error) = self.addresses.replay(&pool, address, &owner) {
                tracing::error!(%error, "an address of the journal cannot be reserved");
            }
        }
        for donation in journal.donations()? {
            self.addresses.pools().mark_donated(&donation);
        }
        self.restore_node()?;
        let search = sandbox::search();
        for stored in journal.all()? {
            self.settle_or_later(&stored, &search);
        }
        // Who has no record yet has one then: the ports that lead there stay.
        self.adopt()?;
        self.restore_firewall()
    }

    /// Ports of the node that lead to pods, exactly those of the journal, and what checks who sends.
    fn restore_firewall(&self) -> Result<(), Error> {
        let Some(stored) = self.stored_if_readable()? else {
            // Ports of pods whose rows cannot be read would be closed.
            tracing::warn!(
                "the rules of pods in nftables stay as they are: not every row of the journal can be read"
            );
            return Ok(());
        };
        // What is being removed may have its ports no more, and another pod may have them.
        let there = stored
            .iter()
            .filter(|one| one.state != State::Deleting && one.record.boot == self.boot);
        let plans: Vec<_> = there.map(|one| one.record.plan()).collect();
        if let Err(error) = nft::restore(&self.node, &plans) {
            tracing::error!(
                error = failure::chain(&error),
                "cannot restore the rules of pods in nftables, will be tried again"
            );
        }
        Ok(())
    }

    /// Puts back what somebody has removed from nftables.
    pub(crate) fn restore_rules(&self) -> Result<(), String> {
        let restored = nft::restore_missing(&self.node);
        let changes = restored.map_err(|error| failure::chain(&error))?.len();
        if changes > 0 {
            tracing::warn!(
                changes,
                "somebody has removed rules of ours from nftables: they are back"
            );
        }
        Ok(())
    }

    /// Looks again at what could not be settled: whether any is left.
    pub(crate) fn settle_the_rest(&self, mut step: impl FnMut(String)) -> bool {
        let keys = std::mem::take(&mut *self.unsettled());
        let search = sandbox::search();
        for key in keys {
            let (container, ifname) = &key;
            step(format!(
                "settling interface {ifname} of container {container}"
            ));
            let lock = self.lock_other_container(container);
            let stored = self.journal().map(|j| j.find(container, ifname));
            match (lock, stored) {
                (Ok(_lock), Ok(Ok(Some(stored)))) => self.settle_or_later(&stored, &search),
                // Nobody acts on what cannot be read.
                (Ok(_), Ok(Ok(None) | Err(JournalError::Unreadable { .. }))) => {}
                _ => drop(self.unsettled().insert(key)),
            }
        }
        !self.unsettled().is_empty()
    }

    fn settle_or_later(&self, stored: &Stored, search: &Search) {
        let record = &stored.record;
        let _span = span::of_record("replay", record).entered();
        let settled = self.settle(stored, search).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot settle a record, will be tried again");
            false
        });
        if !settled {
            self.unsettled().insert(record.key());
        }
    }

    /// Bridges, forwarding and masquerading, by diff.
    fn restore_node(&self) -> Result<(), Error> {
        for (name, plan) in self.journal()?.node_plans(&self.boot)? {
            if let Err(error) = node::ensure(&plan, &self.node) {
                tracing::error!(
                    network = name,
                    error = failure::chain(&error),
                    "cannot restore what a network has on the node"
                );
            }
            if let Ok(network) = name.parse() {
                self.node_state.lock().insert(network, plan);
            }
        }
        Ok(())
    }

    /// Whether there was enough evidence to settle it.
    fn settle(&self, stored: &Stored, search: &Search) -> Result<bool, Error> {
        let record = &stored.record;
        let netns = &record.netns;
        if record.boot != self.boot {
            tracing::info!("the node was rebooted: dropping a record");
            return self.undo_or_mark(record).map(|()| true);
        }
        let settled = match (stored.state, self.sandbox_of(record, None, search)) {
            (State::Intent, Sandbox::Here(netns)) => self.settle_intent(record, netns),
            (State::Done, Sandbox::Here(netns)) => self.repair(record, &netns),
            (State::Done, Sandbox::Gone) => {
                tracing::info!(netns, "the namespace is gone: removing its attachments");
                self.undo_or_mark(record)
            }
            (state, Sandbox::Unknown(why)) => {
                tracing::warn!(
                    netns,
                    why,
                    ?state,
                    "a namespace cannot be observed: its record is left alone"
                );
                return Ok(false);
            }
            (State::Intent | State::Deleting, _) => self.undo_or_mark(record),
        };
        settled.map(|()| true)
    }

    /// At once, unless a plugin has to be executed: that may take a minute each.
    fn undo_or_mark(&self, record: &Record) -> Result<(), Error> {
        if !record.outlives_reboot() {
            return self.undo(record);
        }
        Ok(self
            .journal()?
            .deleting(&record.container, &record.ifname)?)
    }

    /// Judged by the kernel: all there, or undone.
    fn settle_intent(&self, record: &Record, netns: Netns) -> Result<(), Error> {
        let Some(result) = self.complete(record, &netns)? else {
            return self.undo_or_mark(record);
        };
        tracing::info!("an ADD was complete when the agent died");
        Ok(self.journal()?.done(record, &result)?)
    }

    /// The node's side is ours and is put right; the pod's side is the pod's, which may have
    /// changed it: that is only said.
    fn repair(&self, record: &Record, netns: &Netns) -> Result<(), Error> {
        let plan = &record.plan();
        let observed = pod::observe(plan, netns, &self.node).map_err(unusable)?;
        for difference in plan::diff_pod(plan, &observed.pod) {
            tracing::warn!(%difference, "a container's interface is not as it was made");
        }
        if !plan::diff_host_ends(plan, &observed.node).is_empty() {
            pod::restore_node(plan, &self.node).map_err(unusable)?;
        }
        Ok(())
    }

    /// The answer of an ADD that had done everything but say so; none if something is missing.
    fn complete(&self, record: &Record, netns: &Netns) -> Result<Option<String>, Error> {
        let is_done = |one: &AttachmentRecord| match &one.backend {
            // A link is planned when all its preparations are done.
            BackendRecord::Native(native) => native.link.is_some() && native.outcome.is_some(),
            BackendRecord::Plugins(plugins) => plugins.results.len() == plugins.plugins.len(),
        };
        if !record.attachments.iter().all(is_done) || !files_are_there(record) {
            return Ok(None);
        }
        if record.details.all_interfaces && record.begun_plugins().next().is_some() {
            // Whether the default route is where it belongs was not judged yet. Nobody has had an answer, so the shim
            // repeats its ADD.
            return Ok(None);
        }
        let plan = &record.plan();
        let observed = pod::observe(plan, netns, &self.node).map_err(unusable)?;
        let is_whole = plan::diff_pod(plan, &observed.pod).is_empty()
            && plan::diff_host_ends(plan, &observed.node).is_empty();
        if !is_whole {
            return Ok(None);
        }
        // The node's sysctls come last, and cannot be observed by reading back.
        pod::restore_node(plan, &self.node).map_err(unusable)?;
        let details = &record.details;
        let args = Args::parse(&details.args)?;
        let conf = NetConf::parse(details.config.as_bytes(), &args)?;
        let outcome = |one: &AttachmentRecord| {
            let mut outcome = one.outcome()?.clone();
            if let Some(link) = one.link() {
                complete_macs(&mut outcome, link, observed_macs(link, &observed));
            }
            Some(outcome)
        };
        let outcomes: Vec<_> = record.attachments.iter().map(outcome).collect();
        let outcomes = outcomes.iter().map(Option::as_ref);
        let answer = answer(details.all_interfaces, conf.prev_result, outcomes);
        Ok(serde_json::to_string(&answer).ok())
    }
}

fn unusable(error: pod::ApplyError) -> Error {
    failure::failed(&error, "")
}

fn files_are_there(record: &Record) -> bool {
    record.natives().all(|(_, native)| {
        native.host_local().is_none_or(|(directory, ifname)| {
            let has = |address| host_local::has(directory, address, &record.container, ifname);
            native.ips().all(has)
        })
    })
}
