//! Follows the objects of one kind: lists them, watches them, and lists again when it must. The only place of our
//! programs that makes watches; gives kube's [`Event`]s, decides nothing about objects.
//!
//! ```text
//!   list ──► open a watch ──► compare versions ──► events
//!    ▲            ▲                  │                │
//!    ├────────────┼──── went back ───┘                │
//!    │            └──────────────── ended, or silent ─┤
//!    └─────────────────────────────────────── failed ─┘
//! ```
//!
//! A server that was restored from a backup counts its versions anew. A watch that goes on from a version that the
//! server has not reached yet would miss changes, and no server refuses it. So each time a watch has been opened, the
//! server's version is compared with the last one that was seen, and the newest object that is known with the server's;
//! the last one that was deleted must not be there.

mod error;
mod restart;
#[cfg(test)]
mod tests;

pub use error::WatchError;
pub use restart::Watches;

use futures::StreamExt;
use futures::stream::{BoxStream, Stream, unfold};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::core::ObjectList;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};
use restart::Restarts;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The server ends a watch after so many seconds.
const WATCH_SECONDS: u32 = 120;
/// A watch that is silent for longer than the server lets it live is dead.
const IDLE_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);
/// For one page of a list, and for a watch to open.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this after it was opened is opened again only after the same time.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// Objects per page of a list, unless `select` says how many: more are never in memory as they came.
const PAGE: u32 = 200;

/// What can be watched.
pub trait Watchable: Resource + Clone + DeserializeOwned + Debug + Send + 'static {}

impl<K: Resource + Clone + DeserializeOwned + Debug + Send + 'static> Watchable for K {}

impl Watches {
    /// Follows the objects of a kind that `select` selects by labels and fields. Never ends. After an error the
    /// objects are listed again; whoever polls decides how soon.
    pub fn watch<K: Watchable>(
        &self,
        api: Api<K>,
        select: ListParams,
    ) -> impl Stream<Item = Result<Event<K>, WatchError>> + Send + use<K> {
        let watch = Watch {
            api,
            select,
            restarts: self.subscribe(),
            done: self.now(),
            watches: self.clone(),
            stage: Stage::List,
            version: String::new(),
            newest: None,
            deleted: None,
            opened: None,
            is_fresh: false,
        };
        unfold(watch, |mut watch| async {
            Some((watch.next().await, watch))
        })
    }
}

struct Watch<K> {
    api: Api<K>,
    select: ListParams,
    watches: Watches,
    restarts: watch::Receiver<Restarts>,
    /// The restarts that this watch has followed.
    done: Restarts,
    stage: Stage<K>,
    /// The last version that was seen.
    version: String,
    newest: Option<KnownObject>,
    /// The last one that was deleted, with the version of that, unless it was made anew.
    deleted: Option<KnownObject>,
    opened: Option<Instant>,
    /// The objects were listed, and no watch was opened since.
    is_fresh: bool,
}

enum Stage<K> {
    List,
    Page { next: Page, objects: VecDeque<K> },
    Open,
    Events(BoxStream<'static, kube::Result<WatchEvent<K>>>),
}

enum Page {
    First,
    After(String),
    None,
}

/// An object as it was last seen.
#[derive(Clone)]
struct KnownObject {
    namespace: Option<String>,
    name: String,
    version: u64,
    is_deleted: bool,
}

/// What the server's versions say about what was seen.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing contradicts it.
    Consistent,
    /// The newest object that we know is not there: it was deleted meanwhile, or never created. Or the last one that was
    /// deleted is there: it was made anew meanwhile, or never deleted.
    Unclear,
    /// The server has not reached a version that was seen.
    WentBack,
}

impl<K: Watchable> Watch<K> {
    async fn next(&mut self) -> Result<Event<K>, WatchError> {
        loop {
            let mut restarts = self.restarts.clone();
            let step = tokio::select! {
                biased;
                // The sender is ours too: it cannot be gone.
                _ = restarts.changed() => { self.restart(); continue }
                step = self.step() => step,
            };
            match step {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(error) => {
                    self.stage = Stage::List;
                    return Err(error);
                }
            }
        }
    }

    fn restart(&mut self) {
        let wanted = *self.restarts.borrow_and_update();
        if wanted.lists != self.done.lists {
            self.stage = Stage::List;
        } else if matches!(self.stage, Stage::Events(_)) {
            self.stage = Stage::Open;
            self.opened = None;
        }
        // Else the request that was under way is sent again.
        self.done = wanted;
    }

    /// One request or one event; may be dropped at any time if [`restart`](Self::restart) follows.
    async fn step(&mut self) -> Result<Option<Event<K>>, WatchError> {
        match &mut self.stage {
            Stage::List => {
                self.newest = None;
                self.deleted = None;
                self.stage = Stage::Page {
                    next: Page::First,
                    objects: VecDeque::new(),
                };
                Ok(Some(Event::Init))
            }
            Stage::Page { next, objects } => {
                if let Some(object) = objects.pop_front() {
                    remember_newest(&mut self.newest, &object);
                    return Ok(Some(Event::InitApply(object)));
                }
                let mut ask = self.select.clone();
                match next {
                    Page::First => {}
                    Page::After(token) => ask.continue_token = Some(token.clone()),
                    Page::None => {
                        self.stage = Stage::Open;
                        self.opened = None;
                        self.is_fresh = true;
                        return Ok(Some(Event::InitDone));
                    }
                }
                ask.limit.get_or_insert(PAGE);
                let (list, version) = self.list(&ask).await?;
                self.version = version;
                let token = list.metadata.continue_.filter(|token| !token.is_empty());
                self.stage = Stage::Page {
                    next: token.map_or(Page::None, Page::After),
                    objects: list.items.into(),
                };
                Ok(None)
            }
            Stage::Open => {
                self.open().await?;
                Ok(None)
            }
            Stage::Events(events) => match timeout(IDLE_TIMEOUT, events.next()).await {
                Ok(Some(event)) => self.take(event.map_err(WatchError::Watch)?),
                Ok(None) | Err(_) => {
                    self.stage = Stage::Open;
                    Ok(None)
                }
            },
        }
    }

    fn take(&mut self, event: WatchEvent<K>) -> Result<Option<Event<K>>, WatchError> {
        let (version, event) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                remember_newest(&mut self.newest, &object);
                self.deleted.take_if(|known| known.is(&object));
                (object.resource_version(), Some(Event::Apply(object)))
            }
            WatchEvent::Deleted(object) => {
                self.newest.take_if(|known| known.is(&object));
                self.deleted = KnownObject::of(&object, true);
                (object.resource_version(), Some(Event::Delete(object)))
            }
            WatchEvent::Bookmark(bookmark) => (Some(bookmark.metadata.resource_version), None),
            WatchEvent::Error(status) => return Err(WatchError::Ended(status)),
        };
        self.version = version
            .filter(|version| !version.is_empty())
            .ok_or(WatchError::NoVersion)?;
        Ok(event)
    }

    async fn open(&mut self) -> Result<(), WatchError> {
        if self.opened.is_some_and(|at| at.elapsed() < SHORT_WATCH) {
            sleep(SHORT_WATCH).await;
        }
        let params = WatchParams {
            label_selector: self.select.label_selector.clone(),
            field_selector: self.select.field_selector.clone(),
            timeout: Some(WATCH_SECONDS),
            ..WatchParams::default()
        };
        let opens = timeout(REQUEST_TIMEOUT, self.api.watch(&params, &self.version));
        let events = opens.await.map_err(|_| late())?;
        let events = events.map_err(WatchError::Watch)?.boxed();
        // Only now: a server that is replaced after this ends the watch.
        self.stage = match self.compare().await? {
            Verdict::Consistent => Stage::Events(events),
            Verdict::Unclear => {
                sleep(SHORT_WATCH).await;
                Stage::List
            }
            Verdict::WentBack => {
                tracing::warn!(
                    kind = std::any::type_name::<K>(),
                    seen = self.version,
                    "the API server has not reached a version that was seen, as after a restore from a backup: \
                     everything is listed again"
                );
                self.watches.list_again();
                self.done = *self.restarts.borrow_and_update();
                Stage::List
            }
        };
        self.opened = Some(Instant::now());
        self.is_fresh = false;
        Ok(())
    }

    /// Asks for the newest object that we know and for the last one that was deleted, and with them for the server's
    /// version.
    async fn compare(&mut self) -> Result<Verdict, WatchError> {
        // What was listed a moment ago may be deleted by now, if there are many.
        if self.is_fresh {
            return self.compare_with(None).await;
        }
        let known = [self.newest.clone(), self.deleted.clone()];
        let mut known = known.into_iter().flatten().map(Some).collect::<Vec<_>>();
        if known.is_empty() {
            known.push(None);
        }
        for one in known {
            let verdict = self.compare_with(one).await?;
            if verdict != Verdict::Consistent {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Consistent)
    }

    /// Asks for at most one object: that one, if there is one.
    async fn compare_with(&mut self, known: Option<KnownObject>) -> Result<Verdict, WatchError> {
        let mut ask = self.select.clone();
        ask.limit = Some(1);
        if let Some(known) = &known {
            let mut fields: Vec<String> = ask.field_selector.into_iter().collect();
            fields.push(format!("metadata.name={}", known.name));
            fields.extend(
                known
                    .namespace
                    .as_ref()
                    .map(|namespace| format!("metadata.namespace={namespace}")),
            );
            ask.field_selector = Some(fields.join(","));
        }
        let listed = self.list(&ask).await;
        // That the kind is not there, only its list can tell.
        let (list, version) = listed.map_err(|error| match error {
            WatchError::List(error) => WatchError::Watch(error),
            error => error,
        })?;
        let is_behind = match (version.parse::<u64>(), self.version.parse::<u64>()) {
            (Ok(server), Ok(seen)) => server < seen,
            // Versions that are no numbers cannot be compared.
            _ => false,
        };
        if is_behind {
            return Ok(Verdict::WentBack);
        }
        let Some(known) = known else {
            return Ok(Verdict::Consistent);
        };
        Ok(match list.items.first().map(version_of) {
            Some(Some(version)) if version < known.version => Verdict::WentBack,
            found if found.is_some() == known.is_deleted => Verdict::Unclear,
            _ => Verdict::Consistent,
        })
    }

    async fn list(&mut self, ask: &ListParams) -> Result<(ObjectList<K>, String), WatchError> {
        let listed = timeout(REQUEST_TIMEOUT, self.api.list(ask)).await;
        let list = listed.map_err(|_| late())?.map_err(WatchError::List)?;
        let version = list.metadata.resource_version.clone();
        let version = version.filter(|version| !version.is_empty());
        Ok((list, version.ok_or(WatchError::NoVersion)?))
    }
}

impl KnownObject {
    /// None if its version is no number.
    fn of<K: Resource>(object: &K, is_deleted: bool) -> Option<Self> {
        Some(Self {
            namespace: object.meta().namespace.clone(),
            name: object.meta().name.clone().unwrap_or_default(),
            version: version_of(object)?,
            is_deleted,
        })
    }

    fn is<K: Resource>(&self, object: &K) -> bool {
        let meta = object.meta();
        meta.namespace == self.namespace && meta.name.as_deref() == Some(&self.name)
    }
}

/// Takes note of an object if it is newer than the newest.
fn remember_newest<K: Resource>(newest: &mut Option<KnownObject>, object: &K) {
    let Some(object) = KnownObject::of(object, false) else {
        return;
    };
    if newest
        .as_ref()
        .is_none_or(|known| known.version <= object.version)
    {
        *newest = Some(object);
    }
}

fn version_of<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_ref()?.parse().ok()
}

fn late() -> WatchError {
    WatchError::Late {
        seconds: REQUEST_TIMEOUT.as_secs(),
    }
}
