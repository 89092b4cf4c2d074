//! Next hops as objects of the kernel's: how one is made, removed and read. Any number of routes share one, so that
//! thousands of routes through the same node cost no search for it.
//!
//! The messages are made here: the library has none for them.

use crate::netlink::{Raw, Request, ip, u32_of};
use crate::observe::attribute;
use plexus_core::nic_routes::NextHop;
use plexus_core::plan::PROTOCOL;
use plexus_types::Family;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// The ids of our next hops.
pub(crate) const IDS: RangeInclusive<u32> = 0x5080_0001..=0x508f_ffff;

const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const RTM_GETNEXTHOP: u16 = 106;
const NHA_ID: u16 = 1;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const RTNH_F_ONLINK: u32 = 4;
/// Family, scope, protocol, nothing; flags.
const HEADER: usize = 8;

/// Makes one; an id that is there already is refused.
pub(crate) fn add(id: u32, hop: &NextHop) -> Request<Raw> {
    let flags = if hop.onlink { RTNH_F_ONLINK } else { 0 };
    let mut body = header(family_of(hop.via), PROTOCOL, flags);
    push(&mut body, NHA_ID, &id.to_ne_bytes());
    push(&mut body, NHA_OIF, &hop.link.to_ne_bytes());
    push_ip(&mut body, NHA_GATEWAY, hop.via);
    let kind = RTM_NEWNEXTHOP;
    Request::new(Raw { kind, body }, 0, format!("add next hop {id} {hop}")).exclusive()
}

pub(crate) fn delete(id: u32) -> Request<Raw> {
    let mut body = header(0, 0, 0);
    push(&mut body, NHA_ID, &id.to_ne_bytes());
    let kind = RTM_DELNEXTHOP;
    Request::new(Raw { kind, body }, 0, format!("delete next hop {id}"))
}

pub(crate) fn list() -> Request<Raw> {
    let (kind, body) = (RTM_GETNEXTHOP, header(0, 0, 0));
    Request::new(Raw { kind, body }, 0, "list next hops")
}

/// Reads the id of any next hop from an answer, with what it is if it is ours.
pub(crate) fn read(payload: &[u8]) -> Option<(u32, Option<NextHop>)> {
    let (header, attributes) = payload.split_at_checked(HEADER)?;
    let find = |kind| attribute(attributes, kind);
    let id = u32_of(find(NHA_ID)?);
    let ours = header[2] == PROTOCOL && IDS.contains(&id);
    let hop = || {
        Some(NextHop {
            via: find(NHA_GATEWAY).and_then(ip)?,
            link: u32_of(find(NHA_OIF)?),
            onlink: u32_of(&header[4..HEADER]) & RTNH_F_ONLINK != 0,
        })
    };
    Some((id, ours.then(hop).flatten()))
}

pub(crate) fn family_of(address: IpAddr) -> u8 {
    // Both are small numbers.
    match Family::of(address) {
        Family::V4 => libc::AF_INET as u8,
        Family::V6 => libc::AF_INET6 as u8,
    }
}

fn header(family: u8, protocol: u8, flags: u32) -> Vec<u8> {
    let mut header = vec![family, 0, protocol, 0];
    header.extend(flags.to_ne_bytes());
    header
}

/// Appends an attribute.
pub(crate) fn push(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // Values are numbers and addresses.
    let length = (4 + value.len()) as u16;
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

pub(crate) fn push_ip(body: &mut Vec<u8>, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(address) => push(body, kind, &address.octets()),
        IpAddr::V6(address) => push(body, kind, &address.octets()),
    }
}
