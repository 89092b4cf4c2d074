//! Plexus as the CNI of the cluster: all interfaces of a pod in one ADD, in order, and all of them gone
//! with the pod; shown by pods and packets.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;
#[path = "one_add/default_route.rs"]
mod default_route;
#[path = "one_add/edited.rs"]
mod edited;
#[path = "one_add/failure.rs"]
mod failure;
#[path = "one_add/order.rs"]
mod order;
#[path = "one_add/router.rs"]
mod router;
#[path = "one_add/traces.rs"]
mod traces;
