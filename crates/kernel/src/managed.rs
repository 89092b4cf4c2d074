//! Routes that a set of wanted ones decides over: those to blocks of other nodes, and those that
//! say that nothing is there. Owns how such a route is told, set, removed and read.

use crate::address::family;
use crate::netlink::{Request, ip, u32_of};
use crate::observe::{self, attribute};
use crate::route::{self, MAIN};
use crate::{NetlinkError, Socket};
use ipnet::IpNet;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
    RouteVia,
};
use plexus_core::plan::PROTOCOL;
use plexus_types::Family;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

/// A route of ours in the main table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Managed {
    pub(crate) dst: IpNet,
    pub(crate) hop: Hop,
}

/// Where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hop {
    /// Nowhere, unless there is a better one: see [`WORST`].
    Unreachable,
    /// To a next hop that may be of the other family; with a link, it is on that link though no
    /// address says so.
    Via { via: IpAddr, link: Option<u32> },
    /// What is on the link itself.
    Link(u32),
}

/// The metric of routes that lead nowhere: worse than any other.
const WORST: u32 = 0xff00_5080;

impl fmt::Display for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hop {
            Hop::Unreachable => write!(f, "unreachable {}", self.dst),
            Hop::Via { via, .. } => write!(f, "{} via {via}", self.dst),
            Hop::Link(link) => write!(f, "{} dev #{link}", self.dst),
        }
    }
}

impl Managed {
    pub(crate) fn unreachable(dst: IpNet) -> Self {
        let (dst, hop) = (dst.trunc(), Hop::Unreachable);
        Self { dst, hop }
    }

    pub(crate) fn through(dst: IpNet, via: IpAddr, link: Option<u32>) -> Self {
        let (dst, hop) = (dst.trunc(), Hop::Via { via, link });
        Self { dst, hop }
    }

    /// Sets it; one to the same destination that is not ours is an obstacle.
    pub(crate) fn add(&self) -> Request {
        let what = format!("add route {self}");
        Request::new(Message::NewRoute(self.message()), 0, what).exclusive()
    }

    pub(crate) fn delete(&self) -> Request {
        let what = format!("delete route {self}");
        Request::new(Message::DelRoute(self.message()), 0, what)
    }

    /// Reads one of ours from an answer, if it is in the main table.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        const UNREACHABLE: u8 = 7;
        const UNICAST: u8 = 1;
        let (header, attributes) = payload.split_at_checked(12)?;
        let find = |kind| attribute(attributes, kind);
        let everything = route::family_of(header[0])?.everything();
        let table = find(libc::RTA_TABLE).map_or(u32::from(header[4]), u32_of);
        if table != MAIN || header[5] != PROTOCOL {
            return None;
        }
        let dst = match find(libc::RTA_DST) {
            Some(dst) => IpNet::new(ip(dst)?, header[1]).ok()?,
            None => everything,
        };
        let link = find(libc::RTA_OIF).map(u32_of);
        let of_other_family = || find(libc::RTA_VIA).and_then(|via| ip(via.get(2..)?));
        let via = find(libc::RTA_GATEWAY)
            .and_then(ip)
            .or_else(of_other_family);
        let hop = match (header[7], via) {
            (UNREACHABLE, _) => Hop::Unreachable,
            (UNICAST, Some(via)) => Hop::Via { via, link },
            (UNICAST, None) => Hop::Link(link?),
            _ => return None,
        };
        Some(Self { dst, hop })
    }

    fn message(&self) -> RouteMessage {
        let mut message = route::message(self.dst);
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Other(PROTOCOL);
        message.header.kind = RouteType::Unicast;
        message.header.scope = RouteScope::Universe;
        match self.hop {
            Hop::Unreachable => {
                message.header.kind = RouteType::Unreachable;
                message.attributes.push(RouteAttribute::Priority(WORST));
            }
            Hop::Via { via, link } => {
                message.attributes.push(match (self.dst, via) {
                    (IpNet::V4(_), IpAddr::V6(via)) => RouteAttribute::Via(RouteVia::Inet6(via)),
                    _ => RouteAttribute::Gateway(via.into()),
                });
                if let Some(link) = link {
                    message.header.flags = RouteFlags::Onlink;
                    message.attributes.push(RouteAttribute::Oif(link));
                }
            }
            Hop::Link(link) => {
                message.header.scope = RouteScope::Link;
                message.attributes.push(RouteAttribute::Oif(link));
            }
        }
        message
    }
}

/// All routes of ours of a family.
pub(crate) fn all(socket: &mut Socket, family: Family) -> Result<Vec<Managed>, NetlinkError> {
    list(socket, family, RouteType::Unspec, None)
}

/// Those that lead nowhere.
pub(crate) fn all_unreachable(
    socket: &mut Socket,
    family: Family,
) -> Result<Vec<Managed>, NetlinkError> {
    let mut found = list(socket, family, RouteType::Unreachable, None)?;
    found.retain(|route| route.hop == Hop::Unreachable);
    Ok(found)
}

/// Those to next hops on a link.
pub(crate) fn all_through(
    socket: &mut Socket,
    family: Family,
    index: u32,
) -> Result<Vec<Managed>, NetlinkError> {
    let mut found = list(socket, family, RouteType::Unspec, Some(index))?;
    found.retain(|route| matches!(route.hop, Hop::Via { link, .. } if link == Some(index)));
    Ok(found)
}

/// The kernel passes over all others by itself.
fn list(
    socket: &mut Socket,
    of: Family,
    kind: RouteType,
    link: Option<u32>,
) -> Result<Vec<Managed>, NetlinkError> {
    let mut message = RouteMessage::default();
    message.header.address_family = family(of);
    message.header.protocol = RouteProtocol::Other(PROTOCOL);
    message.header.kind = kind;
    message.attributes.extend(link.map(RouteAttribute::Oif));
    let what = format!("list our {of} routes");
    let request = Request::new(Message::GetRoute(message), 0, what);
    observe::list(socket, request, Managed::read)
}

/// What must be deleted and what added, so that `have` becomes `wanted`.
pub(crate) fn changes(have: &[Managed], wanted: &[Managed]) -> (Vec<Request>, Vec<Request>) {
    let have: BTreeSet<_> = have.iter().collect();
    let wanted: BTreeSet<_> = wanted.iter().collect();
    (
        have.difference(&wanted).map(|r| r.delete()).collect(),
        wanted.difference(&have).map(|r| r.add()).collect(),
    )
}
