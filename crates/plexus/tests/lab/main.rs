//! `plexus lab` from outside: real processes, real namespaces, real pings. Needs root. Each test has a lab of
//! its own, and leaves nothing of it, also when it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "everything here is part of a test"
)]

mod contexts;
mod documents;
mod killed;
mod left;
mod machine;
mod nics;
mod nodes;
mod pods;
mod readme;
mod routes;
mod topology;
