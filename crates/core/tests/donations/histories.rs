//! What several nodes do, at random and on purpose.

use crate::nodes::{Cluster, Dies, NODES, Step};
use proptest::prelude::*;

fn step() -> impl Strategy<Value = Step> {
    let (n, owner) = (0..NODES, 0_u8..12);
    let dies = prop_oneof![
        Just(Dies::BeforeJournal),
        Just(Dies::BeforeStatus),
        Just(Dies::After),
        Just(Dies::Not),
        Just(Dies::Not),
    ];
    prop_oneof![
        8 => (n.clone(), owner.clone()).prop_map(|(n, owner)| Step::Add(n, owner)),
        4 => (n.clone(), owner).prop_map(|(n, owner)| Step::Del(n, owner)),
        6 => (n.clone(), n.clone(), 1_u32..6, dies)
            .prop_map(|(n, to, addresses, dies)| Step::Give(n, to, addresses, dies)),
        6 => n.clone().prop_map(Step::Take),
        2 => n.clone().prop_map(Step::TakeBack),
        3 => n.clone().prop_map(Step::Post),
        3 => n.clone().prop_map(Step::List),
        3 => n.clone().prop_map(Step::Settle),
        2 => n.clone().prop_map(Step::MakeAgain),
        2 => n.clone().prop_map(Step::Send),
        2 => (0_u8..8).prop_map(Step::Arrives),
        2 => n.clone().prop_map(Step::Publish),
        1 => n.clone().prop_map(Step::Crash),
        6 => n.clone().prop_map(Step::Watch),
        1 => n.clone().prop_map(Step::Gone),
        1 => n.clone().prop_map(Step::Returns),
        2 => Just(Step::Collect),
        1 => (n, 0_u8..8).prop_map(|(n, number)| Step::Deleted(n, number)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_address_is_ever_issued_by_two(
        steps in prop::collection::vec(step(), 1..200),
        length in 27_u8..=31,
    ) {
        let mut cluster = Cluster::new(length);
        for step in steps {
            cluster.step(step);
            cluster.check()?;
        }
    }
}

/// The way that it is meant to go, so that the histories above are not all idle.
#[test]
fn a_full_network_goes_on_by_gifts() {
    let mut cluster = Cluster::new(27);
    cluster.step(Step::Add(0, 0));
    cluster.step(Step::Watch(1));
    cluster.step(Step::Add(1, 0));
    assert!(cluster.nodes[1].addresses.is_empty(), "no block is free");
    cluster.step(Step::Give(0, 1, 4, Dies::BeforeStatus));
    cluster.step(Step::Take(1));
    assert_eq!(cluster.api.len(), 1, "nobody was told");
    cluster.step(Step::Publish(0));
    for step in [Step::Watch(1), Step::Take(1), Step::Add(1, 0)] {
        cluster.step(step);
    }
    assert_eq!(cluster.nodes[1].addresses["o0"].to_string(), "10.1.0.4");
    // The giver cannot have it, whatever it asks for.
    for owner in 0..40 {
        cluster.step(Step::Add(0, owner));
    }
    assert_eq!(cluster.nodes[0].addresses.len(), 29 - 4);
    // The asker's machine is gone: its block returns, and its addresses are the giver's again.
    cluster.step(Step::Watch(0));
    cluster.step(Step::Gone(1));
    cluster.step(Step::Collect);
    cluster.step(Step::TakeBack(0));
    assert_eq!(cluster.api.len(), 1, "the giver has not seen it yet");
    for step in [
        Step::Watch(0),
        Step::TakeBack(0),
        Step::Publish(0),
        Step::Add(0, 41),
    ] {
        cluster.step(step);
    }
    assert_eq!(cluster.api.len(), 2);
    assert_eq!(cluster.nodes[0].addresses.len(), 29 - 4 + 1);
}

/// Two blocks: the first node's and the third's. The first gives half of what it has to the second, and
/// then somebody deletes its block.
fn given_and_deleted(taken: bool) -> Cluster {
    let mut cluster = Cluster::new(28);
    for step in [Step::Add(0, 0), Step::Watch(2), Step::Add(2, 0)] {
        cluster.step(step);
    }
    cluster.step(Step::Give(0, 1, 4, Dies::Not));
    cluster.step(Step::Watch(1));
    if taken {
        cluster.step(Step::Take(1));
    }
    for step in [Step::Del(0, 0), Step::Deleted(0, 0)] {
        cluster.step(step);
    }
    cluster
}

/// All that a node can get.
fn fill(cluster: &mut Cluster, n: usize) -> usize {
    for owner in 0..40 {
        cluster.step(Step::Add(n, owner));
        cluster.check().unwrap();
    }
    cluster.nodes[n].addresses.len()
}

#[test]
fn whoever_claims_a_block_sees_the_parts_in_it_however_old_its_cache_is() {
    let mut cluster = given_and_deleted(true);
    assert_eq!(fill(&mut cluster, 1), 4);
    // The fourth has never seen anything; its own block has a hole, and it says so.
    let block = fill(&mut cluster, 3);
    assert!((9..=11).contains(&block), "{block}");
    cluster.step(Step::Publish(3));
    cluster.step(Step::Watch(1));
    cluster.step(Step::Del(1, 0));
    cluster.step(Step::Add(1, 50));
    assert_eq!(
        cluster.nodes[1].addresses.len(),
        4,
        "it is granted by the new owner"
    );
}

/// The third has made a block of a part that is no longer given; then the owner's block is deleted and
/// made again: what its pods have is not given to anybody.
#[test]
fn nobody_gives_what_its_own_pods_have() {
    let mut cluster = given_and_deleted(false);
    fill(&mut cluster, 3);
    cluster.step(Step::Take(1));
    let used = cluster.nodes[3].addresses.len();
    for step in [Step::Deleted(3, 0), Step::Watch(1)] {
        cluster.step(step);
        assert_eq!(fill(&mut cluster, 1), 0, "nobody gave it that");
    }
    for step in [
        Step::MakeAgain(3),
        Step::List(3),
        Step::Settle(3),
        Step::Publish(3),
        Step::Watch(1),
        Step::List(1),
        Step::Settle(1),
    ] {
        cluster.step(step);
        assert_eq!(fill(&mut cluster, 1), 0);
    }
    assert_eq!(cluster.nodes[3].addresses.len(), used);
}

/// A word that comes late is said of a block that is another's by now.
#[test]
fn what_comes_late_gives_nothing_of_the_next_owner_s() {
    let mut cluster = Cluster::new(27);
    for step in [
        Step::Add(0, 0),
        Step::Give(0, 1, 4, Dies::BeforeStatus),
        Step::Send(0),
        Step::Gone(0),
        Step::Collect,
    ] {
        cluster.step(step);
    }
    fill(&mut cluster, 2);
    for step in [Step::Arrives(0), Step::Watch(1), Step::Take(1)] {
        cluster.step(step);
    }
    assert_eq!(fill(&mut cluster, 1), 0);
}

/// The rest of what a node had returns though a part of it is another's, and so does a part that was
/// never given.
#[test]
fn the_rest_of_a_block_returns_when_its_node_is_gone() {
    let mut cluster = Cluster::new(27);
    cluster.step(Step::Add(0, 0));
    cluster.step(Step::Give(0, 1, 4, Dies::Not));
    for step in [Step::Watch(1), Step::Take(1), Step::Gone(0), Step::Collect] {
        cluster.step(step);
    }
    assert_eq!(cluster.api.len(), 1, "the part is there");
    cluster.step(Step::Watch(1));
    cluster.step(Step::Add(1, 0));
    // One that knows the part claims the rest, but dies before it looks.
    for step in [
        Step::Watch(2),
        Step::Post(2),
        Step::Crash(2),
        Step::Add(2, 0),
    ] {
        cluster.step(step);
    }
    assert!(cluster.nodes[2].addresses.is_empty(), "not looked at yet");
    for step in [
        Step::List(2),
        Step::Settle(2),
        Step::Publish(2),
        Step::Watch(1),
    ] {
        cluster.step(step);
    }
    assert_eq!(fill(&mut cluster, 1), 4);
    assert_eq!(fill(&mut cluster, 2), 29 - 4);
}

/// A node has a block inside a part that it now claims the block around: the part is still whose it was,
/// though pods of the claiming node have addresses in it.
#[test]
fn a_part_whose_owner_gave_this_node_some_of_it_stays_its_owner_s() {
    let mut cluster = Cluster::new(27);
    for step in [
        Step::Post(3),
        Step::List(3),
        Step::Settle(3),
        Step::Give(3, 1, 4, Dies::BeforeStatus),
        Step::Give(3, 0, 2, Dies::After),
        Step::Gone(3),
        Step::Deleted(0, 0),
        Step::Del(0, 0),
        Step::Add(1, 0),
        Step::Add(0, 0),
        Step::Returns(3),
        Step::Take(0),
        Step::Give(0, 3, 1, Dies::After),
        Step::Collect,
        Step::Watch(3),
        Step::Take(3),
        Step::Add(3, 0),
        Step::Add(0, 0),
        Step::Add(3, 1),
    ] {
        cluster.step(step);
        cluster.check().unwrap();
    }
    assert_eq!(cluster.nodes[3].addresses.len(), 2, "it claimed the block");
}

/// A node journals donations of a block that is then deleted. The next owner knows nothing of them, and donates a part
/// around them; the node that claims the block again must not issue from that part.
#[test]
fn a_donation_of_an_earlier_object_gives_way_to_the_part_around_it() {
    let mut cluster = Cluster::new(27);
    for step in [
        Step::Post(3),
        Step::List(3),
        Step::Settle(3),
        Step::Give(3, 1, 2, Dies::BeforeStatus),
        Step::Give(3, 1, 2, Dies::BeforeStatus),
        Step::Deleted(3, 0),
        Step::Post(2),
        Step::List(2),
        Step::Settle(2),
        Step::Give(2, 0, 4, Dies::Not),
        Step::Watch(0),
        Step::Take(0),
        Step::Gone(2),
        Step::Collect,
    ] {
        cluster.step(step);
        cluster.check().unwrap();
    }
    assert_eq!(fill(&mut cluster, 0), 4);
    assert!(fill(&mut cluster, 3) >= 29 - 4 - 2);
}

/// … or inside them: whoever makes a block of the donation again leaves that part out.
#[test]
fn a_donation_of_an_earlier_object_is_taken_back_without_the_part_inside() {
    let mut cluster = Cluster::new(27);
    for step in [
        Step::Post(3),
        Step::List(3),
        Step::Settle(3),
        Step::Give(3, 1, 8, Dies::BeforeStatus),
        Step::Deleted(3, 0),
        Step::Post(2),
        Step::List(2),
        Step::Settle(2),
        Step::Give(2, 1, 4, Dies::Not),
        Step::Give(2, 0, 4, Dies::Not),
        Step::Watch(0),
        Step::Take(0),
        Step::Gone(2),
        Step::Gone(1),
        Step::Collect,
        Step::Watch(3),
        Step::Post(3),
        Step::List(3),
        Step::Settle(3),
        Step::TakeBack(3),
    ] {
        cluster.step(step);
        cluster.check().unwrap();
    }
    assert_eq!(fill(&mut cluster, 0), 4);
    assert!(fill(&mut cluster, 3) >= 29 - 8);
}

#[test]
fn a_gift_that_is_void_is_not_used() {
    let mut cluster = given_and_deleted(false);
    let block = fill(&mut cluster, 3);
    assert!((13..=15).contains(&block), "{block}");
    // The second still sees the donation of the block's last owner.
    cluster.step(Step::Take(1));
    assert_eq!(cluster.api.len(), 3);
    assert_eq!(fill(&mut cluster, 1), 0);
    cluster.step(Step::Watch(1));
    assert_eq!(fill(&mut cluster, 1), 0);
    cluster.step(Step::Collect);
    assert_eq!(cluster.api.len(), 2, "what nobody gave is gone");
}
