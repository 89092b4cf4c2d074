//! The kernel, observed and changed. Owns netlink, network namespaces, nftables and sysctls; one
//! file per kernel object; the only `unsafe` of the project is in `sys`.
//!
//! Decides nothing: a [`PodPlan`](plexus_core::plan::PodPlan) or a
//! [`NodePlan`](plexus_core::plan::NodePlan) goes in, kernel objects and an
//! [`Observed`](plexus_core::plan::Observed) come out. Everything blocks, nothing is async: a
//! network namespace belongs to an OS thread.
//!
//! ```text
//! pod::apply ─┬─ link, address, route, rule, neighbour   build messages, read answers
//!             ├─ netlink::Socket                         one send, all answers, first error
//!             ├─ Netns::enter                            the thread goes in and comes back
//!             └─ sysctl, announce                        what netlink cannot say
//! ```
//! What others change is told by [`events`], to whoever waits for it.

mod address;
pub mod announce;
mod boot;
mod bridge;
mod changes;
pub mod clear;
mod devconf;
mod device;
pub mod echo;
mod effect;
mod ethtool;
pub mod events;
pub mod fabric;
mod fdb;
#[cfg(test)]
mod fuzz;
mod hint;
mod link;
mod managed;
pub mod memory;
pub mod mount;
pub mod mountinfo;
pub mod named;
mod neighbour;
pub mod netlink;
mod netns;
mod nexthop;
pub mod nft;
pub mod nic_routes;
pub mod nics;
pub mod node;
mod node_side;
mod nsid;
pub mod observe;
mod own_proc;
mod peer;
mod pinned;
pub mod pod;
mod probe;
mod procfs;
pub mod residents;
mod route;
pub mod router;
mod rule;
pub mod scan;
mod signals;
mod sys;
pub mod sysctl;
mod sysfs;
mod thread;
pub mod wires;

pub use boot::{BootIdError, boot_id};
pub use changes::Changes;
pub use netlink::{NetlinkError, Socket};
pub use netns::{Netns, NetnsError};
pub use node_side::NodeSide;
pub use own_proc::own_proc;
pub use peer::{Credentials, netns_of, peer_credentials};
pub use plexus_types::Feature;
pub use probe::{Features, probe};
pub use signals::Signals;
pub use sysfs::Sysfs;
