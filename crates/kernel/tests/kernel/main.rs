//! The kernel room against a real kernel: namespaces, links, traffic. Needs root. What is looked at
//! is looked at with `ip`, `nft`, `ping` and `tcpdump`, so that a mistake in our own netlink code
//! cannot hide itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "everything here is part of a test"
)]

mod announce;
mod block_routes;
mod bridge;
mod clear;
mod fabric_lab;
mod guard;
mod host_ports;
mod lab;
mod living;
mod macvlan;
mod netns;
mod nft;
mod nic_routes;
mod nics;
mod node;
mod probe;
mod refusals;
mod remove;
mod routed;
mod router;
mod router_crash;
mod scan;
mod timing;
mod wires;
