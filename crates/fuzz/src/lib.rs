//! Hostile input for the readers of the other rooms: a committed corpus that each commit replays, and
//! mutations of it that know JSON and netlink attributes. Owns mutation, guards and what a failure leaves behind.
//!
//! ```text
//!   tests/corpus/<target>/*  ──►  replay  ──►  mutate, seeded  ──►  check(bytes)  ──►  what it came to
//!                                               ▲                                      │
//!                                               └── kept, if nothing came to that yet ─┘
//! ```
//!
//! A target is a unit test of the room that has the reader: it names its corpus and a check, which panics if a
//! property does not hold. Knows no reader, and uses no other room. Never linked into a product; panics where a
//! test should fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "everything here is part of a test"
)]

mod attributes;
mod bytes;
mod corpus;
mod guard;
mod json;
mod mutate;
mod rng;
mod target;

pub use mutate::Kind;
pub use rng::Rng;
pub use target::{Target, bounded};
