//! `make test-lab`: a lab of three nodes on which things go wrong. Real processes, real namespaces; needs root, and programs
//! with the feature `faults`. Each test has labs of its own and leaves nothing of them, also when it fails.
//!
//! ```text
//!   churn       500 attachments and detachments while server, controller and agents are killed at random
//!   donations   no block is free: parts of blocks change hands, whoever dies in between
//!   removal     nodes go, and their blocks return
//!   api_away    a minute without the API
//!   disk_full   the server cannot write
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "everything here is part of a test"
)]

mod api_away;
mod churn;
mod disk_full;
mod donations;
mod objects;
mod observe;
mod parts;
mod removal;
mod runtime;

#[path = "../lab/machine.rs"]
#[allow(dead_code, reason = "the other tests of the lab use the rest of it")]
mod machine;
