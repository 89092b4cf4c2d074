//! Multi-NIC networks: which block of the network's subnet each NIC of each host has.
//!
//! ```text
//!   192.168.0.0/16, interfaceBlock 2, hostBlock 6:   subnet 16 | interface 2 | host 6 | pod 8
//!
//!   network, hosts, Blocks that are there ──assign──► Blocks as they should be, changes, who is left out
//!                                     Blocks ──render──► CIDR, IPPool
//! ```
//! What was assigned stands in Blocks and stays; the rest is decided from sorted values, so that the order in which
//! they became known does not matter. Does no I/O.

mod arithmetic;
mod assign;
mod indices;
mod left_out;
mod rails;
mod render;
mod select;

pub use arithmetic::{
    BitsError, host_block, interface_block, is_skipped, numbered_net, pool_excludes, within_block,
};
pub use assign::{Assignment, BlockChange, ExistingBlock, Host, MultiNicTarget, Nic, assign};
pub use indices::{Indices, lowest_gap};
pub use left_out::LeftOut;
pub use render::{MAX_LISTED_HOSTS, cidr, ip_pool, ip_pool_name};
pub use select::{NicChoice, SelectError, select};
