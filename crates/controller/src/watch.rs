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
    let mut stream = watches.watch(api, ListParams::default()).boxed();
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
