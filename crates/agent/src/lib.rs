//! The node. Owns the journal, the transactions that attach and detach, the restoring of what a
//! node had, and the socket that `plexus-cni` calls.
//!
//! Computes nothing that `core` should and touches the kernel only through `kernel`. One
//! directory is one agent; everything is relative to that directory, the socket and the network
//! namespace that it runs in, so that a machine can hold many.

#![forbid(unsafe_code)]

mod addresses;
mod agent;
mod background;
mod cluster;
mod failure;
mod host;
mod journal;
mod node;
mod options;
mod recover;
mod report;
mod serve;
mod span;
mod start;
mod sync;
mod verb;

pub use cluster::ClusterError;
pub use host::install::{InstallError, shim_beside_us};
pub use host::lock::LockError;
pub use host::mounts::MountError;
pub use host::uninstall::{UninstallError, uninstall, written_for_runtimes};
pub use journal::JournalError;
pub use options::{ClusterNetwork, Kubernetes, Options};
pub use plexus_core::resolve::NamespaceRules;
pub use serve::server::ListenError;
pub use serve::tcp::QueryListenError;
pub use start::{StartError, run, run_until};
