//! The same configurations given to the CNI project's plugins and to ours, each on a fresh node
//! with fresh containers, and everything that both leave behind compared: results, links,
//! addresses, routes, rules, neighbours, sysctls and files; firewalls by packets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod deliberate;
mod facts;
mod host_local;
#[path = "../interop/mod.rs"]
mod interop;
mod keys;
mod pairs;
mod reference;
mod traffic;
mod twins;

use pairs::Pair;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most of the time is spent waiting for the reference's duplicate address detection.
const CONCURRENT_PAIRS: usize = 4;

#[test]
fn native_networks_are_as_the_reference_makes_them() {
    compare(&pairs::native());
    let stale: Vec<&str> = deliberate::unused();
    assert!(
        stale.is_empty(),
        "differences that no longer occur: {stale:?}"
    );
}

#[test]
fn delegated_networks_are_as_the_reference_makes_them() {
    compare(&pairs::delegated());
}

#[test]
fn every_key_is_compared() {
    keys::check();
}

/// Goes through all pairs and reports on all of them.
fn compare(pairs: &[Pair]) {
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENT_PAIRS {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let found = twins::compare(pair);
                    let found = found
                        .into_iter()
                        .map(|text| format!("{}: {text}", pair.name));
                    problems.lock().unwrap().extend(found);
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(
        problems.is_empty(),
        "- is the reference, + is ours\n{}",
        problems.join("\n")
    );
}
