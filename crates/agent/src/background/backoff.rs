//! When something that failed is tried again: after a second, then after twice as long each time, up
//! to a minute or what is told. By monotonic time, which is an argument; does nothing itself.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Backoff<K> {
    waits: BTreeMap<K, Wait>,
    shortest: Duration,
    longest: Duration,
}

#[derive(Debug)]
struct Wait {
    until: Instant,
    next: Duration,
}

impl<K: Ord + Clone> Backoff<K> {
    pub(crate) fn new() -> Self {
        Self::up_to(LONGEST)
    }

    /// The same, with another longest wait.
    pub(crate) fn up_to(longest: Duration) -> Self {
        Self::between(FIRST, longest)
    }

    /// The same, with another first wait, too.
    pub(crate) fn between(shortest: Duration, longest: Duration) -> Self {
        Self {
            waits: BTreeMap::new(),
            shortest,
            longest,
        }
    }

    /// Whether it is time to try it; at once what has not failed.
    pub(crate) fn is_due(&self, key: &K, now: Instant) -> bool {
        self.waits.get(key).is_none_or(|wait| wait.until <= now)
    }

    /// Whether it has failed, or been put off, before.
    pub(crate) fn knows(&self, key: &K) -> bool {
        self.waits.contains_key(key)
    }

    /// It failed, or it is to be left alone for a moment: until when.
    pub(crate) fn put_off(&mut self, key: &K, now: Instant) -> Instant {
        let next = self.waits.get(key).map_or(self.shortest, |wait| wait.next);
        let wait = Wait {
            until: now + next.min(self.longest),
            next: (next * 2).min(self.longest),
        };
        let until = wait.until;
        self.waits.insert(key.clone(), wait);
        until
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waits.values().map(|wait| wait.until).min()
    }

    pub(crate) fn keep_only(&mut self, there: impl Fn(&K) -> bool) {
        self.waits.retain(|key, _| there(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_by_itself_and_twice_as_long_up_to_a_minute() {
        let mut backoff = Backoff::new();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..9 {
            assert!(backoff.is_due(&"a", now) && backoff.is_due(&"b", now));
            backoff.put_off(&"a", now);
            let step = Duration::from_millis(500);
            let steps = (1..).find(|steps| backoff.is_due(&"a", now + step * *steps));
            let wait = step * steps.unwrap();
            now += wait;
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let soon = backoff.put_off(&"b", now);
        assert_eq!((soon, backoff.next_due()), (now + FIRST, Some(now)));
        backoff.keep_only(|key| *key != "a");
        assert!(!backoff.knows(&"a"));
        assert_eq!(backoff.next_due(), Some(soon));
    }

    #[test]
    fn no_longer_than_told() {
        let short = Duration::from_millis(500);
        let mut backoff = Backoff::up_to(short);
        let now = Instant::now();
        assert_eq!(backoff.put_off(&(), now), now + short);
        assert_eq!(backoff.put_off(&(), now), now + short);
    }
}
