//! Who may lead, decided from the lease as it was seen and from how long it has not changed by our
//! own monotonic clock. The times written in a lease are for people: clocks of other machines
//! decide nothing.

use k8s_openapi::api::coordination::v1::LeaseSpec;
use std::time::Duration;

/// How long a lease counts for others after it was last seen to change.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(15);
/// How long we lead without having said so again; shorter, so that we end before another begins.
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How often a leader renews the lease, and other replicas read it.
pub(crate) const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The next step of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is no lease: make it.
    Create,
    /// It is ours, or free, or was not renewed in time: write our name.
    Take,
    /// Somebody else leads.
    Wait,
}

/// `unchanged`: how long we have seen this very version of the lease.
pub(crate) fn next_step(identity: &str, lease: Option<&LeaseSpec>, unchanged: Duration) -> Step {
    let Some(lease) = lease else {
        return Step::Create;
    };
    let holder = lease.holder_identity.as_deref().unwrap_or("");
    let promised = lease.lease_duration_seconds.unwrap_or(0).clamp(0, 3600);
    let promised = Duration::from_secs(u64::try_from(promised).unwrap_or(0));
    if holder.is_empty() || holder == identity || unchanged > promised {
        Step::Take
    } else {
        Step::Wait
    }
}

/// Whether somebody who last said so that long ago still leads.
pub(crate) fn still_leads(since_renewal: Duration) -> bool {
    since_renewal < RENEW_DEADLINE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, seconds: Option<i32>) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: seconds,
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_only_when_it_did_not_change_for_its_duration() {
        let other = lease("b", Some(15));
        assert_eq!(next_step("a", None, Duration::ZERO), Step::Create);
        assert_eq!(
            next_step("a", Some(&other), Duration::from_secs(15)),
            Step::Wait
        );
        assert_eq!(
            next_step("a", Some(&other), Duration::from_secs(16)),
            Step::Take
        );
        assert_eq!(next_step("b", Some(&other), Duration::ZERO), Step::Take);
        assert_eq!(
            next_step("a", Some(&lease("", Some(15))), Duration::ZERO),
            Step::Take
        );
    }

    #[test]
    fn hostile_durations() {
        for seconds in [None, Some(-5), Some(0)] {
            assert_eq!(
                next_step("a", Some(&lease("b", seconds)), Duration::ZERO),
                Step::Wait
            );
            assert_eq!(
                next_step("a", Some(&lease("b", seconds)), Duration::from_millis(1)),
                Step::Take
            );
        }
        let forever = lease("b", Some(i32::MAX));
        assert_eq!(
            next_step("a", Some(&forever), Duration::from_secs(3601)),
            Step::Take
        );
    }

    #[test]
    fn we_end_before_another_begins() {
        assert!(RENEW_DEADLINE + RETRY_PERIOD < LEASE_DURATION);
        assert!(still_leads(Duration::from_secs(9)));
        assert!(!still_leads(RENEW_DEADLINE));
    }
}
