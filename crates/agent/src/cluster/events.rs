//! Events: what people see in `kubectl describe`. One writer; equal ones are counted, not more than a
//! few a second are written whatever happens, and no namespace keeps another one's waiting.

use super::api::{self, MANAGER, code, error_text};
use super::report::Subject;
use super::shared::Shared;
use crate::background::async_task::{Woken, Work};
use crate::background::progress::{Next, Reason};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Longest message that the API takes.
const LONGEST: usize = 1024;
/// Events that wait; further ones are dropped, and the log has them.
const MOST: usize = 256;
/// As many of them may be one namespace's.
const MOST_OF_ONE: usize = 32;
/// An Event that comes again within this is counted, not made anew.
const SAME: Duration = Duration::from_secs(600);
/// Time between two writes once a burst is used up, and the burst.
const PACE: Duration = Duration::from_secs(1);
const BURST: u32 = 25;

type Key = (Subject, &'static str, String);

#[derive(Default)]
pub(super) struct Events {
    waiting: Mutex<Waiting>,
    came: Notify,
}

/// In the order in which they came, within a namespace; the namespaces take turns.
#[derive(Default)]
struct Waiting {
    of: BTreeMap<String, Vec<(Key, u32)>>,
    /// Each namespace of `of` once: who is next.
    turns: VecDeque<String>,
}

impl Waiting {
    fn len(&self) -> usize {
        self.of.values().map(Vec::len).sum()
    }

    /// Whether there was room for it.
    fn push(&mut self, key: Key) -> bool {
        let namespace = &key.0.namespace;
        let own = self.of.get_mut(namespace);
        if let Some((_, times)) = own.and_then(|own| own.iter_mut().find(|one| one.0 == key)) {
            *times = times.saturating_add(1);
            return true;
        }
        let own = self.of.get(namespace).map_or(0, Vec::len);
        if own >= MOST_OF_ONE || self.len() >= MOST {
            return false;
        }
        if own == 0 {
            self.turns.push_back(namespace.clone());
        }
        self.of.entry(namespace.clone()).or_default().push((key, 1));
        true
    }

    fn pop(&mut self) -> Option<(Key, u32)> {
        let namespace = self.turns.pop_front()?;
        let own = self.of.get_mut(&namespace)?;
        let first = own.remove(0);
        if own.is_empty() {
            self.of.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        Some(first)
    }
}

impl Events {
    pub(super) fn push(&self, subject: Subject, reason: &'static str, text: &str) {
        if !self.waiting().push((subject, reason, shortened(text))) {
            tracing::debug!(reason, text, "too many Events: dropped");
            return;
        }
        self.came.notify_one();
    }

    fn take(&self) -> Option<(Key, u32)> {
        self.waiting().pop()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Sent {
    name: String,
    count: u32,
    at: Instant,
}

/// Writes what is pushed.
pub(super) struct WriteEvents {
    shared: Arc<Shared>,
    sent: BTreeMap<Key, Sent>,
    allowance: Allowance,
    number: u64,
}

impl WriteEvents {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            sent: BTreeMap::new(),
            allowance: Allowance::new(),
            number: 0,
        }
    }
}

impl Work for WriteEvents {
    async fn woken(&self) -> Woken {
        Woken::by(&self.shared.events.came).await
    }

    async fn pass(&mut self, _: Reason) -> Result<Next, String> {
        let shared = &self.shared;
        let Some((key, times)) = shared.events.take() else {
            return Ok(Next::WOKEN);
        };
        self.allowance.wait().await;
        self.sent.retain(|_, one| one.at.elapsed() < SAME);
        self.number += 1;
        let before = self.sent.remove(&key);
        match one(shared, &key, times, before, self.number).await {
            Ok(written) => drop(self.sent.insert(key, written)),
            // An Event is news: one that cannot be told now is not told later.
            Err(error) => {
                shared.tasks.events.failed();
                tracing::debug!(
                    reason = key.1,
                    text = key.2,
                    error = error_text(&error),
                    "an Event could not be written"
                );
            }
        }
        Ok(Next::After(Duration::ZERO))
    }
}

async fn one(
    shared: &Shared,
    key: &Key,
    times: u32,
    before: Option<Sent>,
    number: u64,
) -> kube::Result<Sent> {
    let (subject, reason, text) = key;
    let namespace = match subject.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let events = api::namespaced::<Event>(&shared.client, namespace);
    let now = now();
    if let Some(before) = before {
        let count = before.count.saturating_add(times);
        let patch = json!({"count": count, "lastTimestamp": now});
        match api::merge(&events, &before.name, patch).await {
            Ok(_) => {
                return Ok(Sent {
                    count,
                    at: Instant::now(),
                    ..before
                });
            }
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => return Err(error),
        }
    }
    let name = event_name(&subject.name, number);
    let event = json!({
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
        },
        "reason": reason,
        "message": text,
        "type": "Warning",
        "count": times,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": MANAGER, "host": shared.options.node},
        "reportingComponent": MANAGER,
        "reportingInstance": shared.options.node,
    });
    let event: Event = serde_json::from_value(event).map_err(kube::Error::SerdeError)?;
    events.create(&PostParams::default(), &event).await?;
    Ok(Sent {
        name,
        count: times,
        at: Instant::now(),
    })
}

/// Seconds suffice, and older servers take no more.
fn now() -> Value {
    let seconds = Timestamp::now().as_second();
    json!(
        Timestamp::from_second(seconds)
            .unwrap_or_default()
            .to_string()
    )
}

/// Unlike any other: by the time, as everybody names Events.
fn event_name(object: &str, number: u64) -> String {
    let start: String = object.chars().take(200).collect();
    let start = start.trim_end_matches(['.', '-']);
    let time = Timestamp::now().as_nanosecond();
    format!("{start}.{time:x}{:04x}", number & 0xffff)
}

fn shortened(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let mut end = LONGEST - 4;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

struct Allowance {
    left: u32,
    at: Instant,
}

impl Allowance {
    fn new() -> Self {
        Self {
            left: BURST,
            at: Instant::now(),
        }
    }

    async fn wait(&mut self) {
        let earned = self.at.elapsed().as_secs() / PACE.as_secs();
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(BURST);
            self.left = self.left.saturating_add(earned).min(BURST);
            self.at = Instant::now();
        }
        if self.left == 0 {
            tokio::time::sleep(PACE).await;
            self.at = Instant::now();
        } else {
            self.left -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(namespace: &str, name: &str) -> Subject {
        Subject {
            api_version: "v1",
            kind: "Pod",
            namespace: namespace.into(),
            name: name.into(),
            uid: "u".into(),
        }
    }

    #[test]
    fn equal_ones_are_one_and_there_is_a_bound() {
        let events = Events::default();
        for _ in 0..5 {
            events.push(subject("a", "p"), "FailedAttach", "no such network");
        }
        assert_eq!(events.take().unwrap().1, 5);
        for number in 0..2 * MOST {
            let (namespace, name) = (format!("n{}", number % 20), format!("p{number}"));
            events.push(subject(&namespace, &name), "FailedAttach", "x");
        }
        assert_eq!(events.waiting().len(), MOST);
    }

    #[test]
    fn a_noisy_namespace_keeps_nobody_waiting() {
        let events = Events::default();
        for number in 0..2 * MOST {
            let name = format!("p{number:04}");
            events.push(subject("aaa", &name), "FailedAttach", "x");
        }
        assert_eq!(events.waiting().len(), MOST_OF_ONE);
        for name in ["y", "x"] {
            events.push(subject("team-z", name), "FailedAttach", "x");
        }
        let told = (0..4).map(|_| events.take().unwrap().0.0.name);
        let told: Vec<String> = told.collect();
        assert_eq!(told, ["p0000", "y", "p0001", "x"], "in turns, oldest first");
        while events.take().is_some() {}
        assert_eq!(events.waiting().len(), 0);
    }

    #[test]
    fn long_messages_and_names_are_cut_at_a_character() {
        let long = "ä".repeat(LONGEST);
        assert!(shortened(&long).len() <= LONGEST);
        assert_eq!(shortened("short"), "short");
        assert!(event_name(&"p".repeat(253), 70_000).len() < 253);
        assert!(event_name("web-.", 1).starts_with("web."));
    }
}
