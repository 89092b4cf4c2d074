//! The server as clients see it: what survives restarts, kills and a full disk; what hostile and slow
//! peers can do; how watches, namespaces and owners behave. What Kubernetes clients rely on in detail
//! is in the conformance suite, which runs against this server and a real one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod bounds;
mod collected;
mod common;
mod costs;
mod crash;
mod disk_full;
mod hostile;
mod listeners;
mod peers;
mod pods;
mod restart;
mod views;
mod watches;
mod writes;

/// Nothing, unless a test has started this program to be a server.
#[test]
fn be_a_server() {
    common::serve_if_asked();
}
