//! Parts of blocks that nodes give each other. Owns both ends of it in the API: what this node gives,
//! and what it is given; what to give is decided elsewhere, and is on disk before it is said here.
//!
//! ```text
//!   a request of another node ──► hooks: chosen, journaled, flushed ──► status.given of our block
//!   status.given names this node ──► a Block of its own for the part
//!   whoever has a part is gone ──► a Block of ours for the part: never a part of the old one again
//! ```
//! Each node writes only what is its own. Whoever creates the Block of a part has it: to take a part
//! back is to create it, and that fails as long as somebody has it.

mod answer;
mod receive;
mod reconcile;

pub(super) use reconcile::{CHECK_INTERVAL, RETRY_INTERVAL, Reconcile};
#[cfg(test)]
pub(super) use {
    answer::{DonateOutcome, answer, donate},
    receive::receive,
    reconcile::{Donor, publish_donations},
};

use super::report::RecordOutcome;
use super::shared::Shared;
use plexus_core::ipam::Donation;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Wakes the task that reconciles donations, and knows which requests of this node are open.
#[derive(Default)]
pub(super) struct Donations {
    changed: Notify,
    /// A block may have come.
    pub(super) arrived: Notify,
    asking: Mutex<BTreeSet<String>>,
    request_locks: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// While it is there, a request of that name is wanted.
pub(super) struct Asking<'a> {
    donations: &'a Donations,
    name: String,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        lock(&self.donations.asking).remove(&self.name);
        self.donations.changed();
    }
}

impl Donations {
    /// Blocks, requests or nodes changed.
    pub(super) fn changed(&self) {
        self.changed.notify_one();
        self.arrived.notify_waiters();
    }

    /// From now on a request of that name is waited for.
    pub(super) fn asking(&self, name: &str) -> Asking<'_> {
        lock(&self.asking).insert(name.to_owned());
        Asking {
            donations: self,
            name: name.to_owned(),
        }
    }

    /// The lock that whoever requests a part for a network holds: one at a time.
    pub(super) fn request_lock(&self, network_uid: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut request_locks = lock(&self.request_locks);
        request_locks.retain(|_, request_lock| Arc::strong_count(request_lock) > 1);
        Arc::clone(request_locks.entry(network_uid.to_owned()).or_default())
    }

    fn is_asking(&self, name: &str) -> bool {
        lock(&self.asking).contains(name)
    }
}

/// Records a donation that is not known yet, or its new owner.
pub(super) fn record(shared: &Shared, donation: &Donation) -> RecordOutcome {
    let (network, part) = (&donation.network, &donation.part);
    let node = &shared.options.node;
    let given_back = shared.state().given_within(network, part, node);
    shared.hooks.record_donation(donation, &given_back)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
