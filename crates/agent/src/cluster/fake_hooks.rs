//! What an agent would answer about its pods, its pools and its journal, for the tests of the API side: the one
//! stand-in for all of them.

use super::report::{Asked, Attached, BlockUse, Change, Hooks, Journaled, Keeping};
use ipnet::IpNet;
use plexus_api::cni::BlockIpam;
use plexus_core::ipam::{Given, Pools};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// An agent that keeps everything in memory.
#[derive(Default)]
pub(super) struct FakeHooks {
    /// The pods that are attached.
    pub(super) pods: Mutex<Vec<Attached>>,
    /// Blocks, and how many of their addresses are in use beside those of the pools.
    pub(super) usage: Mutex<Vec<BlockUse>>,
    /// How often something has changed.
    pub(super) changes: AtomicUsize,
    /// Its pools.
    pub(super) pools: Mutex<Pools>,
    /// What the journal would have.
    pub(super) given: Mutex<Vec<Given>>,
    /// What is answered whether addresses are in use, if not what the pools and `usage` say.
    pub(super) in_use: Mutex<Option<Option<bool>>>,
}

impl FakeHooks {
    fn held(&self, cidr: IpNet) -> u64 {
        let pools = self.pools.lock().unwrap();
        let held = pools.held().filter(|(_, ip, _)| cidr.contains(ip));
        held.count() as u64
    }
}

impl Hooks for FakeHooks {
    fn changed(&self, _: Change) {
        self.changes.fetch_add(1, SeqCst);
    }
    fn pods(&self) -> Option<Journaled> {
        let done = self.pods.lock().unwrap().clone();
        let uids = done.iter().map(|report| report.pod.uid.clone()).collect();
        Some(Journaled {
            done,
            uids,
            is_partial: false,
        })
    }
    fn usage(&self) -> Option<Vec<BlockUse>> {
        let mut all = self.usage.lock().unwrap().clone();
        for one in &mut all {
            one.allocated += self.held(one.cidr);
        }
        Some(all)
    }
    fn in_use(&self, network_uid: &str, cidr: IpNet) -> Option<bool> {
        if let Some(answer) = *self.in_use.lock().unwrap() {
            return answer;
        }
        let usage = self.usage.lock().unwrap();
        let of = |one: &&BlockUse| one.network_uid == network_uid && one.cidr == cidr;
        let said = usage.iter().filter(of).any(|one| one.allocated > 0);
        Some(said || self.held(cidr) > 0)
    }
    fn give(&self, config: &BlockIpam, asked: &Asked<'_>) -> Option<Given> {
        let mut pools = self.pools.lock().unwrap();
        let given = pools.give(config, asked.family, asked.addresses, asked.node)?;
        self.given.lock().unwrap().push(given.clone());
        Some(given)
    }
    fn given(&self) -> Option<Vec<Given>> {
        Some(self.given.lock().unwrap().clone())
    }
    fn keep_given(&self, given: &Given) -> Keeping {
        if !self.pools.lock().unwrap().keep_given(given) {
            return Keeping::InUse;
        }
        let mut all = self.given.lock().unwrap();
        all.retain(|one| one.part != given.part);
        all.push(given.clone());
        Keeping::OnDisk
    }
    fn drop_given(&self, given: &Given) {
        self.pools.lock().unwrap().unmark_given(given);
        self.given.lock().unwrap().retain(|one| one != given);
    }
}
