//! The node. Owns the journal, the transactions that attach and detach, the restoring of what a
//! node had, and the socket that `plexus-cni` calls.
//!
//! Computes nothing that `core` should and touches the kernel only through `kernel`. One
//! directory is one agent; everything is relative to that directory, the socket and the network
//! namespace that it runs in, so that a machine can hold many.

#![forbid(unsafe_code)]

mod admission;
mod adopt;
mod attach;
mod background;
mod call;
mod check;
mod delegate;
mod detach;
mod facts;
mod failure;
mod gc;
mod http;
mod ipam;
mod journal;
mod lock;
mod metrics;
mod node;
mod options;
mod peer;
mod query;
mod queued;
mod replay;
mod sandbox;
mod segment;
mod server;
mod start;
mod status;
mod uplink;
mod verbs;

pub use journal::JournalError;
pub use lock::LockError;
pub use options::Options;
pub use server::ListenError;
pub use start::{StartError, probe, run};
