//! What an agent would answer about its pods, its pools and its journal, for the tests of the API side: the one
//! stand-in for all of them.

use crate::cluster::report::{
    Attached, BlockUse, Change, ClusterOptions, Hooks, Journaled, PartRequest, RecordOutcome,
};
use crate::cluster::shared::Shared;
use ipnet::IpNet;
use plexus_api::cni::BlockIpam;
use plexus_core::ipam::{Donation, NodeBlocks, Pools};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// An agent that keeps everything in memory.
#[derive(Default)]
pub(in crate::cluster) struct FakeHooks {
    /// The pods that are attached.
    pub(in crate::cluster) pods: Mutex<Vec<Attached>>,
    /// Blocks, and how many of their addresses are in use beside those of the pools.
    pub(in crate::cluster) usage: Mutex<Vec<BlockUse>>,
    /// How often something has changed.
    pub(in crate::cluster) changes: AtomicUsize,
    /// Its pools.
    pub(in crate::cluster) pools: Mutex<Pools>,
    /// What the journal would have.
    pub(in crate::cluster) donations: Mutex<Vec<Donation>>,
    /// What is answered whether addresses are in use, if not what the pools and `usage` say.
    pub(in crate::cluster) in_use: Mutex<Option<Option<bool>>>,
}

/// Node `n1` of an API server that never answers.
pub(in crate::cluster) fn shared(
    runtime: &tokio::runtime::Runtime,
    directory: &Path,
    hooks: &Arc<FakeHooks>,
) -> Shared {
    let _inside = runtime.enter();
    let nobody = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    let options = ClusterOptions {
        server: plexus_client::Server::Account,
        node: "n1".to_owned(),
        state_dir: directory.to_owned(),
        cni_conf_dir: directory.to_owned(),
        host_root: None,
        pod_cidrs: false,
        allowed_subnets: Default::default(),
        containers: false,
    };
    let hooks: Arc<dyn Hooks> = Arc::clone(hooks) as Arc<dyn Hooks>;
    Shared::new(options, kube::Client::try_from(nobody).unwrap(), hooks)
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
        let used = usage.iter().filter(of).any(|one| one.allocated > 0);
        Some(used || self.held(cidr) > 0)
    }
    fn donate(
        &self,
        config: &BlockIpam,
        own: &NodeBlocks,
        request: &PartRequest<'_>,
    ) -> Option<Donation> {
        let mut pools = self.pools.lock().unwrap();
        let donation =
            pools.donate(config, own, request.family, request.addresses, request.node)?;
        self.donations.lock().unwrap().push(donation.clone());
        Some(donation)
    }
    fn donations(&self) -> Option<Vec<Donation>> {
        Some(self.donations.lock().unwrap().clone())
    }
    fn record_donation(&self, donation: &Donation, given_back: &[IpNet]) -> RecordOutcome {
        let mut pools = self.pools.lock().unwrap();
        if !pools.mark_donated_if_free(donation, given_back) {
            return RecordOutcome::InUse;
        }
        let mut all = self.donations.lock().unwrap();
        all.retain(|one| one.part != donation.part);
        all.push(donation.clone());
        RecordOutcome::OnDisk
    }
    fn delete_donation(&self, donation: &Donation) {
        self.pools.lock().unwrap().unmark_donated(donation);
        self.donations.lock().unwrap().retain(|one| one != donation);
    }
}
