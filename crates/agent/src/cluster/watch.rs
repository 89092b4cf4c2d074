//! Follows one kind: what the watch brings goes into the cache. When a kind is listed again is `plexus_client`'s
//! business.

use super::api::{self, error_text};
use super::kinds::{Edit, Kind, key_of};
use super::shared::Shared;
use super::state::Origin;
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::Resource;
use kube::runtime::watcher::Event;
use plexus_client::{WatchError, Watches};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// A watch that has lasted so long is sound: the next failure is waited out as the first one.
const HEALTHY: Duration = Duration::from_secs(5);
/// How often a kind that is not defined is looked for, and how often trouble is logged.
const NOT_DEFINED: Duration = Duration::from_secs(5);
const LOG: Duration = Duration::from_secs(60);

pub(super) async fn follow<K: Kind>(shared: Arc<Shared>, watches: Watches) {
    let select = K::select(&shared.options.node);
    let mut events = watches.watch(api::all(&shared.client), select).boxed();
    let mut pause = SHORTEST;
    let mut logged: Option<Instant> = None;
    while let Some((error, lasted)) = until_error::<K>(&shared, &mut events).await {
        if lasted >= HEALTHY {
            pause = SHORTEST;
        }
        if error.refusal() == Some(404) && K::OPTIONAL {
            replace::<K>(&shared, BTreeMap::new());
            sleep(NOT_DEFINED).await;
            continue;
        }
        K::store(&mut shared.state_mut()).live = false;
        if logged.is_none_or(|at| at.elapsed() >= LOG) {
            logged = Some(Instant::now());
            let error = text_of(&error);
            tracing::warn!(kind = K::NAME, error, "cannot watch; trying again");
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Takes an object that an answer brought, as the watch will bring it; not if the watch has said
/// something newer, that it is gone for example.
pub(super) fn take<K: Kind>(shared: &Shared, wire: K::Wire) {
    let origin = Origin::of(wire.meta());
    let outdated = K::store(&mut shared.state_mut()).is_outdated(&key_of::<K>(&wire), origin);
    if !outdated {
        apply::<K>(shared, wire);
    }
}

fn apply<K: Kind>(shared: &Shared, wire: K::Wire) {
    let key = key_of::<K>(&wire);
    K::store(&mut shared.state_mut()).comes(&key, Origin::of(wire.meta()));
    let before = K::store(&mut shared.state_mut()).get(&key);
    let after = read::<K>(wire, before.as_deref());
    if change::<K>(shared, &key, after) {
        shared.changed::<K>();
    }
}

/// Forgets an object, as the watch will say.
pub(super) fn forget<K: Kind>(shared: &Shared, key: &str) {
    if change::<K>(shared, key, None) {
        shared.changed::<K>();
    }
}

pub(super) fn load<K: Kind>(shared: &Shared) {
    let rows = shared.disk.rows(K::NAME);
    let mut state = shared.state_mut();
    let store = K::store(&mut state);
    for (key, body) in rows {
        let Ok(wire) = serde_json::from_str::<K::Wire>(&body) else {
            continue;
        };
        if let Some(cached) = K::cache(&wire).or_else(|| K::cache_unreadable(&wire, None)) {
            store.comes(&key, Origin::of(wire.meta()));
            store.put(&key, Arc::new(cached));
        }
    }
}

/// One is deleted; not the one that has its name now.
fn deleted<K: Kind>(shared: &Shared, wire: &K::Wire) {
    let key = key_of::<K>(wire);
    let another = K::store(&mut shared.state_mut()).is_another(&key, Origin::of(wire.meta()));
    if !another {
        forget::<K>(shared, &key);
    }
}

/// What is kept of an object, and its row on disk; none: the row stays.
type Read<K> = (<K as Kind>::Cached, Option<String>);

/// What was listed; none: as it was.
type Fresh<K> = BTreeMap<String, (Origin, Option<Read<K>>)>;

type Events<K> = BoxStream<'static, Result<Event<<K as Kind>::Wire>, WatchError>>;

/// Takes events until there is an error, and says how long it went well after the list; none: the watch has ended,
/// which it never does.
async fn until_error<K: Kind>(
    shared: &Shared,
    events: &mut Events<K>,
) -> Option<(WatchError, Duration)> {
    let mut fresh: Option<Fresh<K>> = None;
    let mut listed: Option<Instant> = None;
    loop {
        match events.next().await? {
            Ok(Event::Init) => fresh = Some(BTreeMap::new()),
            Ok(Event::InitApply(wire)) => {
                let (key, origin) = (key_of::<K>(&wire), Origin::of(wire.meta()));
                let known = K::store(&mut shared.state_mut()).get(&key);
                let read = read::<K>(wire, known.as_deref());
                if let (Some(fresh), Some(cached)) = (&mut fresh, read) {
                    let same = known.is_some_and(|known| *known == cached.0);
                    fresh.insert(key, (origin, (!same).then_some(cached)));
                }
            }
            Ok(Event::InitDone) => {
                listed = Some(Instant::now());
                replace::<K>(shared, fresh.take().unwrap_or_default());
            }
            Ok(Event::Apply(wire)) => apply::<K>(shared, wire),
            Ok(Event::Delete(wire)) => deleted::<K>(shared, &wire),
            Err(error) => {
                let lasted = listed.map(|at| at.elapsed()).unwrap_or_default();
                return Some((error, lasted));
            }
        }
    }
}

/// One that cannot be read leaves what is known of it, on disk too.
fn read<K: Kind>(mut wire: K::Wire, before: Option<&K::Cached>) -> Option<Read<K>> {
    K::trim(&mut wire);
    let readable = K::cache(&wire);
    let keeps_row = readable.is_none() && before.is_some();
    if readable.is_none() {
        let object = key_of::<K>(&wire);
        tracing::warn!(
            kind = K::NAME,
            object,
            "cannot be read: of no use to new pods"
        );
    }
    let cached = readable.or_else(|| K::cache_unreadable(&wire, before))?;
    let body = match K::ON_DISK && !keeps_row {
        true => Some(serde_json::to_string(&wire).ok()?),
        false => None,
    };
    Some((cached, body))
}

fn change<K: Kind>(shared: &Shared, key: &str, after: Option<Read<K>>) -> bool {
    let before = K::store(&mut shared.state_mut()).get(key);
    let same = match (&before, &after) {
        (Some(before), Some((after, _))) => **before == *after,
        (None, None) => true,
        _ => false,
    };
    if same {
        return false;
    }
    let (after, body) = match after {
        Some((after, body)) => (Some(Arc::new(after)), body),
        None => (None, None),
    };
    {
        let mut state = shared.state_mut();
        let store = K::store(&mut state);
        match &after {
            Some(after) => store.put(key, Arc::clone(after)),
            None => store.remove(key),
        }
    }
    if K::ON_DISK && (body.is_some() || after.is_none()) {
        shared.disk.put(K::NAME, key, body);
    }
    let (before, after) = (before.as_deref(), after.as_deref());
    K::changed(shared, Edit { key, before, after });
    true
}

/// What was listed is all there is.
fn replace<K: Kind>(shared: &Shared, fresh: Fresh<K>) {
    let gone: Vec<String> = {
        let mut state = shared.state_mut();
        let known = K::store(&mut state).objects.keys();
        known
            .filter(|key| !fresh.contains_key(*key))
            .cloned()
            .collect()
    };
    let mut changed = false;
    for key in gone {
        changed |= change::<K>(shared, &key, None);
    }
    for (key, (origin, cached)) in fresh {
        K::store(&mut shared.state_mut()).comes(&key, origin);
        if let Some(cached) = cached {
            changed |= change::<K>(shared, &key, Some(cached));
        }
    }
    let first = {
        let mut state = shared.state_mut();
        let store = K::store(&mut state);
        store.live = true;
        !std::mem::replace(&mut store.listed, true)
    };
    shared.check_synced();
    K::listed(shared);
    if changed || first {
        shared.changed::<K>();
    }
}

fn text_of(error: &WatchError) -> String {
    match error {
        WatchError::List(error) | WatchError::Watch(error) => error_text(error),
        error => error.to_string(),
    }
}
