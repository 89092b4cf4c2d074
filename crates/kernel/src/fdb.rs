//! The forwarding table of a VXLAN device: behind which node a MAC is.

use crate::netlink::{Request, attributes, ip, u32_of};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use plexus_types::Mac;
use std::net::IpAddr;

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) mac: Mac,
    pub(crate) node: IpAddr,
}

impl Entry {
    /// Sets it, in place of whatever was known of that MAC.
    pub(crate) fn add(&self, link: u32) -> Request {
        let what = format!("send frames for {} to {}", self.mac, self.node);
        let message = Message::NewNeighbour(self.message(link));
        Request::new(message, NLM_F_CREATE | NLM_F_REPLACE, what)
    }

    /// Takes it away.
    pub(crate) fn delete(&self, link: u32) -> Request {
        let what = format!("no longer send frames for {} to {}", self.mac, self.node);
        Request::new(Message::DelNeighbour(self.message(link)), 0, what)
    }

    fn message(&self, link: u32) -> NeighbourMessage {
        let mut message = of_link(link);
        message.header.state = NeighbourState::Permanent;
        message.header.flags = NeighbourFlags::Own;
        message.attributes = vec![
            NeighbourAttribute::LinkLayerAddress(self.mac.bytes().to_vec()),
            NeighbourAttribute::Destination(match self.node {
                IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
                IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
            }),
        ];
        message
    }
}

/// Asks for all entries of a link.
pub(crate) fn list(link: u32) -> Request {
    let what = "list the forwarding table";
    Request::new(Message::GetNeighbour(of_link(link)), 0, what)
}

/// Reads one entry from an answer, with the index of its link.
pub(crate) fn read(payload: &[u8]) -> Option<(u32, Entry)> {
    const NDA_DST: u16 = 1;
    const NDA_LLADDR: u16 = 2;
    let header = payload.get(..12)?;
    let (mut mac, mut node) = (None, None);
    for (kind, value) in attributes(&payload[12..]) {
        match kind {
            NDA_DST => node = ip(value),
            NDA_LLADDR => mac = <[u8; 6]>::try_from(value).ok(),
            _ => {}
        }
    }
    let mac = Mac::new(mac?).ok()?;
    Some((u32_of(&header[4..8]), Entry { mac, node: node? }))
}

fn of_link(link: u32) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Bridge;
    message.header.ifindex = link;
    message
}
