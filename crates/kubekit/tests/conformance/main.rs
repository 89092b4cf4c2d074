//! What we rely on of an API server, whoever wrote it. Takes a kubeconfig
//! (`PLEXUS_CONFORMANCE_KUBECONFIG`, else that of the lab, else `KUBECONFIG`) with the right to do
//! everything, and a server that has our kinds; uses nothing but kube-rs.
//!
//! Every test has a namespace of its own, which goes when it ends. Tests in [`collector`] need a
//! garbage collector, all others the server alone: they pass while our controller and agents run,
//! and while they do not.
#![cfg(feature = "e2e")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod apply;
mod collector;
mod crud;
mod deletion;
mod events;
mod lists;
mod patch;
mod schema;
mod selectors;
mod status;
mod test_namespace;
mod versions;
mod views;
mod watch;
