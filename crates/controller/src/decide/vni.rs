//! The numbers of overlay networks: each has one of its own in the cluster, for as long as it lives.

use plexus_core::fabric::FIRST_VNI;
use std::collections::BTreeSet;

/// The numbers that we use; smaller ones are left to others on the same underlay.
pub(crate) const RANGE: std::ops::RangeInclusive<u32> = FIRST_VNI..=16_777_215;

/// A free number for a network: the one that its UID points at, else the next free one. The same
/// network gets the same one again if its status was lost and nobody else has it.
pub(crate) fn choose(uid: &str, is_taken: impl Fn(u32) -> bool) -> Option<u32> {
    let count = RANGE.end() - RANGE.start() + 1;
    let first = u32::try_from(hash(uid) % u64::from(count)).unwrap_or(0);
    (0..count)
        .map(|step| RANGE.start() + (first + step) % count)
        .find(|number| !is_taken(*number))
}

/// Whether a number is one that we may have given.
pub(crate) fn is_ours(number: u32) -> bool {
    RANGE.contains(&number)
}

/// Of the networks that claim one number, the one that has it: the first created, then by UID.
pub(crate) fn holder(claims: &BTreeSet<(String, String)>) -> Option<&str> {
    claims.first().map(|(_created, uid)| uid.as_str())
}

/// FNV-1a: the same in every version and on every machine.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_stable_in_range_and_never_taken() {
        let uid = "2a9aafcc-0000-4000-8000-000000000000";
        let first = choose(uid, |_| false).unwrap();
        assert_eq!(choose(uid, |_| false), Some(first));
        assert_eq!(choose(uid, |_| false), Some(first));
        let next = choose(uid, |number| number == first).unwrap();
        assert!(next != first && is_ours(first) && is_ours(next));
        let mut taken = BTreeSet::new();
        for i in 0..2000 {
            let number = choose(&format!("uid-{i}"), |number| taken.contains(&number)).unwrap();
            assert!(is_ours(number) && taken.insert(number));
        }
    }

    #[test]
    fn it_wraps_around_and_ends() {
        assert_eq!(choose("x", |number| number != 4097), Some(4097));
        assert_eq!(choose("x", |number| number != 16_777_215), Some(16_777_215));
        assert_eq!(choose("x", |_| true), None);
    }

    #[test]
    fn the_older_keeps_a_number_that_two_have() {
        let claims = BTreeSet::from([
            ("2026-01-02T00:00:00Z".to_owned(), "a".to_owned()),
            ("2026-01-01T00:00:00Z".to_owned(), "b".to_owned()),
        ]);
        assert_eq!(holder(&claims), Some("b"));
    }
}
