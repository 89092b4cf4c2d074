//! The watches: what the API server says of each kind, as [`News`]. Each goes on until it is
//! dropped; failures are logged and waited out, and never lose what was known. After any failure the
//! kind is listed again: a server that was restored from a backup counts its versions anew, and to go
//! on from an old one would miss changes. Not every watch fails when a server goes: some just end and go on, and of
//! those whose way to it was cut, nobody hears that they are over. So where one cannot reach the server, and when one
//! that did not answer does again ([`mind_the_server`]), all list again.

use crate::world::{News, View, name_of};
use futures::StreamExt;
use kube::runtime::watcher::{self, Error, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;

/// How a kind is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing works without it.
    Must,
    /// If the cluster does not have it, or we may not see it, there are none.
    May,
}

/// Between two looks at a kind that is not there.
const ABSENT: Duration = Duration::from_secs(60);
/// Between two looks at the server, and how long its answer may take.
const LOOK: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(3);

/// What all watches of a server have in common.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    /// Whoever hears their news.
    news: Sender<News>,
    /// Counts how often the server was lost.
    lost: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn new(news: Sender<News>) -> Self {
        let (lost, _) = watch::channel(0);
        Self { news, lost }
    }

    fn list_again(&self) {
        self.lost.send_modify(|times| *times += 1);
    }
}

/// Asks the server now and then whether it is there; when it is again, all watches list again. Never ends.
pub(crate) async fn mind_the_server(client: Client, shared: Shared) {
    let mut away = false;
    loop {
        tokio::time::sleep(LOOK).await;
        let asked = tokio::time::timeout(PATIENCE, client.apiserver_version()).await;
        let answers = matches!(asked, Ok(Ok(_)));
        if answers && away {
            tracing::info!("the API server answers again: everything is listed again");
            shared.list_again();
        }
        away = !answers;
    }
}

/// Watches one kind until nobody listens.
pub(crate) async fn watch<V>(
    kind: &'static str,
    api: Api<V::Object>,
    need: Need,
    wrap: fn(Event<(crate::world::Name, V)>) -> News,
    shared: Shared,
) where
    V: View,
    V::Object: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let new = || watcher(api.clone(), watcher::Config::default());
    let mut stream = std::pin::pin!(new());
    let mut pauses = Pauses::default();
    let (mut begun, mut absent) = (false, false);
    let mut lost = shared.lost.subscribe();
    loop {
        let item = tokio::select! {
            item = stream.next() => item,
            _ = lost.changed(), if begun => {
                tokio::time::sleep(pauses.next()).await;
                stream.set(new());
                continue;
            }
        };
        let Some(item) = item else { return };
        let events = match item {
            Ok(event) => {
                if matches!(event, Event::InitDone) {
                    begun = true;
                    pauses.reset();
                }
                vec![view::<V>(event)]
            }
            Err(error) if !begun && need == Need::May && is_absent(&error) => {
                if absent {
                    // It may come: one request now and then.
                    tokio::time::sleep(ABSENT).await;
                    continue;
                }
                absent = true;
                tracing::info!(kind, %error, "not there for us: there are none");
                vec![Event::Init, Event::InitDone]
            }
            Err(error) => {
                tracing::warn!(kind, %error, "cannot watch: trying again");
                if begun && pauses.is_reset() && is_lost(&error) {
                    shared.list_again();
                    // This one does anyway.
                    lost.mark_unchanged();
                }
                tokio::time::sleep(pauses.next()).await;
                stream.set(new());
                Vec::new()
            }
        };
        for event in events {
            if shared.news.send(wrap(event)).await.is_err() {
                return;
            }
        }
    }
}

/// Pauses after failures: short enough that an API server that is back is noticed at once, and the
/// one controller of a cluster is no burden to it.
#[derive(Default)]
struct Pauses(u32);

impl Pauses {
    fn next(&mut self) -> Duration {
        let pause = Duration::from_millis(200).saturating_mul(1 << self.0.min(5));
        self.0 = self.0.saturating_add(1);
        pause.min(Duration::from_secs(3))
    }

    fn reset(&mut self) {
        self.0 = 0;
    }

    fn is_reset(&self) -> bool {
        self.0 == 0
    }
}

fn view<V: View>(event: Event<V::Object>) -> Event<(crate::world::Name, V)> {
    let both = |object: V::Object| (name_of(&object), V::of(object));
    match event {
        Event::Apply(object) => Event::Apply(both(object)),
        Event::Delete(object) => Event::Delete(both(object)),
        Event::InitApply(object) => Event::InitApply(both(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// Whether the server was not reached, or broke off.
fn is_lost(error: &Error) -> bool {
    let inner = match error {
        Error::InitialListFailed(inner) | Error::WatchStartFailed(inner) => inner,
        Error::WatchFailed(_) => return true,
        _ => return false,
    };
    !matches!(inner, kube::Error::Api(_))
}

/// Whether the API server said that there is no such kind for us.
fn is_absent(error: &Error) -> bool {
    let inner = match error {
        Error::InitialListFailed(inner) | Error::WatchStartFailed(inner) => inner,
        _ => return false,
    };
    matches!(inner, kube::Error::Api(status) if status.code == 403 || status.code == 404)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Notify;
    use tower::service_fn;

    /// A server that goes and comes back from a backup: the watch of Networks just ends, and the next one is at a
    /// version that the server has not reached; the watch of Nodes breaks.
    #[derive(Default)]
    struct Restored {
        lists: AtomicU32,
        watches: AtomicU32,
        waits: Notify,
    }

    impl Restored {
        async fn answer(&self, request: Request<Body>) -> io::Result<Response<Body>> {
            let query = request.uri().query().unwrap_or_default();
            let watches = query.contains("watch=true");
            let networks = request.uri().path().ends_with("/networks");
            match (networks, watches) {
                (true, true) if self.watches.fetch_add(1, Ordering::Relaxed) == 0 => {
                    return Ok(Response::new(Body::empty()));
                }
                (true, true) => {
                    self.waits.notify_one();
                    return std::future::pending().await;
                }
                (false, true) => {
                    self.waits.notified().await;
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                (true, false) => drop(self.lists.fetch_add(1, Ordering::Relaxed)),
                (false, false) => {}
            }
            let empty = r#"{"metadata": {"resourceVersion": "7"}, "items": []}"#;
            Ok(Response::new(Body::from(empty.as_bytes().to_vec())))
        }
    }

    #[tokio::test]
    async fn where_one_loses_the_server_all_list_again() {
        let server = Arc::new(Restored::default());
        let asked = Arc::clone(&server);
        let client = Client::new(
            service_fn(move |request| {
                let asked = Arc::clone(&asked);
                async move { asked.answer(request).await }
            }),
            "default",
        );
        let (news, mut heard) = tokio::sync::mpsc::channel(64);
        let shared = Shared::new(news);
        let (networks, nodes) = (Api::all(client.clone()), Api::all(client));
        let both = async {
            tokio::join!(
                watch(
                    "Networks",
                    networks,
                    Need::Must,
                    News::Network,
                    shared.clone()
                ),
                watch("Nodes", nodes, Need::Must, News::Node, shared.clone()),
                async { while heard.recv().await.is_some() {} },
            )
        };
        let again = async {
            while server.lists.load(Ordering::Relaxed) < 2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            _ = both => panic!("a watch has ended"),
            listed = tokio::time::timeout(Duration::from_secs(60), again) => {
                listed.expect("Networks are listed again");
            }
        }
    }

    /// One whose watches are silent for ever, and which does not answer for a while.
    #[derive(Default)]
    struct CutOff {
        lists: AtomicU32,
        asked: AtomicU32,
    }

    impl CutOff {
        async fn answer(&self, request: Request<Body>) -> io::Result<Response<Body>> {
            let query = request.uri().query().unwrap_or_default();
            if query.contains("watch=true") {
                return std::future::pending().await;
            }
            if request.uri().path() == "/version" {
                if self.asked.fetch_add(1, Ordering::Relaxed) == 1 {
                    return Err(io::ErrorKind::HostUnreachable.into());
                }
                let text = r#"{"major": "1", "minor": "1", "gitVersion": "v1.1.0", "gitCommit": "",
                    "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}"#;
                return Ok(Response::new(Body::from(text.as_bytes().to_vec())));
            }
            self.lists.fetch_add(1, Ordering::Relaxed);
            let empty = r#"{"metadata": {"resourceVersion": "7"}, "items": []}"#;
            Ok(Response::new(Body::from(empty.as_bytes().to_vec())))
        }
    }

    #[tokio::test]
    async fn when_the_server_answers_again_all_list_again() {
        let server = Arc::new(CutOff::default());
        let asked = Arc::clone(&server);
        let ask = service_fn(move |request| {
            let asked = Arc::clone(&asked);
            async move { asked.answer(request).await }
        });
        let client = Client::new(ask, "default");
        let (news, mut heard) = tokio::sync::mpsc::channel(64);
        let shared = Shared::new(news);
        let all = async {
            tokio::join!(
                watch(
                    "Networks",
                    Api::all(client.clone()),
                    Need::Must,
                    News::Network,
                    shared.clone()
                ),
                mind_the_server(client.clone(), shared.clone()),
                async { while heard.recv().await.is_some() {} },
            )
        };
        let again = async {
            while server.lists.load(Ordering::Relaxed) < 2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            _ = all => panic!("a watch has ended"),
            listed = tokio::time::timeout(Duration::from_secs(60), again) => {
                listed.expect("Networks are listed again");
            }
        }
    }
}
