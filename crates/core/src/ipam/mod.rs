//! Addresses. Owns the decision which address an attachment gets: [`Pool`] over one subnet,
//! [`Pools`] for IPAM `plexus`, [`host_local`] for the order in which host-local tries its ranges.
//!
//! Keeps nothing on disk and asks nobody: the agent journals what is decided here, and replays it.

mod error;
mod fixed;
pub mod host_local;
mod index;
mod key;
mod pool;
mod pools;
mod runs;

pub use error::AllocateError;
pub use fixed::assigned_static;
pub use index::{address_at, exclude_range, index_of};
pub use key::PoolKey;
pub use pool::{Pool, PoolError};
pub use pools::Pools;
pub(crate) use pools::every_subnet;
