//! When what a Node had may return. A Node is known by its UID: one of the same name with another
//! UID is another Node. A Node that is merely not ready is not gone.

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Since when Nodes have been gone, by their UID, on our own clock. A controller that starts
/// begins to count anew.
#[derive(Debug, Default)]
pub(crate) struct GoneClock(BTreeMap<String, Instant>);

impl GoneClock {
    /// It is gone; gives how long we have known that.
    pub(crate) fn gone(&mut self, uid: &str, now: Instant) -> Duration {
        let since = self.0.entry(uid.to_owned()).or_insert(now);
        now.saturating_duration_since(*since)
    }

    /// It is there, or nothing of it is left: forget it.
    pub(crate) fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

/// What we know of the pods that are bound to a Node's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The pod's UID.
    pub(crate) uid: String,
    /// When it was created, RFC 3339.
    pub(crate) created: String,
}

/// Whether a pod may still run on the machine that the gone Node was: it was created before the
/// Node's successor, if there is one.
pub(crate) fn may_be_there(pod: &Bound, successor: Option<&str>) -> bool {
    successor.is_none_or(|created| pod.created.as_str() <= created)
}

/// Whether the blocks of a Node that is gone may return.
pub(crate) fn may_return(
    known: Duration,
    grace: Duration,
    bound: &[Bound],
    successor: Option<&str>,
) -> bool {
    known >= grace && !bound.iter().any(|pod| may_be_there(pod, successor))
}

/// Whether the record of a pod on a Node that is gone has nobody left to remove it: its pod is no
/// longer there either. `made` is when the record was created.
pub(crate) fn is_abandoned(
    pod_uid: &str,
    made: &str,
    bound: &[Bound],
    successor: Option<&str>,
) -> bool {
    let of_successor = successor.is_some_and(|created| made > created);
    !of_successor && !bound.iter().any(|pod| pod.uid == pod_uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, created: &str) -> Bound {
        Bound {
            uid: uid.to_owned(),
            created: created.to_owned(),
        }
    }

    const GRACE: Duration = Duration::from_secs(60);

    #[test]
    fn the_clock_starts_when_it_is_first_seen_gone() {
        let mut clock = GoneClock::default();
        let now = Instant::now();
        assert_eq!(clock.gone("u", now), Duration::ZERO);
        assert_eq!(clock.gone("u", now + GRACE), GRACE);
        clock.forget("u");
        assert_eq!(clock.gone("u", now + GRACE), Duration::ZERO);
    }

    #[test]
    fn blocks_return_after_the_grace_when_no_pod_is_bound() {
        assert!(may_return(GRACE, GRACE, &[], None));
        assert!(!may_return(
            GRACE - Duration::from_millis(1),
            GRACE,
            &[],
            None
        ));
        assert!(!may_return(
            GRACE * 10,
            GRACE,
            &[pod("p", "2026-01-01T00:00:00Z")],
            None
        ));
    }

    #[test]
    fn pods_of_a_successor_do_not_hold_what_the_predecessor_had() {
        let successor = Some("2026-01-02T00:00:00Z");
        let (before, after) = (
            pod("p", "2026-01-01T00:00:00Z"),
            pod("q", "2026-01-03T00:00:00Z"),
        );
        assert!(may_return(
            GRACE,
            GRACE,
            std::slice::from_ref(&after),
            successor
        ));
        assert!(!may_return(GRACE, GRACE, &[before, after], successor));
    }

    #[test]
    fn a_record_is_abandoned_when_node_and_pod_are_gone() {
        let made = "2026-01-01T00:00:00Z";
        assert!(is_abandoned("p", made, &[], None));
        assert!(!is_abandoned("p", made, &[pod("p", made)], None));
        assert!(is_abandoned(
            "p",
            made,
            &[pod("q", made)],
            Some("2026-01-02T00:00:00Z")
        ));
        // Made by the successor's agent: that one removes it.
        assert!(!is_abandoned(
            "p",
            "2026-01-03T00:00:00Z",
            &[],
            Some("2026-01-02T00:00:00Z")
        ));
    }
}
