//! Multi-NIC networks: the arithmetic as input and expected output, the seed's example, and what holds of every
//! assignment.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod assignment;
mod properties;
mod rendering;
mod stage;
mod vectors;
