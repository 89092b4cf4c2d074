//! Routes: how one is set, asked for and read.

use crate::address::family;
use crate::netlink::{Request, attributes, ip, u16_of, u32_of};
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
    message.header.scope = route.scope.map(RouteScope::from).unwrap_or_else(|| {
        if route.via.is_some() {
            RouteScope::Universe
        } else {
            RouteScope::Link
        }
    });
    if route.onlink {
        message.header.flags = RouteFlags::Onlink;
    }
    let attributes = &mut message.attributes;
    attributes.push(RouteAttribute::Oif(index));
    attributes.push(RouteAttribute::Table(table));
    attributes.extend(route.via.map(|via| RouteAttribute::Gateway(via.into())));
    attributes.extend(route.src.map(|src| RouteAttribute::PrefSource(src.into())));
    attributes.extend(route.metric.map(RouteAttribute::Priority));
    let metrics: Vec<_> = [
        route.mtu.map(RouteMetric::Mtu),
        route.advmss.map(RouteMetric::Advmss),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !metrics.is_empty() {
        attributes.push(RouteAttribute::Metrics(metrics));
    }
    let via = route
        .via
        .map(|via| format!(" via {via}"))
        .unwrap_or_default();
    let what = format!("add route {}{via} dev {link} table {table}", route.dst);
    Request::new(Message::NewRoute(message), NLM_F_CREATE, what)
}

/// Asks which route the kernel has for the first address of `dst`.
pub(crate) fn get(dst: IpNet) -> Request {
    let mut message = message(IpNet::from(dst.network()));
    message.header.flags = RouteFlags::FibMatch;
    Request::new(
        Message::GetRoute(message),
        0,
        format!("find the route to {dst}"),
    )
}

/// Asks for all routes of a family.
pub(crate) fn list(family: Family) -> Request {
    let mut message = RouteMessage::default();
    message.header.address_family = crate::address::family(family.everything().addr());
    Request::new(
        Message::GetRoute(message),
        0,
        format!("list {family} routes"),
    )
}

/// Reads a route from an answer, once per next hop: the kernel joins IPv6 routes to the same
/// destination through several links into one.
pub(crate) fn read_hops(payload: &[u8]) -> Vec<ObservedRoute> {
    let Some(route) = read(payload) else {
        return Vec::new();
    };
    let several = attributes(&payload[12..]).find(|(kind, _)| *kind == libc::RTA_MULTIPATH);
    match several {
        Some((_, hops)) => hops_of(&route, hops),
        None => vec![route],
    }
}

/// Reads one route from an answer, if it is unicast, not in the table `local` and no cache entry.
pub(crate) fn read(payload: &[u8]) -> Option<ObservedRoute> {
    const UNICAST: u8 = 1;
    const CLONED: u32 = 0x200;
    let header = payload.get(..12)?;
    let family = match i32::from(header[0]) {
        libc::AF_INET => Family::V4,
        libc::AF_INET6 => Family::V6,
        _ => return None,
    };
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
        let gateway = attributes(inner).find(|(kind, _)| *kind == libc::RTA_GATEWAY);
        found.push(ObservedRoute {
            link: Some(u32_of(&header[4..HEADER])),
            via: gateway.and_then(|(_, value)| ip(value)),
            ..route.clone()
        });
        hops = hops.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

pub(crate) const MAIN: u32 = 254;
const LOCAL: u32 = 255;

fn message(dst: IpNet) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(dst.addr());
    message.header.destination_prefix_length = dst.prefix_len();
    message.attributes = Vec::with_capacity(6);
    if dst.prefix_len() > 0 {
        message
            .attributes
            .push(RouteAttribute::Destination(dst.network().into()));
    }
    message
}
