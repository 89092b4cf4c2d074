//! Addresses: how one is set, removed and read.

use crate::netlink::{Request, attributes, ip, u32_of};
use ipnet::IpNet;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use plexus_core::plan::ObservedAddress;
use std::net::{IpAddr, Ipv4Addr};

/// Sets an address: IPv4 with its broadcast address, IPv6 without duplicate address detection.
pub(crate) fn add(link: &str, index: u32, net: IpNet) -> Request {
    let mut message = message(index, net);
    match net {
        IpNet::V4(v4) if v4.prefix_len() < 31 => {
            message
                .attributes
                .push(AddressAttribute::Broadcast(v4.broadcast()));
        }
        IpNet::V4(_) => {}
        IpNet::V6(_) => message.header.flags = AddressHeaderFlags::Nodad,
    }
    let what = format!("add address {net} to {link}");
    Request::new(
        Message::NewAddress(message),
        NLM_F_CREATE | NLM_F_EXCL,
        what,
    )
}

/// Takes an address away.
pub(crate) fn delete(link: &str, index: u32, net: IpNet) -> Request {
    let what = format!("delete address {net} of {link}");
    Request::new(Message::DelAddress(message(index, net)), 0, what)
}

/// Asks for all addresses, or those of one link.
pub(crate) fn list(link: Option<u32>) -> Request {
    let mut message = AddressMessage::default();
    message.header.index = link.unwrap_or_default();
    Request::new(Message::GetAddress(message), 0, "list addresses")
}

/// Reads one address from an answer.
pub(crate) fn read(payload: &[u8]) -> Option<ObservedAddress> {
    let header = payload.get(..8)?;
    let (mut address, mut local) = (None, None);
    for (kind, value) in attributes(&payload[8..]) {
        match kind {
            libc::IFA_ADDRESS => address = ip(value),
            libc::IFA_LOCAL => local = ip(value),
            _ => {}
        }
    }
    // On a point-to-point link IFA_ADDRESS is the other side.
    let net = IpNet::new(local.or(address)?, header[1]).ok()?;
    Some(ObservedAddress {
        link: u32_of(&header[4..8]),
        net,
    })
}

fn message(index: u32, net: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(net.addr());
    message.header.prefix_len = net.prefix_len();
    message.header.index = index;
    message.header.scope = scope(net.addr());
    message.attributes = vec![
        AddressAttribute::Local(net.addr()),
        AddressAttribute::Address(net.addr()),
    ];
    message
}

fn scope(address: IpAddr) -> AddressScope {
    match address {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => AddressScope::Host,
        IpAddr::V6(v6) if v6.is_unicast_link_local() => AddressScope::Link,
        _ => AddressScope::Universe,
    }
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
