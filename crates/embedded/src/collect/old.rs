//! Events are news: after an hour without a change they go. What counts is when they were written here, not
//! what they say of themselves.

use crate::store::{Key, ListScope};
use crate::verbs::Api;
use std::sync::Arc;

/// How long an event stays after its last change, in seconds.
const EVENT_TTL_SECONDS: i64 = 3600;
/// Events that go at a time.
const BATCH: usize = 512;

/// Deletes Events that nobody has touched for an hour; `now` is in seconds since 1970.
pub(super) async fn sweep(api: &Arc<Api>, now: i64) {
    let table = api
        .kinds
        .get("", "v1", "events")
        .and_then(|kind| api.store.table(kind));
    let Some(table) = table else { return };
    let before = now - EVENT_TTL_SECONDS;
    let (events, _) = api.store.list(table, ListScope::default());
    let old = events.iter().filter(|event| event.written < before);
    let old: Vec<Key> = old.map(|event| event.key.clone()).collect();
    for some in old.chunks(BATCH) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::kinds::Kinds;
    use crate::options::Options;
    use crate::stop::Stopper;
    use crate::store::{Store, Table, TempDir};
    use serde_json::{Value, json};
    use std::time::Duration;

    fn open(dir: &TempDir) -> (Arc<Api>, Table) {
        let kinds = Kinds::builtin().unwrap();
        let store = Store::open(&dir.file(), &kinds, 1000).unwrap();
        let table = store.table(kinds.get("", "v1", "events").unwrap()).unwrap();
        let options = Options::new("nowhere", kinds);
        let (_, stop) = Stopper::new();
        (Arc::new(Api::new(store, &options, stop).unwrap()), table)
    }

    /// Writes Events, all at the same time; gives that time.
    async fn put(api: &Api, table: Table, events: Vec<(&'static str, Value)>) -> i64 {
        let written = api.store.write(move |changes| {
            for (name, mut event) in events {
                event["metadata"]["name"] = name.into();
                event["metadata"]["namespace"] = "default".into();
                let _ = changes.put(table, &Key::new("default", name), event)?;
            }
            Ok(changes.now())
        });
        written.await.unwrap()
    }

    fn names(api: &Api, table: Table) -> Vec<String> {
        let (events, _) = api.store.list(table, ListScope::default());
        let names = events.iter().map(|event| event.key.name().to_owned());
        names.collect()
    }

    /// What an Event may say of its time: in every field that there is for that, or in one alone.
    fn saying(time: &str) -> [Value; 3] {
        [
            json!({"lastTimestamp": time, "eventTime": time, "metadata": {"creationTimestamp": time}}),
            json!({"eventTime": time, "metadata": {"creationTimestamp": time}}),
            json!({"metadata": {"creationTimestamp": time}}),
        ]
    }

    #[tokio::test]
    async fn what_nobody_has_written_for_an_hour_goes() {
        let dir = TempDir::new("old");
        let (api, table) = open(&dir);
        // Those that will be too old say that they are of the future, the young ones that they are ancient.
        let [all, event, made] = saying("2999-01-01T00:00:00Z");
        let again = ("repeated", all.clone());
        let old = vec![("old-all", all), ("old-event", event), ("old-made", made)];
        let first = put(&api, table, [old, vec![again.clone()]].concat()).await;
        while clock::seconds() <= first {
            std::thread::sleep(Duration::from_millis(10));
        }
        let [all, event, made] = saying("1971-01-01T00:00:00Z");
        let young = vec![
            ("young-all", all),
            ("young-event", event),
            ("young-made", made),
        ];
        let second = put(&api, table, [young, vec![again]].concat()).await;
        assert!(first < second);

        sweep(&api, first + EVENT_TTL_SECONDS).await;
        assert_eq!(
            names(&api, table).len(),
            7,
            "an hour to the second is not too long"
        );
        sweep(&api, first + EVENT_TTL_SECONDS + 1).await;
        assert_eq!(
            names(&api, table),
            ["repeated", "young-all", "young-event", "young-made"]
        );
        sweep(&api, second + EVENT_TTL_SECONDS + 1).await;
        assert_eq!(names(&api, table), Vec::<String>::new());
    }
}
