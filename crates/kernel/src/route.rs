//! Routes: how one is set, asked for and read.

use crate::address::family;
use crate::netlink::{Request, attributes, ip, u16_of, u32_of};
use crate::observe::attribute;
use ipnet::IpNet;
use netlink_packet_core::NLM_F_CREATE;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use plexus_core::plan::{ObservedRoute, PROTOCOL, Route};
use plexus_types::Family;

/// Sets a route through a link, as the reference plugins do: a route to the same destination
/// through another link is no obstacle, and the newer one comes first.
pub(crate) fn add(link: &str, index: u32, route: &Route) -> Request {
    let mut message = message(route.dst);
    let table = route.table.unwrap_or(MAIN);
    message.header.table = u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
    message.header.protocol = RouteProtocol::Other(PROTOCOL);
    message.header.kind = RouteType::Unicast;
    message.header.scope = match (route.scope, route.via) {
        (Some(scope), _) => scope.into(),
        (None, Some(_)) => RouteScope::Universe,
        (None, None) => RouteScope::Link,
    };
    if route.onlink {
        message.header.flags = RouteFlags::Onlink;
    }
    let attributes = &mut message.attributes;
    attributes.push(RouteAttribute::Oif(index));
    attributes.push(RouteAttribute::Table(table));
    attributes.extend(route.via.map(|via| RouteAttribute::Gateway(via.into())));
    attributes.extend(route.src.map(|src| RouteAttribute::PrefSource(src.into())));
    attributes.extend(route.metric.map(RouteAttribute::Priority));
    let mut metrics: Vec<_> = route.mtu.map(RouteMetric::Mtu).into_iter().collect();
    metrics.extend(route.advmss.map(RouteMetric::Advmss));
    if !metrics.is_empty() {
        attributes.push(RouteAttribute::Metrics(metrics));
    }
    let via = route
        .via
        .map_or_else(String::new, |via| format!(" via {via}"));
    let what = format!("add route {}{via} dev {link} table {table}", route.dst);
    Request::new(Message::NewRoute(message), NLM_F_CREATE, what)
}

/// Asks which route the kernel has for the first address of `dst`.
pub(crate) fn get(dst: IpNet) -> Request {
    let mut message = message(IpNet::from(dst.network()));
    message.header.flags = RouteFlags::FibMatch;
    let what = format!("find the route to {dst}");
    Request::new(Message::GetRoute(message), 0, what)
}

pub(crate) fn list(of: Family) -> Request {
    let mut message = RouteMessage::default();
    message.header.address_family = family(of);
    let what = format!("list {of} routes");
    Request::new(Message::GetRoute(message), 0, what)
}

/// Reads a route from an answer, once per next hop: the kernel joins IPv6 routes to the same
/// destination through several links into one.
pub(crate) fn read_hops(payload: &[u8]) -> Vec<ObservedRoute> {
    let Some(route) = read(payload) else {
        return Vec::new();
    };
    match attribute(&payload[12..], libc::RTA_MULTIPATH) {
        Some(hops) => hops_of(&route, hops),
        None => vec![route],
    }
}

/// Reads one route from an answer, if it is unicast, not in the table `local` and no cache entry.
pub(crate) fn read(payload: &[u8]) -> Option<ObservedRoute> {
    const UNICAST: u8 = 1;
    const CLONED: u32 = 0x200;
    let header = payload.get(..12)?;
    let family = family_of(header[0])?;
    if header[7] != UNICAST || u32_of(&header[8..12]) & CLONED != 0 {
        return None;
    }
    let mut route = ObservedRoute {
        link: None,
        dst: family.everything(),
        via: None,
        src: None,
        table: u32::from(header[4]),
        metric: 0,
        scope: header[6],
        protocol: header[5],
    };
    for (kind, value) in attributes(&payload[12..]) {
        match kind {
            libc::RTA_DST => route.dst = IpNet::new(ip(value)?, header[1]).ok()?,
            libc::RTA_OIF => route.link = Some(u32_of(value)),
            libc::RTA_GATEWAY => route.via = ip(value),
            libc::RTA_PREFSRC => route.src = ip(value),
            libc::RTA_TABLE => route.table = u32_of(value),
            libc::RTA_PRIORITY => route.metric = u32_of(value),
            _ => {}
        }
    }
    (route.table != LOCAL).then_some(route)
}

/// Each hop: length (2 bytes), flags, weight, index (4 bytes), attributes; padded to 4 bytes.
fn hops_of(route: &ObservedRoute, mut hops: &[u8]) -> Vec<ObservedRoute> {
    const HEADER: usize = 8;
    let mut found = Vec::new();
    while let Some(header) = hops.get(..HEADER) {
        let length = usize::from(u16_of(&header[..2]));
        let Some(inner) = hops.get(HEADER..length) else {
            break;
        };
        found.push(ObservedRoute {
            link: Some(u32_of(&header[4..HEADER])),
            via: attribute(inner, libc::RTA_GATEWAY).and_then(ip),
            ..route.clone()
        });
        hops = hops.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

pub(crate) const MAIN: u32 = 254;
const LOCAL: u32 = 255;

/// The family of a message, by its first byte.
pub(crate) fn family_of(byte: u8) -> Option<Family> {
    match i32::from(byte) {
        libc::AF_INET => Some(Family::V4),
        libc::AF_INET6 => Some(Family::V6),
        _ => None,
    }
}

pub(crate) fn message(dst: IpNet) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(Family::of(dst.addr()));
    message.header.destination_prefix_length = dst.prefix_len();
    message.attributes = Vec::with_capacity(6);
    if dst.prefix_len() > 0 {
        let dst = RouteAttribute::Destination(dst.network().into());
        message.attributes.push(dst);
    }
    message
}
