//! What the tasks of the API side and its callers share, and when it is in sync.

use super::blocks::OwnBlocks;
use super::changes::Changes;
use super::disk::Disk;
use super::donations::Donations;
use super::events::Events;
use super::kinds::{self, Kind};
use super::multi_nic::{MultiNics, Successors};
use super::records::Writer;
use super::report::{Change, ClusterOptions, Hooks};
use super::state::State;
use super::tasks::Tasks;
use super::watch;
use crate::background::async_task::{Woken, Work};
use crate::background::progress::{Next, Reason};
use kube::Client;
use plexus_core::ipam::NodeBlocks;
use std::collections::BTreeSet;
use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the API may be away at the start before the disk is believed.
const UNREACHED_TIMEOUT: Duration = Duration::from_secs(3);
/// And how long if it answers, but not everything.
const INCOMPLETE_TIMEOUT: Duration = Duration::from_secs(30);
/// How often that is looked at, and how soon a change is in the cache.
pub(super) const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

pub(super) struct Shared {
    pub(super) options: ClusterOptions,
    pub(super) client: Client,
    pub(super) hooks: Arc<dyn Hooks>,
    pub(super) disk: Disk,
    pub(super) records: Writer,
    pub(super) blocks: OwnBlocks,
    pub(super) donations: Donations,
    pub(super) events: Events,
    /// Of what networks are resolved by.
    pub(super) changes: Changes,
    /// NICs of this node that are up; none: nobody has looked yet.
    pub(super) nics_up: RwLock<Option<BTreeSet<String>>>,
    /// Records and journal are to be compared.
    pub(super) resync: Notify,
    /// A record may be of a pod that is gone.
    pub(super) orphans: Notify,
    pub(super) tasks: Tasks,
    state: RwLock<State>,
    synced: Mutex<bool>,
    now_synced: Condvar,
}

impl Shared {
    pub(super) fn new(options: ClusterOptions, client: Client, hooks: Arc<dyn Hooks>) -> Self {
        let disk = Disk::open(&options.state_dir.join("cache.db"), &options.node);
        let shared = Self {
            client,
            hooks,
            records: Writer::default(),
            blocks: OwnBlocks::load(&disk),
            donations: Donations::default(),
            events: Events::default(),
            changes: Changes::default(),
            nics_up: RwLock::default(),
            resync: Notify::new(),
            orphans: Notify::new(),
            tasks: Tasks::new(),
            state: RwLock::default(),
            synced: Mutex::new(false),
            now_synced: Condvar::new(),
            disk,
            options,
        };
        watch::load::<kinds::Pods>(&shared);
        watch::load::<kinds::Networks>(&shared);
        watch::load::<kinds::Nads>(&shared);
        watch::load::<kinds::Blocks>(&shared);
        watch::load::<kinds::Nodes>(&shared);
        watch::load::<kinds::Namespaces>(&shared);
        watch::load::<MultiNics>(&shared);
        watch::load::<Successors>(&shared);
        watch::load::<kinds::ApiServers>(&shared);
        shared
    }

    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks of a network that this node may issue from.
    pub(super) fn node_blocks(&self, network_uid: &str) -> NodeBlocks {
        let state = self.state();
        NodeBlocks {
            own: self.blocks.of(&state, &self.options.node, network_uid),
            donated: self.blocks.apart(&state, network_uid),
        }
    }

    /// Tells everyone that objects of a kind have changed: those who wait for a network, and the agent.
    pub(super) fn changed<K: Kind>(&self) {
        if K::RESOLVED {
            self.changes.note();
        }
        self.notify(K::NOTICES);
    }

    pub(super) fn notify(&self, what: &[Change]) {
        for change in what {
            self.hooks.changed(*change);
        }
    }

    pub(super) fn is_synced(&self) -> bool {
        *self.synced()
    }

    pub(super) fn wait_synced(&self, timeout: Duration) -> bool {
        let waited = self
            .now_synced
            .wait_timeout_while(self.synced(), timeout, |synced| !*synced);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn check_synced(&self) {
        if self.is_synced() || !self.state().is_listed(&self.options.node) {
            return;
        }
        self.disk.set_complete();
        self.set_synced("what the cluster says of its networks is known");
        self.notify(&[Change::Networks, Change::Fabric]);
    }

    fn set_synced(&self, why: &str) {
        self.blocks.adopt(self);
        *self.synced() = true;
        self.now_synced.notify_all();
        tracing::info!("{why}");
    }

    fn synced(&self) -> MutexGuard<'_, bool> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Believes the disk if the API stays away at the start, and writes what changed to it.
pub(super) struct DiskCache {
    shared: Arc<Shared>,
    start: Instant,
    complete: bool,
}

impl DiskCache {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            start: Instant::now(),
            complete: shared.disk.is_complete(),
            shared: Arc::clone(shared),
        }
    }
}

impl Work for DiskCache {
    async fn woken(&self) -> Woken {
        if !self.shared.is_synced() {
            std::future::pending().await
        }
        // What changes together is written together.
        let woken = Woken::by(&self.shared.disk.changed).await;
        woken.delayed(FLUSH_INTERVAL)
    }

    async fn pass(&mut self, _: Reason) -> Result<Next, String> {
        let shared = &self.shared;
        shared.disk.flush();
        let timeout = match shared.state().is_reached() {
            true => INCOMPLETE_TIMEOUT,
            false => UNREACHED_TIMEOUT,
        };
        // A Node that registers late completes what was listed without a further list.
        shared.check_synced();
        if self.complete && !shared.is_synced() && self.start.elapsed() >= timeout {
            shared
                .set_synced("the API server is away: serving from what it said before the restart");
            shared.notify(&[Change::Networks, Change::Fabric]);
        }
        Ok(match shared.is_synced() {
            true => Next::WOKEN,
            false => Next::After(FLUSH_INTERVAL),
        })
    }
}
