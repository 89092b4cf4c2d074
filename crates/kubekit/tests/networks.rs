//! Networks, from objects and from NADs: what is accepted, what becomes of it, and who reaches whom,
//! shown by pods and packets.
#![cfg(feature = "e2e")]
#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

#[path = "networks/blocks.rs"]
mod blocks;
#[path = "networks/changed.rs"]
mod changed;
mod common;
#[path = "networks/isolation.rs"]
mod isolation;
#[path = "networks/nads.rs"]
mod nads;
#[path = "networks/objects.rs"]
mod objects;
#[path = "networks/outside.rs"]
mod outside;
#[path = "networks/plugins.rs"]
mod plugins;
#[path = "networks/reported.rs"]
mod reported;
#[path = "networks/whereabouts.rs"]
mod whereabouts;
