//! What is to be looked at, and when. Each key waits once; a key that fails waits longer each time.

use crate::cache::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Something to look at. At the same time, what comes first here comes first: networks are in
/// order before anything is judged by them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// The cluster's default network.
    ClusterDefault,
    /// A NetworkAttachmentDefinition.
    Nad(Name),
    /// A Network.
    Network(Name),
    /// A Node that is or was there.
    Node(String),
    /// Blocks of a network that is gone, by its UID.
    Orphans(String),
    /// A MultiNicNetwork.
    MultiNic(Name),
    /// The CIDR of one.
    MultiNicCidr(Name),
    /// Blocks of a MultiNicNetwork that is gone, by its UID.
    MultiNicOrphans(String),
    /// A NetworkPolicy.
    Policy(Name),
    /// An object of a kind that is served later.
    Later(&'static str, Name),
    /// The conditions of the cluster as a whole.
    Cluster,
}

/// The first pause after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(60));

/// The keys that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    due: BTreeMap<Key, Instant>,
    order: BTreeSet<(Instant, Key)>,
    failures: BTreeMap<Key, u32>,
}

impl Queue {
    /// To be looked at now, after `delay`, or earlier if it waits already.
    pub(crate) fn add(&mut self, key: Key, at: Instant) {
        if let Some(due) = self.due.get(&key).copied() {
            if due <= at {
                return;
            }
            self.order.remove(&(due, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.order.insert((at, key));
    }

    /// What is due by now is due at the same time: only the order of the keys counts.
    pub(crate) fn level(&mut self, now: Instant) {
        let due: Vec<Key> = self
            .due
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            if let Some(at) = self.due.insert(key.clone(), now) {
                self.order.remove(&(at, key.clone()));
            }
            self.order.insert((now, key));
        }
    }

    /// It failed: again, after a pause that grows.
    pub(crate) fn failed(&mut self, key: Key, now: Instant) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures = failures.saturating_add(1);
        let factor = 1_u32 << (*failures - 1).min(16);
        let pause = PAUSES.0.saturating_mul(factor).min(PAUSES.1);
        self.add(key, now + pause);
        pause
    }

    /// It went well: the next failure is its first again.
    pub(crate) fn succeeded(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    /// The first one whose time has come.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Key> {
        let (at, _) = self.order.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.due.remove(&key);
        Some(key)
    }

    /// When the next one's time comes.
    pub(crate) fn wake(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_once_earliest_first_networks_before_nodes() {
        let now = Instant::now();
        let later = now + Duration::from_secs(2);
        let network = Key::Network(Name::new("a", "x"));
        let mut queue = Queue::default();
        queue.add(network.clone(), later);
        queue.add(Key::Node("n1".into()), now);
        queue.add(Key::Nad(Name::new("z", "z")), now);
        queue.add(network.clone(), now);
        queue.add(network.clone(), later);
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.next(now), Some(Key::Nad(Name::new("z", "z"))));
        assert_eq!(queue.next(now), Some(network));
        assert_eq!(queue.next(now), Some(Key::Node("n1".into())));
        assert_eq!(queue.next(later), None);
    }

    #[test]
    fn what_came_in_any_order_is_looked_at_in_the_order_of_keys() {
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut queue = Queue::default();
        queue.add(Key::Node("n1".into()), at(0));
        queue.add(Key::Network(Name::new("a", "x")), at(1));
        queue.add(Key::Nad(Name::new("a", "x")), at(2));
        queue.add(Key::ClusterDefault, at(1000));
        queue.level(at(3));
        assert_eq!(queue.next(at(3)), Some(Key::Nad(Name::new("a", "x"))));
        assert_eq!(queue.next(at(3)), Some(Key::Network(Name::new("a", "x"))));
        assert_eq!(queue.next(at(3)), Some(Key::Node("n1".into())));
        assert_eq!(queue.next(at(3)), None);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn pauses_grow_to_a_bound_and_start_anew() {
        let now = Instant::now();
        let mut queue = Queue::default();
        let mut last = Duration::ZERO;
        for _ in 0..100 {
            let pause = queue.failed(Key::Cluster, now);
            assert!(pause >= last && pause <= PAUSES.1);
            last = pause;
        }
        assert_eq!(last, PAUSES.1);
        queue.succeeded(&Key::Cluster);
        assert_eq!(queue.failed(Key::Cluster, now), PAUSES.0);
    }
}
