//! Addresses: how one is set, removed and read.

use crate::netlink::{Request, ip, u32_of};
use crate::observe::attribute;
use ipnet::IpNet;
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use plexus_core::plan::ObservedAddress;
use plexus_types::Family;
use std::net::{IpAddr, Ipv4Addr};

/// Sets an address: IPv4 with its broadcast address, IPv6 without duplicate address detection.
pub(crate) fn add(link: &str, index: u32, net: IpNet) -> Request {
    let mut message = message(index, net);
    match net {
        IpNet::V4(v4) if v4.prefix_len() < 31 => {
            let broadcast = AddressAttribute::Broadcast(v4.broadcast());
            message.attributes.push(broadcast);
        }
        IpNet::V4(_) => {}
        IpNet::V6(_) => message.header.flags = AddressHeaderFlags::Nodad,
    }
    let what = format!("add address {net} to {link}");
    Request::new(Message::NewAddress(message), 0, what).exclusive()
}

pub(crate) fn delete(link: &str, index: u32, net: IpNet) -> Request {
    let what = format!("delete address {net} of {link}");
    Request::new(Message::DelAddress(message(index, net)), 0, what)
}

pub(crate) fn list(link: Option<u32>) -> Request {
    let mut message = AddressMessage::default();
    message.header.index = link.unwrap_or_default();
    Request::new(Message::GetAddress(message), 0, "list addresses")
}

/// Reads one address from an answer.
pub(crate) fn read(payload: &[u8]) -> Option<ObservedAddress> {
    let (header, attributes) = payload.split_at_checked(8)?;
    // On a point-to-point link IFA_ADDRESS is the other side.
    let address = [libc::IFA_LOCAL, libc::IFA_ADDRESS]
        .into_iter()
        .find_map(|kind| ip(attribute(attributes, kind)?));
    let net = IpNet::new(address?, header[1]).ok()?;
    Some(ObservedAddress {
        link: u32_of(&header[4..8]),
        net,
    })
}

fn message(index: u32, net: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(Family::of(net.addr()));
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

pub(crate) fn family(family: Family) -> AddressFamily {
    match family {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    }
}
