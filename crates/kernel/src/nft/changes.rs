//! Being told that somebody has changed nftables, whatever they changed: rules, chains, tables, of anybody. Owns the
//! subscription; what is there now is asked for elsewhere (`restore`).

use crate::events::Source;
use crate::{NetlinkError, NodeSide};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The kernel's number of the group that hears of all changes to nf_tables.
const NFNLGRP_NFTABLES: u32 = 7;

/// Readable when nftables of a node's namespace has changed.
#[derive(Debug)]
pub struct Changes(OwnedFd);

impl Changes {
    /// Those from now on.
    pub fn of(node: &NodeSide) -> Result<Self, NetlinkError> {
        let opened = node.inside(subscribe)?;
        let fd = opened.map_err(|source| NetlinkError::Open { source })?;
        Ok(Self(fd))
    }
}

impl Source for Changes {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn subscribe() -> io::Result<OwnedFd> {
    let fd = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        Some(rustix::net::netlink::NETFILTER),
    )?;
    // Bound to the group, not added to it: a socket without an address of its own hears nothing.
    let group = 1 << (NFNLGRP_NFTABLES - 1);
    rustix::net::bind(&fd, &SocketAddrNetlink::new(0, group))?;
    Ok(fd)
}
