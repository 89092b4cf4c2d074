//! Die at the k-th effect, k rising until a run survives: agent and shim, ADD and DEL and
//! start-up, one and four interfaces, with and without a delegate.
//!
//! After each death an agent is started again. Then full dumps of node, pod, pools and journal
//! must equal those of "never begun" or "completed", a repeated ADD must complete, and a DEL must
//! leave what never began. Every pool has just one address: one that leaks is missed at once.
//!
//! Three cases take every place to die: one link, four with all that belongs to them, and steps outside the kernel. The others
//! have the same steps in other links: they take each third place, and on each day others. `make test-long` takes all.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod bare;
mod case;
mod harness;

use case::Case;
use harness::{Harness, Queue};

/// What `harness` runs on is there when this panics, and leaves its logs.
fn done<H>(harness: H, run: impl FnOnce(&H) -> Result<usize, String>) {
    let start = std::time::Instant::now();
    let deaths = run(&harness);
    let deaths = deaths.unwrap_or_else(|why| panic!("{why}"));
    println!("died {deaths} times in {:?}", start.elapsed());
    assert!(
        deaths > 0,
        "the process never died: is it built with the feature faults?"
    );
}

/// All places.
fn each(harness: Harness) -> Harness {
    harness
}

/// Each third, another on each day; all if the variable says that there is time.
fn third(harness: Harness) -> Harness {
    match std::env::var_os("PLEXUS_TEST_LONG") {
        Some(_) => harness,
        None => harness.every(3, day() % 3),
    }
}

fn day() -> usize {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    usize::try_from(now.unwrap().as_secs() / (24 * 60 * 60)).unwrap()
}

macro_rules! crash_tests {
    ($($name:ident: $case:expr, $start_up:expr, $places:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn agent_in_add() {
                done($places(Harness::new($case)), |harness| harness.agent_dies_in_add());
            }

            #[test]
            fn agent_in_del() {
                done($places(Harness::new($case)), |harness| harness.agent_dies_in_del(Queue::Removed));
            }

            #[test]
            fn agent_at_start() {
                done($places(Harness::new($case)), |harness| harness.agent_dies_at_start($start_up));
            }

            #[test]
            fn shim() {
                done($places(Harness::new($case)), |harness| harness.shim_dies());
            }
        }
    )*};
}

// The number: how many of the places to die in an ADD, and in a DEL, are then also died over at
// start-up.
crash_tests! {
    one_macvlan: Case::MACVLAN, 3, each;
    one_bridge: Case::BRIDGE, 2, third;
    four: Case::FOUR, 2, each;
    one_delegate: Case::DELEGATE, 2, third;
    four_with_delegate: Case::FOUR_WITH_DELEGATE, 2, third;
    executed_ipam: Case::EXECUTED_IPAM, 1, third;
    stand_in: Case::STAND_IN, 1, each;
    one_host_device: Case::HOST_DEVICE, 2, third;
}

#[test]
fn agent_in_del_that_is_queued() {
    let queued = |harness: &Harness| harness.agent_dies_in_del(Queue::Intact);
    done(Harness::new(Case::MACVLAN), queued);
    done(third(Harness::new(Case::FOUR_WITH_DELEGATE)), queued);
}

#[test]
fn from_bare() {
    done(Case::BRIDGE, |case| bare::agent_dies_in_add(*case));
}

#[test]
fn a_wrong_order_is_noticed() {
    let harness = Harness::new(Case::MACVLAN).with_mistake("journal-late");
    let why = harness
        .agent_dies_in_add()
        .expect_err("a journal written too late goes unnoticed");
    println!("noticed: {why}");
    assert!(why.contains("differs"), "noticed for another reason: {why}");
}
