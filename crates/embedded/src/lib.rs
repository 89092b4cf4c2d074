//! The embedded API: the part of the Kubernetes REST protocol that kube-rs and kubectl use, over
//! SQLite, for one machine. Knows schemas; never what the objects mean (a validator is handed in).
//!
//! ```text
//!   request ──► http ──► verbs ──► patch, schema (pure) ──► store ──► watch ──► every watcher
//! ```

pub mod patch;
pub mod schema;
pub mod status;
