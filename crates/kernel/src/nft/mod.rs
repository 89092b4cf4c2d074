//! nf_tables over netlink. Owns one table, `inet plexus`, with the masquerading of the node's
//! networks, what keeps pods apart (`guard`) and the node's ports that lead to pods
//! ([`host_ports`]), and puts it back when somebody removes it (`restore`); never touches another
//! table, and needs no `nft` binary.
//!
//! ```text
//! table inet plexus {
//!   chain postrouting {
//!     type nat hook postrouting priority srcnat; policy accept;
//!     ip saddr 10.1.0.0/24 ip daddr != 10.1.0.0/24 ip daddr != 224.0.0.0/4 masquerade comment "plexus blue"
//!   }
//! }
//! ```

pub(crate) mod chain;
pub(crate) mod encode;
pub mod guard;
pub mod host_ports;
mod masquerade;
mod peers;
mod restore;

pub(crate) use masquerade::probe;
pub use masquerade::{NftError, ensure, list, remove};
pub(crate) use restore::Table;
pub use restore::{RestoreError, restore, restore_missing};
