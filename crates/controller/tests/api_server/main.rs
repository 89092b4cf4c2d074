//! The controller against a real API server: give its kubeconfig, with every right, as
//! `PLEXUS_TEST_KUBECONFIG`. Our CRDs are applied; namespaces and Nodes of these tests are removed.
//! Nodes and pods are only objects here: nothing runs, and no other controller is needed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod admission;
mod donations;
mod election;
mod environment;
mod later;
mod nads;
mod networks;
mod nodes;
mod policies;
