//! The cluster: networks from NADs, phases, VNIs, blocks of nodes that are gone, and what users
//! must be told about them. Watches and writes API objects; never touches a kernel and is never in
//! the way of a pod's start.
//!
//! ```text
//!   watches ──► cache (objects, indexes) ──► queue of keys ──► act ──► decide (pure) ──► patches
//! ```
//!
//! One replica acts at a time ([`lease`]); what it does is decided anew from what the API says, so
//! that a successor continues where it stopped.

mod act;
mod api;
mod api_multi_nic;
mod cache;
mod crds;
mod decide;
mod engine;
mod error;
mod events;
mod health;
mod later;
mod lease;
mod metrics;
mod options;
mod queue;
mod run;
mod watch;

pub use error::Error;
pub use options::{ClusterNetwork, Options, OwnCidrs};
pub use run::{run, run_until};

/// How our writes are signed in `managedFields`.
pub(crate) const FIELD_MANAGER: &str = "plexus-controller";
