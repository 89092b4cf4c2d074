//! The forwarding table of a VXLAN device: behind which node a MAC is.

use crate::neighbour;
use crate::netlink::Request;
use netlink_packet_route::neighbour::{
    NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use plexus_types::Mac;
use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) mac: Mac,
    pub(crate) node: IpAddr,
}

impl Entry {
    /// Sets it, in place of whatever was known of that MAC.
    pub(crate) fn add(&self, link: u32) -> Request {
        let what = format!("send frames for {} to {}", self.mac, self.node);
        Request::new(Message::NewNeighbour(self.message(link)), 0, what).replacing()
    }

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
            neighbour::destination(self.node),
        ];
        message
    }
}

pub(crate) fn list(link: u32) -> Request {
    let what = "list the forwarding table";
    Request::new(Message::GetNeighbour(of_link(link)), 0, what)
}

/// Reads one entry from an answer, with the index of its link.
pub(crate) fn read(payload: &[u8]) -> Option<(u32, Entry)> {
    let (link, node, mac) = neighbour::parts(payload)?;
    Some((link, Entry { mac: mac?, node }))
}

fn of_link(link: u32) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Bridge;
    message.header.ifindex = link;
    message
}
