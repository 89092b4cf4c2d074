//! Events are news: after an hour without a change they go.

use crate::clock;
use crate::store::{Key, Part};
use crate::verbs::Api;
use std::sync::Arc;

/// How long an event stays after its last change, in seconds.
const EVENTS: i64 = 3600;
/// Events that go at a time.
const TOGETHER: usize = 512;

/// Deletes Events that nobody has touched for an hour.
pub(super) async fn sweep(api: &Arc<Api>) {
    let table = api
        .kinds
        .get("", "v1", "events")
        .and_then(|kind| api.store.table(kind));
    let Some(table) = table else { return };
    let before = clock::seconds() - EVENTS;
    let (events, _) = api.store.list(table, Part::default());
    let old = events.iter().filter(|event| event.written < before);
    let old: Vec<Key> = old.map(|event| event.key.clone()).collect();
    for some in old.chunks(TOGETHER) {
        let some = some.to_vec();
        let removed = api.store.write(move |changes| {
            for key in &some {
                let still = changes
                    .get(table, key)
                    .filter(|event| event.written < before);
                if still.is_some() {
                    let _ = changes.remove(table, key)?;
                }
            }
            Ok(())
        });
        if let Err(refused) = removed.await {
            tracing::warn!(%refused, "old events stay for now");
            return;
        }
    }
}
