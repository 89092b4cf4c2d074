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
mod backoff;
mod call;
mod check;
mod claims;
mod cluster;
mod cluster_network;
mod conflist;
mod conflists;
mod delegate;
mod detach;
mod fabric;
mod facts;
mod failure;
mod front;
mod gate;
mod gc;
mod gifts;
mod health;
mod http;
mod install;
mod ipam;
mod journal;
mod lock;
mod metrics;
mod mounts;
mod node;
mod options;
mod peer;
mod place;
mod provider;
mod query;
mod queued;
mod register;
mod removals;
mod replay;
mod reports;
mod sandbox;
mod server;
mod start;
mod status;
mod tcp;
mod underlay;
mod uninstall;
mod uplink;
mod verbs;
mod view;
mod whose;

pub use cluster::ClusterError;
pub use install::{InstallError, shim_beside_us};
pub use journal::JournalError;
pub use lock::LockError;
pub use mounts::MountError;
pub use options::{ClusterNetwork, Kubernetes, Options};
pub use server::ListenError;
pub use start::{StartError, probe, run, run_until};
pub use tcp::QueryListenError;
pub use uninstall::{UninstallError, uninstall, written_for_runtimes};
