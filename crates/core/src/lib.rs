//! Decisions. Owns what Plexus decides: which attachments a container gets (`resolve`), which
//! addresses (`ipam`), and which kernel objects that means (`plan`).
//!
//! Does no I/O, reads no clock, is not async and iterates no hash map: time and randomness are
//! arguments. Validated configuration goes in, plain values come out.

pub mod attachment;
pub mod fabric;
pub mod ipam;
pub mod plan;
pub mod rehearse;
pub mod resolve;
mod stable;
pub mod wish;
