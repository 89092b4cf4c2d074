//! What whole-system tests are made of. Owns namespaces that clean up after themselves, a node
//! with an uplink to an outside, pods, the agent as a process, CNI calls as a runtime makes them,
//! full dumps of a namespace, and a fake plugin to delegate to.
//!
//! Looks at the product from outside only: its binaries, its socket, its files, the kernel. Uses
//! `ip`, `nft` and `sqlite3` for looking, so that a mistake in our own netlink code cannot hide
//! itself. Never linked into a product binary; panics where a test should fail.
//!
//! ```text
//!   outside ns ── veth ── eth1 ┐ node ns: agent, bridges     state dir, pools, fake plugin
//!                              ├── pod ns
//!                              └── pod ns
//! ```
//!
//! `PLEXUS_TEST_KEEP=1` keeps namespaces and directories of a failed test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "everything here is part of a test"
)]

mod agent;
pub mod answers;
pub mod bench;
mod bin;
pub mod config;
mod delegate;
mod dump;
mod examples;
pub mod failed;
mod fake_ipam;
mod http;
mod journal;
mod netns;
pub mod nic;
mod node;
mod pod;
mod process;
mod stand_in;
mod up;

pub use agent::{Agent, Start};
pub use bin::{PLEXUS, SHIM, bin};
pub use delegate::FAKE;
pub use dump::{Dump, DumpBuilder};
pub use examples::{example, examples, examples_of_another_version};
pub use fake_ipam::{FAKE_IPAM, fake_ipam};
pub use http::{Response, exchange, get, post, send};
pub use journal::{Journal, Row};
pub use netns::NetNs;
pub use node::Node;
pub use plexus_fuzz::Rng;
pub use pod::{Call, CniOutput, Pod};
pub use process::{Running, TIMEOUT, eventually, run, within};
pub use stand_in::StandIn;
pub use up::Up;
