//! The loop of the one who leads: news into the caches, keys out of the queue, one at a time. A key
//! that fails is tried again, later each time; nothing ends the loop but the end of a watch.

use crate::act::{WrittenCidr, cluster_default};
use crate::api::{Cluster, Failure};
use crate::cache::{Cache, Name, NetworkView, Update, Work};
use crate::decide::first_seen::FirstSeen;
use crate::events::Events;
use crate::health::Readiness;
use crate::later;
use crate::metrics::Metrics;
use crate::queue::{Key, Queue};
use crate::watch::{Need, watch};
use crate::{ClusterNetwork, Error, Options};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::Api;
use kube::runtime::watcher::Event;
use plexus_client::Watches;
use plexus_types::chain;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

/// How many updates the channel holds. A full channel makes the watches wait.
const CHANNEL_CAPACITY: usize = 1024;
const COMPONENT: &str = "sync";

/// Everything that acting takes.
pub(crate) struct Engine {
    pub(crate) cluster: Cluster,
    pub(crate) options: Options,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) cache: Cache,
    pub(crate) queue: Queue,
    pub(crate) events: Events,
    /// Since when Nodes have been gone, by UID.
    pub(crate) gone: FirstSeen,
    /// Since when deleted networks have had no user, by UID.
    pub(crate) idle: FirstSeen,
    /// Since when the engine has known that no owner donated a part, by the UID of the part's Block.
    pub(crate) undonated: FirstSeen,
    /// The conditions of the cluster that the engine wrote last, as JSON.
    pub(crate) reported_conditions: Option<String>,
    /// The CIDRs of multi-NIC networks as they were written last, and when, by the network's UID.
    pub(crate) cidrs: BTreeMap<String, WrittenCidr>,
}

impl Engine {
    /// `reached` is where the API server is, as far as `client` knows.
    pub(crate) fn new(
        client: kube::Client,
        reached: &[IpAddr],
        options: Options,
        metrics: Arc<Metrics>,
    ) -> Self {
        let own = options.cluster_cidrs();
        let mut cache = Cache::default();
        cache.set_api_server(reached);
        cache.default_network = own.map(|_| cluster_default(&options.namespace));
        Engine {
            cluster: Cluster { client },
            events: Events::new(&options.identity),
            options,
            metrics,
            cache,
            queue: Queue::default(),
            gone: FirstSeen::default(),
            idle: FirstSeen::default(),
            undonated: FirstSeen::default(),
            reported_conditions: None,
            cidrs: BTreeMap::new(),
        }
    }

    /// Acts until it is dropped.
    pub(crate) async fn run(mut self, readiness: &Readiness) -> Error {
        let (sender, mut updates) = channel(CHANNEL_CAPACITY);
        let mut watches = self.watches(&sender);
        drop(sender);
        tokio::select! {
            kind = watches.next() => Error::WatchEnded(kind.unwrap_or("everything")),
            ended = self.work(&mut updates, readiness) => ended,
        }
    }

    async fn work(&mut self, updates: &mut Receiver<Update>, readiness: &Readiness) -> Error {
        while let incomplete @ [_, ..] = self.cache.incomplete(self.is_index_0()).as_slice() {
            readiness.not_yet(
                COMPONENT,
                format!("waits for the first list of {}", incomplete.join(", ")),
            );
            match updates.recv().await {
                Some(one) => self.take(one),
                None => return Error::WatchEnded("everything"),
            }
        }
        readiness.ready(COMPONENT);
        tracing::info!(
            networks = self.cache.networks.len(),
            nads = self.cache.nads.len(),
            nodes = self.cache.nodes.len(),
            "in sync"
        );
        let now = Instant::now();
        self.queue.add(Key::ClusterDefault, now);
        self.queue.add(Key::Cluster, now);
        self.queue.level(now);
        loop {
            while let Ok(one) = updates.try_recv() {
                self.take(one);
            }
            if let Some(key) = self.queue.next(Instant::now()) {
                self.handle(key).await;
                continue;
            }
            let wake = self
                .queue
                .wake()
                .unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            tokio::select! {
                one = updates.recv() => match one {
                    Some(one) => self.take(one),
                    None => return Error::WatchEnded("everything"),
                },
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    async fn handle(&mut self, key: Key) {
        let result = self.act(&key).await;
        let renew_at = self.events.next();
        self.metrics.queue.store(self.queue.len() as u64, Relaxed);
        match result {
            Ok(()) => {
                self.queue.succeeded(&key);
                if let Some(again) = renew_at {
                    self.queue.add(key, again);
                }
                self.metrics.handled.fetch_add(1, Relaxed);
            }
            Err(failure) => {
                let pause = self.queue.failed(key.clone(), Instant::now());
                self.metrics.failed.fetch_add(1, Relaxed);
                let error = chain(&failure);
                if matches!(failure, Failure::Changed { .. }) {
                    tracing::debug!(?key, %error, "trying again in {pause:?}");
                } else {
                    tracing::warn!(?key, %error, "trying again in {pause:?}");
                }
            }
        }
    }

    async fn act(&mut self, key: &Key) -> Result<(), Failure> {
        match key {
            Key::ClusterDefault => self.cluster_default().await,
            Key::Nad(name) => self.nad(name).await,
            Key::Network(name) => self.network(name).await,
            Key::Node(name) => self.node(name).await,
            Key::Orphans(uid) => self.orphans(uid).await,
            Key::MultiNic(name) => self.multi_nic(name).await,
            Key::MultiNicCidr(name) => self.multi_nic_cidr(name).await,
            Key::MultiNicOrphans(uid) => self.multi_nic_orphans(uid).await,
            Key::Policy(name) => self.policy(name).await,
            Key::Later(kind, name) => self.later(kind, name).await,
            Key::Cluster => self.write_cluster_status().await,
        }
    }

    /// Puts the answer to a write of ours where the watch will put it later.
    pub(crate) fn cache_network(&mut self, name: &Name, net: NetworkView) {
        self.take(Update::Network(Event::Apply((name.clone(), net))));
    }

    /// Again after this long.
    pub(crate) fn retry_after(&mut self, key: Key, delay: Duration) {
        self.queue.add(key, Instant::now() + delay);
    }

    /// Whether we serve index 0 ourselves.
    pub(crate) fn is_index_0(&self) -> bool {
        self.options.cluster_network == ClusterNetwork::Own
    }

    /// Puts the answer to another write there.
    pub(crate) fn feed(&mut self, update: Update) {
        self.take(update);
    }

    fn take(&mut self, updates: Update) {
        let work: Work = self.cache.feed(updates);
        let now = Instant::now();
        for (key, delay) in work {
            self.queue.add(key, now + delay);
        }
    }

    fn watches(&self, updates: &Sender<Update>) -> FuturesUnordered<Watch> {
        let client = || self.cluster.client.clone();
        let followed = Watches::default();
        let watches = FuturesUnordered::new();
        let add = |kind: &'static str, watch: Pin<Box<dyn Future<Output = ()> + Send>>| {
            let named: Watch = Box::pin(async move {
                watch.await;
                kind
            });
            watches.push(named);
        };
        macro_rules! kind {
            ($name:literal, $need:ident, $updates:expr) => {
                kind!($name, $need, $updates, Api::all(client()))
            };
            ($name:literal, $need:ident, $updates:expr, $api:expr) => {
                add(
                    $name,
                    Box::pin(watch(
                        $name,
                        $api,
                        Need::$need,
                        $updates,
                        followed.clone(),
                        updates.clone(),
                    )),
                )
            };
        }
        let (probed, server) = (followed.clone(), client());
        add(
            "the server",
            Box::pin(async move { probed.probe(server).await }),
        );
        kind!("NetworkAttachmentDefinitions", Must, Update::Nad);
        kind!("Networks", Must, Update::Network);
        kind!("Blocks", Must, Update::Block);
        kind!("BlockRequests", May, Update::Request);
        kind!("PodAttachments", Must, Update::Record);
        kind!("Nodes", Must, Update::Node);
        kind!("ServiceCIDRs", May, Update::Services);
        kind!("MultiNicNetworks", May, Update::MultiNic);
        kind!("HostInterfaces", May, Update::HostNics);
        kind!("Namespaces", May, Update::Namespace);
        // Of that namespace alone: we may see no others.
        let in_default = Api::namespaced(client(), "default");
        kind!("EndpointSlices", May, Update::ApiServers, in_default);
        if self.is_index_0() {
            kind!("NetworkPolicies", May, Update::Policy);
        }
        for kind in later::kinds() {
            add(
                kind.kind,
                Box::pin(later::follow(
                    client(),
                    kind,
                    followed.clone(),
                    updates.clone(),
                )),
            );
        }
        watches
    }
}

/// A watch; gives its kind when it ends.
type Watch = Pin<Box<dyn Future<Output = &'static str> + Send>>;
