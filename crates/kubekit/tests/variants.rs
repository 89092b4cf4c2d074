//! The other ways to run Plexus, each in a small lab of its own: kube-proxy in iptables mode with
//! blocks that Plexus claims instead of the nodes' podCIDRs; and another CNI for the first interface.
//! One lab at a time.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

#[path = "variants/audit.rs"]
mod audit;
#[path = "variants/blocks.rs"]
mod blocks;
mod common;
#[path = "variants/delegate.rs"]
mod delegate;
#[path = "variants/own_lab.rs"]
mod own_lab;
#[path = "common/web.rs"]
mod web;
