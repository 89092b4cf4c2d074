//! Addresses. Owns the decision which address an attachment gets: [`choose`], by a file per IPAM, [`Pool`] over one subnet,
//! [`Pools`] for IPAM `plexus` and for blocks of networks that nodes share, [`blocks_to_try`] for
//! the order in which a node claims those, [`Donation`] for parts of them that other nodes get,
//! [`is_legal`] for whose a block inside another one is, [`host_local`] for the order in which
//! host-local tries its ranges, [`Share`] for how full something is.
//!
//! Keeps nothing on disk and asks nobody: the agent journals what is decided here, and replays it.

mod allocator;
mod blocks;
mod claim;
mod donation;
mod error;
mod executed;
mod fixed;
pub mod host_local;
mod index;
mod key;
mod legal;
mod plexus;
mod pool;
mod pools;
mod runs;
mod share;

pub(crate) use allocator::of;
pub use allocator::{AddressStore, choose};
pub use blocks::{BlockSource, NodeBlocks};
pub use claim::{MOST_CANDIDATES, blocks_to_try};
pub use donation::{Donation, rounds_to_wait, superseded};
pub use error::AllocateError;
pub use executed::assigned_executed;
pub use host_local::Unreadable;
pub use index::{address_at, exclude_range, index_of};
pub use key::PoolKey;
pub use legal::{EnclosingBlock, enclosing_block, given_within, is_legal};
pub use pool::{Pool, PoolError};
pub use pools::Pools;
pub use share::{Share, shares, tightest};
