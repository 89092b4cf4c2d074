//! Plexus as the CNI of the cluster: all interfaces of a pod in one ADD, in order, and all of them gone
//! with the pod; shown by pods and packets.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;
#[path = "standalone/default_route.rs"]
mod default_route;
#[path = "standalone/edited.rs"]
mod edited;
#[path = "standalone/failure.rs"]
mod failure;
#[path = "standalone/order.rs"]
mod order;
#[path = "standalone/router.rs"]
mod router;
#[path = "standalone/traces.rs"]
mod traces;
