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

/// Readable when something in a node's namespace has changed.
#[derive(Debug)]
pub struct Changes(OwnedFd);

impl Changes {
    /// Changes of nftables from now on: rules, chains, tables, of anybody.
    pub fn of_nftables(node: &NodeSide) -> Result<Self, NetlinkError> {
        Self::of(node, Some(netlink::NETFILTER), NFNLGRP_NFTABLES)
    }

    /// Changes of links from now on: those that come, go or change.
    pub fn of_links(node: &NodeSide) -> Result<Self, NetlinkError> {
        Self::of(node, None, RTNLGRP_LINK)
    }

    /// Without a protocol: rtnetlink's, which is 0.
    fn of(node: &NodeSide, protocol: Option<Protocol>, group: u32) -> Result<Self, NetlinkError> {
        let opened = node.inside(|| subscribe(protocol, group))?;
        let fd = opened.map_err(|source| NetlinkError::Open { source })?;
        Ok(Self(fd))
    }
}

impl Source for Changes {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn subscribe(protocol: Option<Protocol>, group: u32) -> io::Result<OwnedFd> {
    let fd = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        protocol,
    )?;
    // Bound to the group, not added to it: a socket without an address of its own hears nothing.
    rustix::net::bind(&fd, &SocketAddrNetlink::new(0, 1 << (group - 1)))?;
    Ok(fd)
}
