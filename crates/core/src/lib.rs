//! Decisions. Owns what Plexus decides: which networks a container refers to (`resolve`), which
//! addresses it gets (`ipam`), which kernel objects that means (`plan`), and in which steps a request is served
//! (`attach`).
//!
//! Does no I/O, reads no clock, is not async and iterates no hash map: time and randomness are
//! arguments. Validated configuration goes in, plain values come out.

pub mod attach;
pub mod attachment;
pub mod fabric;
pub mod ipam;
pub mod nad_meaning;
pub mod nic_routes;
pub mod nics;
pub mod plan;
pub mod refusal;
pub mod resolve;
mod stable;
