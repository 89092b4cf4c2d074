//! Routes that a set of wanted ones decides over: those to blocks of other nodes, and those that
//! say that nothing is there. Owns how such a route is told, set, removed and read.

use crate::address::family;
use crate::netlink::{Request, attributes, ip, u32_of};
use crate::route::MAIN;
use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
    RouteVia,
};
use plexus_core::plan::PROTOCOL;
use plexus_types::Family;
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
pub(crate) const WORST: u32 = 0xff00_5080;

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
    /// Sets it; one to the same destination that is not ours is an obstacle.
    pub(crate) fn add(&self) -> Request {
        let what = format!("add route {self}");
        let message = Message::NewRoute(self.message());
        Request::new(message, NLM_F_CREATE | NLM_F_EXCL, what)
    }

    /// Takes it away.
    pub(crate) fn delete(&self) -> Request {
        let what = format!("delete route {self}");
        Request::new(Message::DelRoute(self.message()), 0, what)
    }

    /// Reads one of ours from an answer, if it is in the main table.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        const UNREACHABLE: u8 = 7;
        const UNICAST: u8 = 1;
        let header = payload.get(..12)?;
        let everything = match i32::from(header[0]) {
            libc::AF_INET => Family::V4.everything(),
            libc::AF_INET6 => Family::V6.everything(),
            _ => return None,
        };
        let (mut dst, mut via, mut link) = (everything, None, None);
        let mut table = u32::from(header[4]);
        for (kind, value) in attributes(&payload[12..]) {
            match kind {
                libc::RTA_DST => dst = IpNet::new(ip(value)?, header[1]).ok()?,
                libc::RTA_OIF => link = Some(u32_of(value)),
                libc::RTA_GATEWAY => via = ip(value),
                libc::RTA_VIA => via = value.get(2..).and_then(ip),
                libc::RTA_TABLE => table = u32_of(value),
                _ => {}
            }
        }
        if table != MAIN || header[5] != PROTOCOL {
            return None;
        }
        let hop = match (header[7], via) {
            (UNREACHABLE, _) => Hop::Unreachable,
            (UNICAST, Some(via)) => Hop::Via { via, link },
            (UNICAST, None) => Hop::Link(link?),
            _ => return None,
        };
        Some(Self { dst, hop })
    }

    fn message(&self) -> RouteMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = family(self.dst.addr());
        message.header.destination_prefix_length = self.dst.prefix_len();
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Other(PROTOCOL);
        message.header.kind = RouteType::Unicast;
        message.header.scope = RouteScope::Universe;
        if self.dst.prefix_len() > 0 {
            let dst = RouteAttribute::Destination(self.dst.network().into());
            message.attributes.push(dst);
        }
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

/// Asks for all routes of ours of a family.
pub(crate) fn list(family: Family) -> Request {
    of_protocol(family, RouteType::Unspec, None)
}

/// Asks for those that lead nowhere.
pub(crate) fn list_unreachable(family: Family) -> Request {
    of_protocol(family, RouteType::Unreachable, None)
}

/// Asks for those through a link.
pub(crate) fn list_through(family: Family, link: u32) -> Request {
    of_protocol(family, RouteType::Unspec, Some(link))
}

/// The kernel passes over all others by itself.
fn of_protocol(family: Family, kind: RouteType, link: Option<u32>) -> Request {
    let mut message = RouteMessage::default();
    message.header.address_family = crate::address::family(family.everything().addr());
    message.header.protocol = RouteProtocol::Other(PROTOCOL);
    message.header.kind = kind;
    message.attributes.extend(link.map(RouteAttribute::Oif));
    let what = format!("list our {family} routes");
    Request::new(Message::GetRoute(message), 0, what)
}

/// What must be deleted and what added, so that `have` becomes `wanted`.
pub(crate) fn changes(have: &[Managed], wanted: &[Managed]) -> (Vec<Request>, Vec<Request>) {
    use std::collections::BTreeSet;
    let (have, wanted): (BTreeSet<_>, BTreeSet<_>) =
        (have.iter().collect(), wanted.iter().collect());
    (
        have.difference(&wanted).map(|r| r.delete()).collect(),
        wanted.difference(&have).map(|r| r.add()).collect(),
    )
}
