//! The loop of the one who leads: news into the caches, keys out of the queue, one at a time. A key
//! that fails is tried again, later each time; nothing ends the loop but the end of a watch.

use crate::act::cluster_default;
use crate::api::{Cluster, Failure};
use crate::decide::since::Since;
use crate::events::Events;
use crate::health::Readiness;
use crate::later;
use crate::metrics::Metrics;
use crate::queue::{Key, Queue};
use crate::watch::{Need, watch};
use crate::world::{Name, Net, News, Work, World};
use crate::{ClusterNetwork, Error, Options};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::Api;
use kube::runtime::watcher::Event;
use plexus_client::Watches;
use plexus_types::chain;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

/// News that wait to be taken; a full channel makes the watches wait.
const NEWS: usize = 1024;
const WHO: &str = "sync";

/// Everything that acting takes.
pub(crate) struct Engine {
    pub(crate) cluster: Cluster,
    pub(crate) options: Options,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) world: World,
    pub(crate) queue: Queue,
    pub(crate) events: Events,
    /// Since when Nodes have been gone, by UID.
    pub(crate) gone: Since,
    /// Since when deleted networks have had no user, by UID.
    pub(crate) idle: Since,
    /// Since when we know that parts of blocks were not given, by the UID of their Block.
    pub(crate) void: Since,
    /// What was last said of the cluster as a whole.
    pub(crate) said: Option<String>,
}

impl Engine {
    pub(crate) fn new(client: kube::Client, options: Options, metrics: Arc<Metrics>) -> Self {
        let own = options.cluster_cidrs();
        let mut world = World::default();
        world.own = own.map(|_| cluster_default(&options.namespace));
        Engine {
            cluster: Cluster { client },
            events: Events::new(&options.identity),
            options,
            metrics,
            world,
            queue: Queue::default(),
            gone: Since::default(),
            idle: Since::default(),
            void: Since::default(),
            said: None,
        }
    }

    /// Acts until it is dropped.
    pub(crate) async fn run(mut self, readiness: &Readiness) -> Error {
        let (sender, mut news) = channel(NEWS);
        let mut watches = self.watches(&sender);
        drop(sender);
        tokio::select! {
            kind = watches.next() => Error::WatchEnded(kind.unwrap_or("everything")),
            ended = self.work(&mut news, readiness) => ended,
        }
    }

    async fn work(&mut self, news: &mut Receiver<News>, readiness: &Readiness) -> Error {
        while let incomplete @ [_, ..] = self.world.incomplete(self.is_index_0()).as_slice() {
            readiness.not_yet(
                WHO,
                format!("waits for the first list of {}", incomplete.join(", ")),
            );
            match news.recv().await {
                Some(one) => self.take(one),
                None => return Error::WatchEnded("everything"),
            }
        }
        readiness.ready(WHO);
        tracing::info!(
            networks = self.world.networks.len(),
            nads = self.world.nads.len(),
            nodes = self.world.nodes.len(),
            "in sync"
        );
        let now = Instant::now();
        self.queue.add(Key::ClusterDefault, now);
        self.queue.add(Key::Cluster, now);
        self.queue.level(now);
        loop {
            while let Ok(one) = news.try_recv() {
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
                one = news.recv() => match one {
                    Some(one) => self.take(one),
                    None => return Error::WatchEnded("everything"),
                },
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    async fn handle(&mut self, key: Key) {
        let result = self.act(&key).await;
        let said = self.events.next();
        self.metrics.queue.store(self.queue.len() as u64, Relaxed);
        match result {
            Ok(()) => {
                self.queue.succeeded(&key);
                if let Some(again) = said {
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
            Key::Policy(name) => self.policy(name).await,
            Key::Later(kind, name) => self.later(kind, name).await,
            Key::Cluster => self.say_cluster().await,
        }
    }

    /// Puts the answer to a write of ours where the watch will put it later.
    pub(crate) fn learn(&mut self, name: &Name, net: Net) {
        self.take(News::Network(Event::Apply((name.clone(), net))));
    }

    /// Again after this long.
    pub(crate) fn again_after(&mut self, key: Key, delay: Duration) {
        self.queue.add(key, Instant::now() + delay);
    }

    /// Whether we serve index 0 ourselves.
    pub(crate) fn is_index_0(&self) -> bool {
        self.options.cluster_network == ClusterNetwork::Own
    }

    fn take(&mut self, news: News) {
        let work: Work = self.world.feed(news);
        let now = Instant::now();
        for (key, delay) in work {
            self.queue.add(key, now + delay);
        }
    }

    fn watches(&self, news: &Sender<News>) -> FuturesUnordered<Watch> {
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
            ($name:literal, $need:ident, $news:expr) => {
                add(
                    $name,
                    Box::pin(watch(
                        $name,
                        Api::all(client()),
                        Need::$need,
                        $news,
                        followed.clone(),
                        news.clone(),
                    )),
                )
            };
        }
        let (probed, server) = (followed.clone(), client());
        add(
            "the server",
            Box::pin(async move { probed.probe(server).await }),
        );
        kind!("NetworkAttachmentDefinitions", Must, News::Nad);
        kind!("Networks", Must, News::Network);
        kind!("Blocks", Must, News::Block);
        kind!("BlockRequests", May, News::Request);
        kind!("PodAttachments", Must, News::Record);
        kind!("Nodes", Must, News::Node);
        kind!("ServiceCIDRs", May, News::Services);
        if self.is_index_0() {
            kind!("NetworkPolicies", May, News::Policy);
        }
        for kind in later::kinds() {
            add(
                kind.kind,
                Box::pin(later::follow(
                    client(),
                    kind,
                    followed.clone(),
                    news.clone(),
                )),
            );
        }
        watches
    }
}

/// A watch; gives its kind when it ends.
type Watch = Pin<Box<dyn Future<Output = &'static str> + Send>>;
