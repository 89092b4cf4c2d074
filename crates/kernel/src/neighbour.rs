//! Permanent neighbours: how one is set and read.

use crate::address::family;
use crate::netlink::{Request, attributes, ip, u16_of, u32_of};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
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
    Request::new(
        Message::NewNeighbour(message),
        NLM_F_CREATE | NLM_F_REPLACE,
        what,
    )
}

/// Puts right what is known of an address, if anything is.
pub(crate) fn correct(index: u32, address: IpAddr, mac: Mac) -> Request {
    let mut message = message(index, address);
    message.header.state = NeighbourState::Stale;
    message
        .attributes
        .push(NeighbourAttribute::LinkLayerAddress(mac.bytes().to_vec()));
    let what = format!("correct neighbour {address}");
    Request::new(Message::NewNeighbour(message), NLM_F_REPLACE, what)
}

/// Takes away what is known of an address.
pub(crate) fn delete(index: u32, address: IpAddr) -> Request {
    let what = format!("delete neighbour {address}");
    Request::new(Message::DelNeighbour(message(index, address)), 0, what)
}

/// Asks for all neighbours of a family on one link.
pub(crate) fn list_of(family: Family, index: u32) -> Request {
    let mut request = list(family);
    if let Message::GetNeighbour(message) = &mut request.message {
        message.attributes.push(NeighbourAttribute::IfIndex(index));
    }
    request
}

/// Asks for the neighbour of that address on a link.
pub(crate) fn get(index: u32, address: IpAddr) -> Request {
    let what = format!("find neighbour {address}");
    Request::new(Message::GetNeighbour(message(index, address)), 0, what)
}

/// Asks for all neighbours of a family.
pub(crate) fn list(family: Family) -> Request {
    let mut message = NeighbourMessage::default();
    message.header.family = super::address::family(family.everything().addr());
    Request::new(
        Message::GetNeighbour(message),
        0,
        format!("list {family} neighbours"),
    )
}

/// Reads one neighbour from an answer, if it is permanent.
pub(crate) fn read(payload: &[u8]) -> Option<ObservedNeighbour> {
    const NDA_DST: u16 = 1;
    const NDA_LLADDR: u16 = 2;
    const NUD_PERMANENT: u16 = 0x80;
    let header = payload.get(..12)?;
    if u16_of(&header[8..10]) & NUD_PERMANENT == 0 {
        return None;
    }
    let (mut address, mut mac) = (None, None);
    for (kind, value) in attributes(&payload[12..]) {
        match kind {
            NDA_DST => address = ip(value),
            NDA_LLADDR => {
                mac = <[u8; 6]>::try_from(value)
                    .ok()
                    .and_then(|m| Mac::new(m).ok())
            }
            _ => {}
        }
    }
    Some(ObservedNeighbour {
        link: u32_of(&header[4..8]),
        address: address?,
        mac,
    })
}

fn message(index: u32, address: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(address);
    message.header.ifindex = index;
    let destination = match address {
        IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
        IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
    };
    message.attributes = vec![NeighbourAttribute::Destination(destination)];
    message
}
