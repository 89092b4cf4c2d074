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
#[cfg(test)]
pub(crate) mod fuzz;
pub mod guard;
pub mod host_ports;
mod masquerade;
mod peers;
mod restore;
mod set;

use crate::{NetlinkError, NetnsError, NodeSide, Socket};
use masquerade::EXCEPTIONS_AT_MOST;
pub(crate) use masquerade::probe;
pub use masquerade::{ensure, list, remove};
use plexus_types::NetworkName;
pub(crate) use restore::Table;
pub use restore::{RestoreError, restore, restore_missing};

/// nf_tables refused, or is not there.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The node's namespace cannot be used.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// More than a rule can say.
    #[error(
        "masquerading of {network} has {count} exceptions of one family, and the kernel takes {EXCEPTIONS_AT_MOST}: join neighbouring ranges"
    )]
    TooManyExceptions {
        /// The network.
        network: NetworkName,
        /// How many.
        count: usize,
    },
    /// The rules cannot be read.
    #[error("cannot list the rules of table inet plexus: does the kernel have nf_tables?")]
    List(#[source] NetlinkError),
    /// The rules cannot be changed.
    #[error(
        "cannot change table inet plexus: does the kernel have nf_tables with nat and masquerade (5.2 or newer)?"
    )]
    Change(#[source] NetlinkError),
}

/// Runs `work` with a socket for nf_tables in the node's namespace.
fn with_tables<T, E: From<NftError>>(
    node: &NodeSide,
    work: impl FnOnce(&mut Socket) -> Result<T, E>,
) -> Result<T, E> {
    let done = node.inside(|| work(&mut Socket::netfilter().map_err(NftError::List)?));
    done.map_err(NftError::from)?
}
