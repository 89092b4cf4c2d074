//! Since when a condition of an object has been true, by our own clock. A restarted controller counts anew.

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Since when the condition has been true of each object, by its UID.
#[derive(Debug, Default)]
pub(crate) struct FirstSeen(BTreeMap<String, Instant>);

impl FirstSeen {
    /// Records that the condition is true; returns how long the controller has known that.
    pub(crate) fn known_for(&mut self, uid: &str, now: Instant) -> Duration {
        let first_seen = self.0.entry(uid.to_owned()).or_insert(now);
        now.saturating_duration_since(*first_seen)
    }

    /// Records that the condition is not true, or that the object is gone.
    pub(crate) fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_when_it_is_first_seen() {
        let (mut clock, now) = (FirstSeen::default(), Instant::now());
        let later = now + Duration::from_secs(60);
        assert_eq!(clock.known_for("u", now), Duration::ZERO);
        assert_eq!(clock.known_for("u", later), Duration::from_secs(60));
        clock.forget("u");
        assert_eq!(clock.known_for("u", later), Duration::ZERO);
    }
}
