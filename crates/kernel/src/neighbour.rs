//! Permanent neighbours: how one is set and read.

use crate::address::family;
use crate::link;
use crate::netlink::{Request, ip, u16_of, u32_of};
use crate::observe::attribute;
use netlink_packet_core::NLM_F_REPLACE;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteProtocol, RouteType};
use plexus_core::plan::{Neighbour, ObservedNeighbour, PROTOCOL};
use plexus_types::{Family, Mac};
use std::net::IpAddr;

/// Sets a permanent neighbour, in place of whatever was known of that address.
pub(crate) fn add(link: &str, index: u32, neighbour: &Neighbour) -> Request {
    let mut message = message(index, neighbour.address);
    message.header.state = NeighbourState::Permanent;
    message.header.kind = RouteType::Unicast;
    message.attributes.extend([
        NeighbourAttribute::LinkLayerAddress(neighbour.mac.bytes().to_vec()),
        NeighbourAttribute::Protocol(RouteProtocol::Other(PROTOCOL)),
    ]);
    let what = format!("add neighbour {} to {link}", neighbour.address);
    Request::new(Message::NewNeighbour(message), 0, what).replacing()
}

/// Puts right what is known of an address, if anything is.
pub(crate) fn correct(index: u32, address: IpAddr, mac: Mac) -> Request {
    let mut message = message(index, address);
    message.header.state = NeighbourState::Stale;
    let mac = NeighbourAttribute::LinkLayerAddress(mac.bytes().to_vec());
    message.attributes.push(mac);
    let what = format!("correct neighbour {address}");
    Request::new(Message::NewNeighbour(message), NLM_F_REPLACE, what)
}

pub(crate) fn delete(index: u32, address: IpAddr) -> Request {
    let what = format!("delete neighbour {address}");
    Request::new(Message::DelNeighbour(message(index, address)), 0, what)
}

pub(crate) fn list_of(family: Family, index: u32) -> Request {
    let mut request = list(family);
    if let Message::GetNeighbour(message) = &mut request.message {
        message.attributes.push(NeighbourAttribute::IfIndex(index));
    }
    request
}

pub(crate) fn get(index: u32, address: IpAddr) -> Request {
    let what = format!("find neighbour {address}");
    Request::new(Message::GetNeighbour(message(index, address)), 0, what)
}

pub(crate) fn list(of: Family) -> Request {
    let mut message = NeighbourMessage::default();
    message.header.family = family(of);
    let what = format!("list {of} neighbours");
    Request::new(Message::GetNeighbour(message), 0, what)
}

/// Reads one neighbour from an answer, if it is permanent.
pub(crate) fn read(payload: &[u8]) -> Option<ObservedNeighbour> {
    const NUD_PERMANENT: u16 = 0x80;
    let state = u16_of(payload.get(8..10)?);
    let (link, address, mac) = parts(payload)?;
    (state & NUD_PERMANENT != 0).then_some(ObservedNeighbour { link, address, mac })
}

/// The link, the address and the MAC of an answer.
pub(crate) fn parts(payload: &[u8]) -> Option<(u32, IpAddr, Option<Mac>)> {
    const NDA_DST: u16 = 1;
    const NDA_LLADDR: u16 = 2;
    let (header, attributes) = payload.split_at_checked(12)?;
    let address = ip(attribute(attributes, NDA_DST)?)?;
    let mac = attribute(attributes, NDA_LLADDR).and_then(link::mac);
    Some((u32_of(&header[4..8]), address, mac))
}

fn message(index: u32, address: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(Family::of(address));
    message.header.ifindex = index;
    message.attributes = vec![destination(address)];
    message
}

pub(crate) fn destination(address: IpAddr) -> NeighbourAttribute {
    NeighbourAttribute::Destination(match address {
        IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
        IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
    })
}
