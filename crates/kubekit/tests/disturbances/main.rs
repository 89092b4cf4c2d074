//! What disturbs a cluster, one scenario after the other on the same one, because each takes minutes to come up: pods that are deleted,
//! agents and controllers that restart, and everything else that dies. `PLEXUS_SCENE` chooses scenarios by a part of their names.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

#[path = "../common/mod.rs"]
mod common;
mod deletion;
#[path = "../disturb/mod.rs"]
mod disturb;
mod faults;
mod restart;

#[test]
fn disturbances() {
    // A restored etcd disturbs most: `faults` is last.
    let scenarios = [
        deletion::scenarios(),
        restart::scenarios(),
        faults::scenarios(),
    ];
    disturb::run_scenarios(&scenarios.into_iter().flatten().collect::<Vec<_>>());
}
