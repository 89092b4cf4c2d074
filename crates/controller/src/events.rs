//! Events about objects whose status has no field for the message. One message about one state of an object is
//! one Event: its name is derived from the message, so that a restart or another replica only renews it. API
//! servers forget an Event an hour after its last write: the controller renews it well before that, as long as
//! the message is true.

use crate::api::{Cluster, Failure};
use crate::cache::{Identity, Name};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How many names are remembered, to save requests; then it begins anew.
const MAX_REMEMBERED: usize = 4096;
/// An Event that is still true is renewed after this time.
const RENEW_INTERVAL: Duration = Duration::from_secs(30 * 60);
/// What the API allows of a message.
const MAX_MESSAGE_BYTES: usize = 1024;

/// The object that an Event is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventSubject<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) name: &'a Name,
    pub(crate) id: &'a Identity,
}

/// Sends Events, and renews them as long as they are true.
pub(crate) struct Events {
    identity: String,
    sent: BTreeMap<String, SentEvent>,
    /// When the first of what there is to say since it was asked for must be said again.
    next: Option<Instant>,
}

/// When an Event was sent last, and its count; the count is unknown if another replica created the Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SentEvent {
    at: Instant,
    count: Option<i32>,
}

/// What is to be done about something that is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    First,
    Again(Option<i32>),
}

impl Events {
    /// In the name of this replica.
    pub(crate) fn new(identity: &str) -> Self {
        Events {
            identity: identity.to_owned(),
            sent: BTreeMap::new(),
            next: None,
        }
    }

    /// When whoever has spoken since the last question must be asked again.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        self.next.take()
    }

    /// Warns about an object.
    pub(crate) async fn warn(
        &mut self,
        cluster: &Cluster,
        about: EventSubject<'_>,
        reason: &str,
        message: &str,
    ) -> Result<(), Failure> {
        let name = event_name(about, reason, message, None);
        self.send(cluster, about, name, reason, message).await
    }

    /// Warns about an object, and again after it was changed.
    pub(crate) async fn warn_of_generation(
        &mut self,
        cluster: &Cluster,
        about: EventSubject<'_>,
        reason: &str,
        message: &str,
    ) -> Result<(), Failure> {
        let name = event_name(about, reason, message, about.id.generation);
        self.send(cluster, about, name, reason, message).await
    }

    async fn send(
        &mut self,
        cluster: &Cluster,
        about: EventSubject<'_>,
        name: String,
        reason: &str,
        message: &str,
    ) -> Result<(), Failure> {
        let now = Instant::now();
        let due = self.due(&name, now);
        let mut count = None;
        if let Due::Again(before) = due {
            count = cluster
                .renew_event(&self.event(about, name.clone(), reason, message), before)
                .await?;
        }
        if due != Due::Nothing && count.is_none() {
            let event = self.event(about, name.clone(), reason, message);
            count = match cluster.create_event(&event).await? {
                true => Some(1),
                false => cluster.renew_event(&event, None).await?,
            };
            tracing::warn!(kind = about.kind, object = %about.name, reason, message);
        }
        self.remember(name, due, count, now);
        Ok(())
    }

    fn due(&self, name: &str, now: Instant) -> Due {
        match self.sent.get(name) {
            None => Due::First,
            Some(sent) if now.saturating_duration_since(sent.at) >= RENEW_INTERVAL => {
                Due::Again(sent.count)
            }
            Some(_) => Due::Nothing,
        }
    }

    /// Notes that something is true, and was said as far as it was due.
    fn remember(&mut self, name: String, due: Due, count: Option<i32>, now: Instant) {
        if due != Due::Nothing {
            if self.sent.len() >= MAX_REMEMBERED {
                self.sent.clear();
            }
            self.sent.insert(name.clone(), SentEvent { at: now, count });
        }
        let again = self.sent.get(&name).map_or(now, |sent| sent.at) + RENEW_INTERVAL;
        self.next = Some(self.next.map_or(again, |next| next.min(again)));
    }

    fn event(&self, about: EventSubject<'_>, name: String, reason: &str, message: &str) -> Event {
        let now = Timestamp::now();
        let namespace = about.name.namespace.clone();
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                // Events of what is in no namespace are in this one.
                namespace: Some(match namespace.is_empty() {
                    true => "default".to_owned(),
                    false => namespace.clone(),
                }),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(about.api_version.to_owned()),
                kind: Some(about.kind.to_owned()),
                namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
                name: Some(about.name.name.clone()),
                uid: Some(about.id.uid.clone()),
                resource_version: about.id.version.clone(),
                ..ObjectReference::default()
            },
            type_: Some("Warning".to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(
                message
                    .chars()
                    .take(MAX_MESSAGE_BYTES / 4)
                    .collect::<String>(),
            )
            .map(|short| {
                if message.len() <= MAX_MESSAGE_BYTES {
                    message.to_owned()
                } else {
                    short + "…"
                }
            }),
            action: Some("Reconcile".to_owned()),
            count: Some(1),
            event_time: Some(MicroTime(now)),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            reporting_component: Some(crate::FIELD_MANAGER.to_owned()),
            reporting_instance: Some(self.identity.chars().take(128).collect()),
            source: Some(EventSource {
                component: Some(crate::FIELD_MANAGER.to_owned()),
                ..EventSource::default()
            }),
            ..Event::default()
        }
    }
}

/// `<object>.<hash of the object's UID, the reason and the message, and its generation if that counts>`.
fn event_name(
    about: EventSubject<'_>,
    reason: &str,
    message: &str,
    generation: Option<i64>,
) -> String {
    let generation = generation.map(|generation| generation.to_string());
    let parts = [about.id.uid.as_str(), reason, message].into_iter();
    let parts: Vec<&str> = parts.chain(generation.as_deref()).collect();
    let hash = plexus_types::hash64(&parts);
    let object: String = about.name.name.chars().take(200).collect();
    format!("{}.{hash:016x}", object.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_have_the_same_name() {
        let name = Name::new("a", "x".repeat(253));
        let id = Identity {
            uid: "u".into(),
            ..Identity::default()
        };
        let about = EventSubject {
            api_version: "v1",
            kind: "Pod",
            name: &name,
            id: &id,
        };
        let first = event_name(about, "R", "m", None);
        assert_eq!(first, event_name(about, "R", "m", None));
        assert_ne!(first, event_name(about, "Rm", "", None));
        let changed = event_name(about, "R", "m", Some(2));
        assert_eq!(changed, event_name(about, "R", "m", Some(2)));
        assert_ne!(changed, first);
        assert_ne!(changed, event_name(about, "R", "m", Some(3)));
        assert!(first.len() <= 253);
        let successor = Identity {
            uid: "v".into(),
            ..Identity::default()
        };
        assert_ne!(
            first,
            event_name(
                EventSubject {
                    id: &successor,
                    ..about
                },
                "R",
                "m",
                None
            )
        );
    }

    #[test]
    fn what_stays_true_is_said_again_before_an_api_server_forgets_it() {
        let forgotten = Duration::from_secs(3600);
        let (mut events, begun) = (Events::new("me"), Instant::now());
        let mut sent = Vec::new();
        // Asked for other reasons too, at times that have nothing to do with it.
        for minutes in (0..=300).step_by(7) {
            let now = begun + Duration::from_secs(60 * minutes);
            let due = events.due("x", now);
            if due != Due::Nothing {
                sent.push(now);
            }
            events.remember("x".into(), due, Some(sent.len() as i32), now);
            let next = events.next().unwrap();
            assert_eq!(next, sent.last().copied().unwrap() + RENEW_INTERVAL);
            assert_eq!(events.next(), None, "it is asked for once");
        }
        assert!(
            sent.windows(2).all(|two| two[1] - two[0] < forgotten),
            "{sent:?}"
        );
        assert_eq!(sent.len(), 300 / 35 + 1, "and no more than that");
        let last = sent.last().copied().unwrap();
        assert_eq!(
            events.due("x", last + RENEW_INTERVAL),
            Due::Again(Some(sent.len() as i32))
        );
        assert_eq!(events.due("y", last), Due::First);
    }

    #[test]
    fn of_several_things_the_first_counts() {
        let (mut events, begun) = (Events::new("me"), Instant::now());
        let later = begun + Duration::from_secs(60);
        events.remember("x".into(), Due::First, Some(1), begun);
        events.remember("y".into(), Due::First, Some(1), later);
        assert_eq!(events.next(), Some(begun + RENEW_INTERVAL));
        events.remember("y".into(), Due::Nothing, None, later);
        assert_eq!(events.next(), Some(later + RENEW_INTERVAL));
    }

    #[test]
    fn an_object_in_no_namespace_has_its_events_in_the_default_one() {
        let (name, id) = (Name::new("", "x"), Identity::default());
        let about = EventSubject {
            api_version: "net.cogadvisor.io/v1",
            kind: "MultiNicNetwork",
            name: &name,
            id: &id,
        };
        let event = Events::new("me").event(about, "n".into(), "R", "m");
        assert_eq!(event.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(event.involved_object.namespace, None);
    }

    #[test]
    fn a_message_fits() {
        let name = Name::new("a", "x");
        let id = Identity::default();
        let about = EventSubject {
            api_version: "v1",
            kind: "Pod",
            name: &name,
            id: &id,
        };
        let event = Events::new("me").event(about, "n".into(), "R", &"ü".repeat(2000));
        assert!(event.message.unwrap().len() <= MAX_MESSAGE_BYTES);
    }
}
