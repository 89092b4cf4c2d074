//! The watches: what the API server says of each kind, as [`Update`]. Each goes on until it is dropped; failures are
//! logged and waited out, and never lose what was known. When a kind is listed again is `plexus_client`'s business.

use crate::cache::{Update, View, name_of};
use futures::StreamExt;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher::Event;
use plexus_client::{WatchError, Watchable, Watches};
use plexus_types::chain;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;

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
/// Users may write a megabyte into an object: so many are read at once.
pub(crate) const PAGE: u32 = 50;
/// A watch that has lasted so long is sound.
const HEALTHY: Duration = Duration::from_secs(5);

/// Watches one kind until nobody listens.
pub(crate) async fn watch<V>(
    kind: &'static str,
    api: Api<V::Object>,
    need: Need,
    wrap: fn(Event<(crate::cache::Name, V)>) -> Update,
    watches: Watches,
    updates: Sender<Update>,
) where
    V: View,
    V::Object: Watchable,
{
    let mut stream = watches
        .watch(api, ListParams::default().limit(PAGE))
        .boxed();
    let mut pauses = Pauses::default();
    let (mut begun, mut absent) = (false, false);
    let mut listed: Option<Instant> = None;
    while let Some(item) = stream.next().await {
        let events = match item {
            Ok(event) => {
                if matches!(event, Event::InitDone) {
                    begun = true;
                    listed = Some(Instant::now());
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
                let error = chain(&error);
                tracing::info!(kind, error, "not there for us: there are none");
                vec![Event::Init, Event::InitDone]
            }
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(kind, error, "cannot watch: trying again");
                // One that fails right after its list may do so each time.
                if listed.take().is_some_and(|at| at.elapsed() >= HEALTHY) {
                    pauses.reset();
                }
                tokio::time::sleep(pauses.next()).await;
                Vec::new()
            }
        };
        for event in events {
            if updates.send(wrap(event)).await.is_err() {
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
}

fn view<V: View>(event: Event<V::Object>) -> Event<(crate::cache::Name, V)> {
    let both = |object: V::Object| (name_of(&object), V::of(object));
    match event {
        Event::Apply(object) => Event::Apply(both(object)),
        Event::Delete(object) => Event::Delete(both(object)),
        Event::InitApply(object) => Event::InitApply(both(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// Whether the API server said that there is no such kind for us.
fn is_absent(error: &WatchError) -> bool {
    matches!(error.refusal(), Some(403 | 404))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::NadView;
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tower::service_fn;

    /// How many there are.
    const MANY: usize = 120;

    /// A page of the list, as large as is asked for.
    fn page(query: &str) -> Value {
        let number = |key: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(name, _)| *name == key)?
                .1
                .parse::<usize>()
                .ok()
        };
        let first = number("continue").unwrap_or(0);
        let end = (first + number("limit").unwrap_or(MANY)).min(MANY);
        let nad = |number: usize| {
            json!({"metadata": {"name": format!("nad-{number}"), "namespace": "team-a", "resourceVersion": "5"},
                "spec": {"config": ""}})
        };
        let items: Vec<Value> = (first..end).map(nad).collect();
        let more = if end < MANY {
            end.to_string()
        } else {
            String::new()
        };
        json!({"metadata": {"resourceVersion": "9", "continue": more}, "items": items})
    }

    /// The controller has memory for a page of the largest objects, not for more.
    #[tokio::test]
    async fn large_objects_are_read_a_few_at_a_time() {
        let largest = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&largest);
        let server = service_fn(move |request: http::Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            let list = page(query);
            if !query.contains("watch=") {
                seen.fetch_max(list["items"].as_array().map_or(0, Vec::len), Relaxed);
            }
            let answer = http::Response::new(Body::from(list.to_string().into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let api = Api::all(Client::new(server, "default"));
        let (updates, mut told) = tokio::sync::mpsc::channel(1);
        let watch = watch::<NadView>(
            "NetworkAttachmentDefinition",
            api,
            Need::Must,
            Update::Nad,
            Watches::default(),
            updates,
        );
        let count = async {
            let mut count = 0;
            while let Some(Update::Nad(event)) = told.recv().await {
                match event {
                    Event::InitApply(_) => count += 1,
                    Event::InitDone => break,
                    _ => {}
                }
            }
            count
        };
        let all = tokio::select! {
            () = watch => 0,
            all = count => all,
        };
        assert_eq!((all, largest.load(Relaxed)), (MANY, PAGE as usize));
    }
}
