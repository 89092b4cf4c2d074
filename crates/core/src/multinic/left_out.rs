//! Who has no block, and why: what users are told.

use ipnet::IpNet;
use plexus_types::Family;
use std::fmt;

/// A NIC that has no block, or a subnet of NICs that has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// All interface indices are in use.
    NoInterfaceIndex {
        /// The subnet of the NICs.
        net: IpNet,
    },
    /// All host indices of the NIC's interface index are in use.
    NoHostIndex {
        /// The host.
        host: String,
        /// Its NIC.
        nic: String,
        /// The subnet of the NIC.
        net: IpNet,
    },
    /// The NIC has no address of a family by which other nodes could reach the block.
    NoAddress {
        /// The host.
        host: String,
        /// Its NIC.
        nic: String,
        /// The family.
        family: Family,
    },
    /// What its indices mean in this subnet is excluded, or in use by an earlier division of it.
    NoBlock {
        /// The host.
        host: String,
        /// Its NIC.
        nic: String,
        /// The block.
        cidr: IpNet,
    },
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftOut::NoInterfaceIndex { net } => write!(
                f,
                "NICs on {net}: no interface index is left: raise interfaceBlock, or name fewer masterNets"
            ),
            LeftOut::NoHostIndex { host, nic, net } => write!(
                f,
                "{nic} of {host}: no host index is left on {net}: raise hostBlock, or exclude less"
            ),
            LeftOut::NoAddress { host, nic, family } => write!(
                f,
                "{nic} of {host}: it has no {family} address, by which other nodes could reach its pods"
            ),
            LeftOut::NoBlock { host, nic, cidr } => write!(
                f,
                "{nic} of {host}: {cidr} is excluded, or still in use by an earlier division of the subnet"
            ),
        }
    }
}
