//! Routes of the node to other nodes' blocks of networks with an interface per NIC: through that node's address on the
//! same NIC, in a table of the network's own that only packets of its pods are looked up in. Owns what such a table is, and
//! which routes there are.
//!
//! Takes the node's NICs, the networks and the blocks of all nodes; gives plain tables that the kernel room makes true.

mod decide;

pub use decide::{Decision, L3Network, NicBlock, decide};

use ipnet::IpNet;
use plexus_types::hash64;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

/// The first of our routing tables on a node.
pub const FIRST_TABLE: u32 = 0x5080_0000;
/// The last.
pub const LAST_TABLE: u32 = 0x508f_ffff;

/// What one network has on a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkRoutes {
    /// Whose packets the table is for: the network's subnets.
    pub sources: BTreeSet<IpNet>,
    /// The next hop of each block.
    pub routes: BTreeMap<IpNet, NextHop>,
}

/// Where packets to a block go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextHop {
    /// The other node's address on that NIC.
    pub via: IpAddr,
    /// Index of the node's own NIC.
    pub link: u32,
    /// It is on that link, though no address of the NIC says so.
    pub onlink: bool,
}

impl fmt::Display for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let onlink = if self.onlink { " onlink" } else { "" };
        write!(f, "via {} dev #{}{onlink}", self.via, self.link)
    }
}

/// A table for each network, known by its UID: the same on every start. Where two would have the same one, the UID that
/// comes first keeps it.
pub fn tables<'a>(uids: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, u32> {
    let uids: BTreeSet<&str> = uids.into_iter().collect();
    let mut taken = BTreeSet::new();
    let mut tables = BTreeMap::new();
    for uid in uids {
        let count = LAST_TABLE - FIRST_TABLE + 1;
        let hash = hash64(&["nic-routes", uid]);
        // Less than `count`, which is a u32.
        let first = (hash % u64::from(count)) as u32;
        let mut all = (0..count).map(|step| FIRST_TABLE + (first + step) % count);
        if let Some(table) = all.find(|table| !taken.contains(table)) {
            taken.insert(table);
            tables.insert(uid, table);
        }
    }
    tables
}
