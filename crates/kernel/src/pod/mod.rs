//! A pod's interfaces, made and removed. Owns the order of the messages; never undoes by itself
//! what it made: the caller does, with [`remove`].
//!
//! ```text
//! node socket   a number for the pod's namespace, if links have no end on the node
//! node socket   NEWLINK ×n (born in the pod, down; node ends up, marked); devices of the node are marked and moved
//! pod socket    sysctls, then: lo up, aliases, addresses, up, neighbours, routes, rules
//! node socket   sysctls, routes and neighbours of the node ends
//! both          announce, read back
//! ```

mod apply;
mod error;
mod give_back;
mod living;
mod remove;
mod restore;

pub use apply::{Applied, ApplyError, apply, observe};
pub use living::{living, on_node};
pub use remove::{RemoveError, Removed, is_there, remove, remove_marked};
pub use restore::restore_node;
