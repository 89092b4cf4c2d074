//! Why an attachment gets no address.

use super::PoolError;
use super::host_local::{HostLocalError, Unreadable};
use crate::refusal::{Fault, Refusal};
use ipnet::IpNet;
use plexus_types::{Family, NetworkName};
use std::borrow::Cow;
use std::net::IpAddr;

/// Why an attachment gets no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocateError {
    /// Addresses are requested of a network that gives none.
    #[error("addresses are requested, but the network has no ipam")]
    NoIpam,
    /// host-local has none.
    #[error("host-local")]
    HostLocal(#[from] HostLocalError<Unreadable>),
    /// No subnet of the family has room.
    #[error("network {network} has no free {family} address: {}", full(subnets))]
    Full {
        /// The network.
        network: NetworkName,
        /// The family.
        family: Family,
        /// Its subnets, each with the number of its usable addresses.
        subnets: Vec<(IpNet, u128)>,
    },
    /// The node's blocks have no room, or not the requested address: another block would help.
    #[error("{}", needs_block(network, *family, subnets, *containing))]
    NeedsBlock {
        /// The network.
        network: NetworkName,
        /// The family.
        family: Family,
        /// In order of preference, subnets that the node does not own all of.
        subnets: Vec<IpNet>,
        /// The requested address that the block must have.
        containing: Option<IpAddr>,
        /// The node's blocks, which were tried.
        have: Vec<IpNet>,
    },
    /// The node's blocks have no room, and it can have no other.
    #[error(
        "network {network} has no free {family} address on this node: all {capacity} usable addresses of its blocks ({}) are in use, and no other block of {} can be had",
        list(blocks),
        list(subnets)
    )]
    BlocksFull {
        /// The network.
        network: NetworkName,
        /// The family.
        family: Family,
        /// The network's subnets of the family.
        subnets: Vec<IpNet>,
        /// The node's blocks of them.
        blocks: Vec<IpNet>,
        /// How many addresses those can hand out.
        capacity: u128,
    },
    /// A requested address is in none of the subnets.
    #[error(
        "network {network}: the requested address {address} is outside of its subnets {}",
        list(subnets)
    )]
    Outside {
        /// The network.
        network: NetworkName,
        /// The address.
        address: IpAddr,
        /// The subnets.
        subnets: Vec<IpNet>,
    },
    /// A requested address has a prefix length that is not its subnet's.
    #[error(
        "network {network}: the requested address {address}/{prefix} has another prefix length than its subnet {subnet}"
    )]
    Prefix {
        /// The network.
        network: NetworkName,
        /// The address.
        address: IpAddr,
        /// The prefix length asked for.
        prefix: u8,
        /// The subnet.
        subnet: IpNet,
    },
    /// Two addresses of one family are requested.
    #[error(
        "network {network}: two {family} addresses are requested, {other} and {address}, but an interface gets one per family"
    )]
    TwoRequested {
        /// The network.
        network: NetworkName,
        /// The family.
        family: Family,
        /// The second.
        address: IpAddr,
        /// The first.
        other: IpAddr,
    },
    /// A requested address is not to be had.
    #[error("network {network}: the requested address cannot be handed out")]
    Requested {
        /// The network.
        network: NetworkName,
        /// Why.
        #[source]
        source: PoolError,
    },
    /// An IPAM plugin that was executed gave none.
    #[error("the IPAM plugin {0} succeeded, but its result has no addresses")]
    NoneAnswered(String),
    /// An address that is to be recorded is recorded for somebody else.
    #[error("network {network}: address {address} is held by {owner}")]
    Held {
        /// The network.
        network: NetworkName,
        /// The address.
        address: IpAddr,
        /// Who has it.
        owner: String,
    },
}

impl Refusal for AllocateError {
    fn fault(&self) -> Fault {
        match self {
            AllocateError::Full { .. }
            | AllocateError::BlocksFull { .. }
            | AllocateError::NoneAnswered(_)
            | AllocateError::Held { .. } => Fault::Unavailable,
            AllocateError::HostLocal(source) => match source {
                HostLocalError::Full(_)
                | HostLocalError::TooMany(_)
                | HostLocalError::Reserve { .. } => Fault::Unavailable,
                _ => Fault::Invalid,
            },
            AllocateError::NeedsBlock { .. } => Fault::Pending,
            AllocateError::NoIpam
            | AllocateError::Outside { .. }
            | AllocateError::Prefix { .. }
            | AllocateError::TwoRequested { .. } => Fault::Invalid,
            AllocateError::Requested { source, .. } => match source {
                PoolError::Taken { .. } => Fault::Unavailable,
                _ => Fault::Invalid,
            },
        }
    }

    fn remedy(&self) -> Cow<'static, str> {
        let next = match self {
            AllocateError::NoIpam => "add an `ipam` section, or drop the request",
            AllocateError::HostLocal(HostLocalError::Full(_) | HostLocalError::TooMany(_)) => {
                "remove containers that no longer need theirs, or widen the range"
            }
            AllocateError::HostLocal(HostLocalError::Reserve { .. }) => {
                "check that the ipam's dataDir is on a writable disk with free space"
            }
            AllocateError::HostLocal(_) => "ask for a free address inside the configured ranges",
            AllocateError::Full { .. } => {
                "remove containers that no longer need theirs, or add a subnet to `ipam.subnets`"
            }
            AllocateError::BlocksFull { .. } => {
                "remove pods that no longer need theirs, or add a subnet to the Network"
            }
            AllocateError::NeedsBlock { .. } => {
                "try again once this node can claim a block; see the agent's log for why it could not"
            }
            AllocateError::Outside { .. } => {
                "ask for an address of one of these subnets, or add its subnet to `ipam.subnets`"
            }
            AllocateError::Prefix { .. } => "leave the prefix length out, or write the subnet's",
            AllocateError::TwoRequested { .. } => "ask for one address per family",
            AllocateError::Requested { .. } => "ask for another address, or for none in particular",
            AllocateError::NoneAnswered(_) => {
                "see its own log, and `ipam` in the network's configuration: does it name a range?"
            }
            AllocateError::Held { .. } => "remove the container that has it",
        };
        next.into()
    }
}

fn full(subnets: &[(IpNet, u128)]) -> String {
    let each = subnets.iter().map(|(subnet, capacity)| {
        format!("subnet {subnet} is full, all {capacity} of its usable addresses are in use")
    });
    each.collect::<Vec<_>>().join("; ")
}

fn needs_block(
    network: &NetworkName,
    family: Family,
    subnets: &[IpNet],
    containing: Option<IpAddr>,
) -> String {
    let subnets = list(subnets);
    match containing {
        None => format!(
            "network {network} has no free {family} address in this node's blocks, and another of {subnets} is not claimed yet"
        ),
        Some(address) => format!(
            "network {network}: the requested address {address} is in a block of {subnets} that this node has not claimed"
        ),
    }
}

fn list(subnets: &[IpNet]) -> String {
    match subnets {
        [] => "none".to_owned(),
        _ => subnets
            .iter()
            .map(IpNet::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}
