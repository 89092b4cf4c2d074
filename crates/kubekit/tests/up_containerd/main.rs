//! `plexus up` with containerd: pod sandboxes that no Kubernetes knows, made with `crictl`, on
//! networks that their annotations name; containers on networks by name, made with `nerdctl`. While
//! everything comes and goes.
#![cfg(feature = "e2e")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod calls;
mod containerd;
mod nerdctl;
mod sandboxes;

use plexus_testkit::{Up, within};
use serde_json::json;
use std::time::Duration;

/// More than any call takes.
const TIMEOUT: Duration = Duration::from_secs(60);

#[track_caller]
fn eventually(what: &str, question: impl FnMut() -> bool) {
    assert!(within(TIMEOUT, question), "not within {TIMEOUT:?}: {what}");
}

/// A network that is part of the node's own, and one that is apart.
fn networks(up: &Up<'_>) {
    let routed = json!({"provider": "routed", "subnets": {"a": {"cidr": "10.62.0.0/24"}}});
    up.network("default/fabric", &routed, "fabric");
    let overlay = json!({"subnets": {"a": {"cidr": "10.61.0.0/24"}}});
    up.network("default/blue", &overlay, "blue");
}
