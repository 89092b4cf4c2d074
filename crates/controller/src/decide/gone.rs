//! When what a Node had may return. A Node is known by its UID: one of the same name with another
//! UID is another Node. A Node that is merely not ready is not gone.

use std::time::Duration;

/// A block whose Node is gone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GoneNodeBlock {
    /// Addresses in use, as its owner said last.
    pub(crate) allocated: u64,
    /// It is a part of a block, and other nodes have parts of it, or may take them.
    pub(crate) has_donated_parts: bool,
}

/// Whether a block of a Node that is gone may return. `bound`: pods that are bound to the Node's
/// name, whenever they were made. `replaced`: another Node has that name; it may be the same machine,
/// which registered again while its pods ran on, so that what its owner last said counts too.
pub(crate) fn may_return(
    known: Duration,
    grace: Duration,
    bound: usize,
    block: GoneNodeBlock,
    replaced: bool,
) -> bool {
    known >= grace && bound == 0 && !(replaced && block.allocated > 0) && !block.has_donated_parts
}

/// Whether the record of a pod on a Node that is gone has nobody left to remove it: its pod is no
/// longer there either. `made` is when the record was created, `bound` the UIDs of the pods there.
pub(crate) fn is_abandoned(
    pod_uid: &str,
    made: &str,
    bound: &[String],
    successor: Option<&str>,
) -> bool {
    let of_successor = successor.is_some_and(|created| made > created);
    !of_successor && !bound.iter().any(|bound| bound == pod_uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE_GRACE: Duration = Duration::from_secs(60);

    fn used(allocated: u64) -> GoneNodeBlock {
        GoneNodeBlock {
            allocated,
            ..GoneNodeBlock::default()
        }
    }

    #[test]
    fn blocks_return_after_the_grace_when_no_pod_is_bound() {
        assert!(may_return(NODE_GRACE, NODE_GRACE, 0, used(0), false));
        // Its owner is no more: what it said last means nothing.
        assert!(may_return(NODE_GRACE, NODE_GRACE, 0, used(7), false));
        let early = NODE_GRACE - Duration::from_millis(1);
        assert!(!may_return(early, NODE_GRACE, 0, used(0), false));
        assert!(!may_return(NODE_GRACE * 10, NODE_GRACE, 1, used(0), false));
    }

    #[test]
    fn a_part_stays_while_a_part_of_it_is_another_s() {
        let donor = GoneNodeBlock {
            has_donated_parts: true,
            ..GoneNodeBlock::default()
        };
        for replaced in [false, true] {
            assert!(!may_return(NODE_GRACE * 10, NODE_GRACE, 0, donor, replaced));
        }
    }

    #[test]
    fn a_machine_that_registered_again_keeps_what_its_pods_use() {
        assert!(may_return(NODE_GRACE, NODE_GRACE, 0, used(0), true));
        assert!(!may_return(NODE_GRACE * 10, NODE_GRACE, 1, used(0), true));
        assert!(!may_return(NODE_GRACE * 10, NODE_GRACE, 0, used(1), true));
    }

    #[test]
    fn a_record_is_abandoned_when_node_and_pod_are_gone() {
        let made = "2026-01-01T00:00:00Z";
        assert!(is_abandoned("p", made, &[], None));
        assert!(!is_abandoned("p", made, &["p".to_owned()], None));
        assert!(is_abandoned(
            "p",
            made,
            &["q".to_owned()],
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
