//! The user's verbs on a real lab: good and bad input, every form of output, on a terminal and in a pipe; and
//! the faults that `diagnose` and `doctor` are about, produced for real. Needs root. Each test has a lab of
//! its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "everything here is part of a test"
)]

mod claims;
mod diagnose;
mod doctor;
mod kernel;
#[path = "../lab/machine.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod machine;
mod mounts;
mod output;
mod plan;
mod verbs;
