//! Being told that somebody has changed something in a node's namespace, whatever they changed. Owns the
//! subscription; what is there now is asked for elsewhere.

use crate::events::Source;
use crate::{NetlinkError, NodeSide};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The kernel's number of the group that hears of all changes to nf_tables.
const NFNLGRP_NFTABLES: u32 = 7;
/// The kernel's number of the group that hears of all links.
const RTNLGRP_LINK: u32 = 1;
/// Those that hear of addresses, of routes and of rules, IPv4 and IPv6, and of next hops.
const RTNLGRP_IPV4_IFADDR: u32 = 5;
const RTNLGRP_IPV4_ROUTE: u32 = 7;
const RTNLGRP_IPV4_RULE: u32 = 8;
const RTNLGRP_IPV6_IFADDR: u32 = 9;
const RTNLGRP_IPV6_ROUTE: u32 = 11;
const RTNLGRP_IPV6_RULE: u32 = 19;
const RTNLGRP_NEXTHOP: u32 = 32;

/// Readable when something in a node's namespace has changed.
#[derive(Debug)]
pub struct Changes(OwnedFd);

impl Changes {
    /// Changes of nftables from now on: rules, chains, tables, of anybody.
    pub fn of_nftables(node: &NodeSide) -> Result<Self, NetlinkError> {
        Self::of(node, Some(netlink::NETFILTER), &[NFNLGRP_NFTABLES])
    }

    /// Changes of links from now on: those that come, go or change.
    pub fn of_links(node: &NodeSide) -> Result<Self, NetlinkError> {
        Self::of(node, None, &[RTNLGRP_LINK])
    }

    /// Changes from now on of what an [inventory of NICs](crate::nics) tells: links, addresses, and the routes that
    /// say which one is the default.
    pub fn of_nics(node: &NodeSide) -> Result<Self, NetlinkError> {
        let groups = [
            RTNLGRP_LINK,
            RTNLGRP_IPV4_IFADDR,
            RTNLGRP_IPV6_IFADDR,
            RTNLGRP_IPV4_ROUTE,
            RTNLGRP_IPV6_ROUTE,
        ];
        Self::of(node, None, &groups)
    }

    /// Changes from now on of what [routes on NICs](crate::nic_routes) are made of: links, which take them along,
    /// routes, rules and next hops.
    pub fn of_nic_routes(node: &NodeSide) -> Result<Self, NetlinkError> {
        let groups = [
            RTNLGRP_LINK,
            RTNLGRP_IPV4_IFADDR,
            RTNLGRP_IPV6_IFADDR,
            RTNLGRP_IPV4_ROUTE,
            RTNLGRP_IPV6_ROUTE,
            RTNLGRP_IPV4_RULE,
            RTNLGRP_IPV6_RULE,
            RTNLGRP_NEXTHOP,
        ];
        Self::of(node, None, &groups)
    }

    /// Without a protocol: rtnetlink's, which is 0.
    fn of(
        node: &NodeSide,
        protocol: Option<Protocol>,
        groups: &[u32],
    ) -> Result<Self, NetlinkError> {
        let opened = node.inside(|| subscribe(protocol, groups))?;
        let fd = opened.map_err(|source| NetlinkError::Open { source })?;
        Ok(Self(fd))
    }
}

impl Source for Changes {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn subscribe(protocol: Option<Protocol>, groups: &[u32]) -> io::Result<OwnedFd> {
    let fd = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        protocol,
    )?;
    // Bound to the groups, not added to them: a socket without an address of its own hears nothing.
    let groups = groups.iter().fold(0, |all, group| all | 1 << (group - 1));
    rustix::net::bind(&fd, &SocketAddrNetlink::new(0, groups))?;
    Ok(fd)
}
