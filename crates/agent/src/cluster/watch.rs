//! Follows one kind: what the watch brings goes into the cache. When a kind is listed again is `plexus_client`'s
//! business.

use super::api::error_text;
use super::kinds::{Edit, Kind, key_of};
use super::shared::Shared;
use super::state::Origin;
use crate::background::backoff::Backoff;
use crate::background::progress::Reason;
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::Resource;
use kube::runtime::watcher::Event;
use plexus_client::{WatchError, Watches};
use plexus_core::resolve::too_large;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);
/// A watch that has lasted so long is sound: the next failure is waited out as the first one.
const HEALTHY: Duration = Duration::from_secs(5);
/// How often a kind that is not defined is looked for, and how often trouble is logged.
const NOT_DEFINED: Duration = Duration::from_secs(5);
const LOG: Duration = Duration::from_secs(60);

pub(super) async fn follow<K: Kind>(shared: Arc<Shared>, watches: Watches) {
    let select = K::select(&shared.options.node);
    let mut events = watches.watch(K::api(&shared.client), select).boxed();
    let mut backoff = Backoff::between(SHORTEST, LONGEST);
    let mut logged: Option<Instant> = None;
    while let Some((error, lasted)) = until_error::<K>(&shared, &mut events).await {
        if lasted >= HEALTHY {
            backoff.keep_only(|()| false);
        }
        if error.refusal() == Some(404) && K::OPTIONAL {
            replace::<K>(&shared, BTreeMap::new());
            sleep(NOT_DEFINED).await;
            continue;
        }
        K::store(&mut shared.state_mut()).live = false;
        shared.tasks.watches.count(Reason::Event, false);
        if logged.is_none_or(|at| at.elapsed() >= LOG) {
            logged = Some(Instant::now());
            let error = text_of(&error);
            tracing::warn!(kind = K::NAME, error, "cannot watch; trying again");
        }
        let until = backoff.put_off(&(), Instant::now().into_std());
        sleep_until(until.into()).await;
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
    let (before, others) = {
        let mut state = shared.state_mut();
        let store = K::store(&mut state);
        store.comes(&key, Origin::of(wire.meta()));
        (store.get(&key), store.size_of_others(&key))
    };
    let after = read::<K>(wire, before.as_deref(), others);
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
        let Ok(mut wire) = serde_json::from_str::<K::Wire>(&body) else {
            continue;
        };
        let size = bound::<K>(&mut wire, store.size_of_others(&key));
        if let Some(cached) = K::cache(&wire).or_else(|| K::cache_unreadable(&wire, None)) {
            store.comes(&key, Origin::of(wire.meta()));
            store.set_size(&key, size);
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

/// What is kept of an object.
struct Read<K: Kind> {
    cached: K::Cached,
    /// Its row on disk; none: the row stays.
    body: Option<String>,
    /// Bytes that users have written; none: what is kept of it stays.
    size: Option<usize>,
}

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
    let mut size = 0;
    let mut listed: Option<Instant> = None;
    let task = &shared.tasks.watches;
    loop {
        let event = match events.next().await? {
            Ok(event) => event,
            Err(error) => {
                let lasted = listed.map(|at| at.elapsed()).unwrap_or_default();
                return Some((error, lasted));
            }
        };
        let begun = task.begin();
        task.step(K::NAME);
        match event {
            Event::Init => (fresh, size) = (Some(BTreeMap::new()), 0),
            Event::InitApply(wire) => {
                let (key, origin) = (key_of::<K>(&wire), Origin::of(wire.meta()));
                let (known, kept, own) = {
                    let mut state = shared.state_mut();
                    let store = K::store(&mut state);
                    (
                        store.get(&key),
                        store.size_of_others(&key),
                        store.size(&key),
                    )
                };
                // What is kept stays kept, whatever comes before it in the list.
                let read = read::<K>(wire, known.as_deref(), kept + size);
                if let (Some(fresh), Some(read)) = (&mut fresh, read) {
                    size += read.size.unwrap_or(own).saturating_sub(own);
                    let same = known.is_some_and(|known| *known == read.cached);
                    fresh.insert(key, (origin, (!same).then_some(read)));
                }
            }
            Event::InitDone => {
                listed = Some(Instant::now());
                replace::<K>(shared, fresh.take().unwrap_or_default());
            }
            Event::Apply(wire) => apply::<K>(shared, wire),
            Event::Delete(wire) => deleted::<K>(shared, &wire),
        }
        task.end(begun, Reason::Event, None);
    }
}

/// All configurations of a kind together have at most so many bytes in memory.
const MAX_KEPT: usize = 16 << 20;

/// Leaves out what users have written, if that is too much, alone or with that of others; says how much is left.
fn bound<K: Kind>(wire: &mut K::Wire, others: usize) -> usize {
    let size = K::size(wire);
    let why = too_large(size).or_else(|| {
        let kind = K::NAME;
        (others + size > MAX_KEPT).then(|| format!("it has {size} bytes, with which every {kind} of the cluster together has more than the {MAX_KEPT} that nodes keep: delete or shorten others, then change this one"))
    });
    let Some(why) = why else { return size };
    let object = key_of::<K>(wire);
    tracing::warn!(
        kind = K::NAME,
        object,
        why,
        "is left out: of no use to pods"
    );
    K::leave_out(wire, &why);
    0
}

/// One that cannot be read leaves what is known of it, on disk too. `others` is the size of what is kept besides.
fn read<K: Kind>(mut wire: K::Wire, before: Option<&K::Cached>, others: usize) -> Option<Read<K>> {
    K::trim(&mut wire);
    let size = bound::<K>(&mut wire, others);
    let readable = K::cache(&wire);
    let keeps_row = readable.is_none() && before.is_some();
    let size = (!keeps_row).then_some(size);
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
    Some(Read { cached, body, size })
}

fn change<K: Kind>(shared: &Shared, key: &str, after: Option<Read<K>>) -> bool {
    let before = K::store(&mut shared.state_mut()).get(key);
    let same = match (&before, &after) {
        (Some(before), Some(after)) => **before == after.cached,
        (None, None) => true,
        _ => false,
    };
    if same {
        return false;
    }
    let (after, body, size) = match after {
        Some(after) => (Some(Arc::new(after.cached)), after.body, after.size),
        None => (None, None, None),
    };
    {
        let mut state = shared.state_mut();
        let store = K::store(&mut state);
        match &after {
            Some(after) => store.put(key, Arc::clone(after)),
            None => store.remove(key),
        }
        if let Some(size) = size {
            store.set_size(key, size);
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

#[cfg(test)]
mod tests {
    use super::super::kinds::{Nads, Networks};
    use super::super::tests::fake_hooks::{FakeHooks, shared};
    use super::super::wire::NadWire;
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use plexus_core::resolve::MAX_KEPT_CONFIG;
    use serde_json::{Value, json};

    fn wire<T: serde::de::DeserializeOwned>(number: usize, spec: &Value) -> T {
        let meta =
            json!({"name": format!("n{number}"), "namespace": "a", "uid": number.to_string()});
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap()
    }

    /// What is kept of so many objects with such a spec: how many bytes on disk, and how many can be used.
    fn cached<K: Kind>(
        count: usize,
        spec: &Value,
        usable: impl Fn(&K::Cached) -> bool,
    ) -> (usize, usize) {
        let (mut all, mut bytes, mut used) = (0, 0, 0);
        for number in 0..count {
            let read = read::<K>(wire(number, spec), None, all).unwrap();
            all += read.size.unwrap();
            bytes += read.body.unwrap().len();
            used += usize::from(usable(&read.cached));
        }
        (bytes, used)
    }

    #[test]
    fn what_users_write_does_not_fill_the_memory() {
        let text = |size: usize| "x".repeat(size);
        let nad = |size: usize| json!({"config": text(size)});
        let network = |size: usize| json!({"provider": "bridge", "config": {"x": text(size)}});
        let of_nads = |count, size| cached::<Nads>(count, &nad(size), |nad| nad.unusable.is_none());
        let of_networks = |count, size| {
            let active = |one: &plexus_core::resolve::NetworkObject| {
                !one.unusable
                    .as_deref()
                    .unwrap_or_default()
                    .contains("bytes")
            };
            cached::<Networks>(count, &network(size), active)
        };
        let (bytes, used) = of_nads(500, 1 << 20);
        assert!(bytes < 500 * 512 && used == 0, "{bytes} {used}");
        let (bytes, used) = of_networks(20, 1 << 20);
        assert!(bytes < 20 * 512 && used == 0, "{bytes} {used}");
        assert_eq!(of_nads(2, MAX_KEPT_CONFIG).1, 2);
        assert_eq!(of_nads(2, MAX_KEPT_CONFIG + 1).1, 0);
        // Each is small enough, but there are many.
        let (bytes, used) = of_nads(500, MAX_KEPT_CONFIG);
        assert!(bytes < MAX_KEPT + 500 * 512, "{bytes}");
        assert_eq!(used, MAX_KEPT / MAX_KEPT_CONFIG);
    }

    /// A network that pods have goes on as it was when somebody makes its object too large.
    #[test]
    fn what_is_too_large_says_so_and_takes_nothing_away() {
        let subnets = json!({"a": {"cidr": "10.1.0.0/16"}});
        let small = json!({"subnets": subnets});
        let large = json!({"subnets": subnets, "config": {"x": "x".repeat(MAX_KEPT_CONFIG)}});
        let before = read::<Networks>(wire(1, &small), None, 0).unwrap().cached;
        let after = read::<Networks>(wire(1, &large), Some(&before), 0).unwrap();
        assert_eq!((after.body, after.size), (None, None), "the row stays");
        assert_eq!(after.cached.spec, before.spec);
        let why = after.cached.unusable.unwrap();
        assert!(why.contains("its spec cannot be read: it has 65"), "{why}");
        // What is read from the disk again says the same.
        let read_first = read::<Networks>(wire(1, &large), None, 0).unwrap();
        let row = serde_json::from_str(&read_first.body.unwrap()).unwrap();
        let again = read::<Networks>(row, None, 0).unwrap();
        assert_eq!(again.cached.unusable, Some(why));
    }

    /// Whoever writes most, in the namespace that is listed first, takes nothing away from those that are there.
    #[test]
    fn what_is_kept_stays_kept_when_all_is_listed_again() {
        let directory = std::env::temp_dir().join(format!("plexus-kept-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let shared = shared(&runtime, &directory, &Arc::new(FakeHooks::default()));
        let full = MAX_KEPT / MAX_KEPT_CONFIG;
        let large = json!({"config": "x".repeat(MAX_KEPT_CONFIG)});
        let listed = |numbers: std::ops::Range<usize>| {
            let objects = numbers.map(|number| Event::InitApply(wire(number, &large)));
            let events = [Event::Init].into_iter().chain(objects);
            let events: Vec<_> = events.chain([Event::InitDone]).map(Ok).collect();
            let mut events = futures::stream::iter(events).boxed();
            let ended = runtime.block_on(until_error::<Nads>(&shared, &mut events));
            assert!(ended.is_none());
        };
        let usable = |number: usize| {
            let nad = Nads::store(&mut shared.state_mut()).get(&format!("a/n{number}"));
            nad.is_some_and(|nad| nad.unusable.is_none())
        };
        listed(full..2 * full);
        listed(0..2 * full);
        assert!((full..2 * full).all(usable));
        assert!(!(0..full).any(usable));
        let _ = std::fs::remove_dir_all(&directory);
    }

    #[test]
    fn what_nobody_reads_is_not_kept() {
        let mut wire: NadWire = wire(1, &json!({"config": "{}"}));
        let text = "x".repeat(MAX_KEPT_CONFIG);
        wire.metadata.finalizers = Some(vec![format!("a.example/{text}")]);
        let read_once = read::<Nads>(wire.clone(), None, 0).unwrap();
        assert!(read_once.body.unwrap().len() < 512);
        assert_eq!(read_once.cached.unusable, None);
        wire.metadata.owner_references = Some(vec![OwnerReference {
            kind: "NetworkAttachmentDefinition".to_owned(),
            name: text,
            ..OwnerReference::default()
        }]);
        let read_again = read::<Nads>(wire, None, 0).unwrap();
        assert!(read_again.body.unwrap().len() < 512);
        assert!(read_again.cached.unusable.is_some());
    }
}
