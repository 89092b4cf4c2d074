//! The objects of a kind as they change, for `get -w`: first all of them, then each that changed. What is lost with a
//! connection is listed anew and compared, so that nothing is missed and nothing is told twice.

use super::fetch::whole;
use super::{ClientError, Session};
use crate::kinds::Kind;
use crate::snapshot::{name, namespace, text};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use kube::api::{DynamicObject, ListParams};
use kube::runtime::watcher::Event;
use plexus_client::{WatchError, Watches};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a server that was followed may be away.
const AWAY_TIMEOUT: Duration = Duration::from_secs(60);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// What is followed.
pub struct Followed<'s> {
    session: &'s Session,
    kind: Kind,
    stream: BoxStream<'static, Result<Event<DynamicObject>, WatchError>>,
    known: Known,
    /// Since when the server is away.
    away: Option<Instant>,
}

impl Session {
    /// Follows the objects of a kind: in a namespace, or everywhere; with those labels, if some are given.
    pub fn follow(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Followed<'_> {
        let select = ListParams {
            label_selector: labels.map(str::to_owned),
            ..ListParams::default()
        };
        let stream = Watches::default().watch(self.api(kind, namespace), select);
        Followed {
            session: self,
            kind: *kind,
            stream: stream.boxed(),
            known: Known::default(),
            away: None,
        }
    }
}

impl Followed<'_> {
    /// What comes next, when it comes: all objects the first time, later those that changed or went, as they were last.
    ///
    /// # Errors
    /// The server cannot be asked at first, or is away for a minute.
    pub fn next_changes(&mut self) -> Result<Vec<Value>, ClientError> {
        let session = self.session;
        session.wait(async {
            loop {
                let Some(event) = self.stream.next().await else {
                    return Ok(Vec::new());
                };
                let mut told = self.take(event)?;
                // Whatever is there already is told together.
                while let Some(Some(event)) = self.stream.next().now_or_never() {
                    match (self.take(event)?, &mut told) {
                        (Some(more), Some(told)) => told.extend(more),
                        (Some(more), none) => *none = Some(more),
                        (None, _) => {}
                    }
                }
                match told {
                    Some(told) => return Ok(told),
                    None if self.away.is_some() => sleep(RETRY_INTERVAL).await,
                    None => {}
                }
            }
        })
    }

    fn take(
        &mut self,
        event: Result<Event<DynamicObject>, WatchError>,
    ) -> Result<Option<Vec<Value>>, ClientError> {
        match event {
            Ok(event) => {
                self.away = None;
                Ok(self.known.take(event, &self.kind))
            }
            Err(error) => {
                let since = *self.away.get_or_insert_with(Instant::now);
                match self.known.is_listed && since.elapsed() < AWAY_TIMEOUT {
                    true => Ok(None),
                    false => Err(self.failed(error)),
                }
            }
        }
    }

    fn failed(&self, error: WatchError) -> ClientError {
        match error {
            WatchError::List(error) => {
                let what = format!("list {}", self.kind.plural);
                self.session.no_kind(what, &self.kind, error)
            }
            error => ClientError::Watch {
                plural: self.kind.plural,
                server: self.session.server.clone(),
                source: Box::new(error),
            },
        }
    }
}

/// The objects as they were told.
#[derive(Default)]
struct Known {
    objects: BTreeMap<(String, String), Value>,
    /// The list that is coming.
    coming: BTreeMap<(String, String), Value>,
    /// There was one.
    is_listed: bool,
}

impl Known {
    /// What an event says that was not known.
    fn take(&mut self, event: Event<DynamicObject>, kind: &Kind) -> Option<Vec<Value>> {
        match event {
            Event::Init => {
                self.coming.clear();
                None
            }
            Event::InitApply(object) => {
                let object = whole(object, kind);
                self.coming.insert(key(&object), object);
                None
            }
            Event::InitDone => {
                let before = std::mem::replace(&mut self.objects, std::mem::take(&mut self.coming));
                let told = self.changed_since(before);
                let is_first = !std::mem::replace(&mut self.is_listed, true);
                (is_first || !told.is_empty()).then_some(told)
            }
            Event::Apply(object) => {
                let object = whole(object, kind);
                self.objects.insert(key(&object), object.clone());
                Some(vec![object])
            }
            Event::Delete(object) => {
                let object = whole(object, kind);
                self.objects.remove(&key(&object));
                Some(vec![object])
            }
        }
    }

    /// Those that are other ones than before, and those that went.
    fn changed_since(&self, before: BTreeMap<(String, String), Value>) -> Vec<Value> {
        let version = |object: &Value| text(object, "/metadata/resourceVersion").to_owned();
        let is_new = |(key, object): &(&(String, String), &Value)| {
            before
                .get(*key)
                .is_none_or(|before| version(before) != version(object))
        };
        let changed = self.objects.iter().filter(is_new);
        let mut told: Vec<Value> = changed.map(|(_, object)| object.clone()).collect();
        let gone = before
            .into_iter()
            .filter(|(key, _)| !self.objects.contains_key(key));
        told.extend(gone.map(|(_, object)| object));
        told
    }
}

fn key(object: &Value) -> (String, String) {
    (namespace(object).to_owned(), name(object).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use serde_json::json;

    fn object(name: &str, version: &str) -> DynamicObject {
        let value = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "a", "resourceVersion": version}});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn after_a_list_anew_only_what_changed_is_told() {
        let kind = kinds::find("pods").unwrap();
        let mut known = Known::default();
        let mut take = |event| {
            let told: Option<Vec<Value>> = known.take(event, &kind);
            told.map(|told| {
                let one = |object: &Value| {
                    format!(
                        "{} {}",
                        name(object),
                        text(object, "/metadata/resourceVersion")
                    )
                };
                told.iter().map(one).collect::<Vec<String>>().join(", ")
            })
        };
        assert_eq!(take(Event::Init), None);
        assert_eq!(take(Event::InitDone).as_deref(), Some(""), "there is none");
        for one in [object("a", "1"), object("b", "2")] {
            assert!(take(Event::Apply(one)).is_some());
        }
        assert_eq!(
            take(Event::Delete(object("a", "3"))).as_deref(),
            Some("a 3")
        );
        assert!(take(Event::Apply(object("c", "4"))).is_some());
        assert_eq!(take(Event::Init), None);
        for one in [object("b", "2"), object("d", "5")] {
            assert_eq!(take(Event::InitApply(one)), None);
        }
        assert_eq!(take(Event::InitDone).as_deref(), Some("d 5, c 4"));
        assert_eq!(take(Event::Init), None);
        for one in [object("b", "2"), object("d", "5")] {
            assert_eq!(take(Event::InitApply(one)), None);
        }
        assert_eq!(take(Event::InitDone), None, "nothing changed");
    }
}
