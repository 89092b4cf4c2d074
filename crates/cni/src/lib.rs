//! The CNI protocol, both sides. Owns the shim `plexus-cni`, which carries a runtime's request to
//! the agent; the queue of DELs that arrived while no agent was there; and the runner that
//! executes other CNI plugins for the agent.
//!
//! Knows no Kubernetes, makes no decision about networks, touches no netlink.

#![forbid(unsafe_code)]

pub mod delegate;
#[cfg(test)]
mod fuzz;
pub mod queue;
pub mod shim;
