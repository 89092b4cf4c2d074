//! The node's NICs, observed: links with addresses, speed and what hardware they are, and which of them the default
//! routes lead to. Owns the look; which of them count is decided in `core`.
//!
//! Asks netlink and `/sys/bus`, never `/sys/class/net`: that shows the namespace in which it was mounted.

use crate::netlink::{Request, u32_of};
use crate::observe::{attribute, list};
use crate::route::{self, MAIN};
use crate::{NetlinkError, NodeSide, Socket, Sysfs, address, ethtool, link};
use ipnet::IpNet;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use plexus_core::attachment::Alias;
use plexus_core::nics::{Nic, NicState};
use plexus_core::plan::ObservedLink;
use plexus_types::Family;
use std::collections::{BTreeMap, BTreeSet};

/// Every link of the node that may be a NIC, by index.
pub fn observe(node: &NodeSide, sysfs: &Sysfs) -> Result<Vec<Nic>, NetlinkError> {
    let mut seen = node.with_socket(|socket| -> Result<Seen, NetlinkError> {
        Ok(Seen {
            links: list(socket, link::list(), read_link)?,
            addresses: list(socket, address::list(None), read_address)?,
            default_links: default_links(socket)?,
            speeds: BTreeMap::new(),
        })
    })?;
    // It is told in no other way; that a driver does not say it hides no NIC.
    seen.speeds = node.inside(ethtool::speeds)?.unwrap_or_default();
    let kinds: BTreeMap<u32, &str> = seen
        .links
        .iter()
        .map(|(link, _)| (link.index, link.kind.as_str()))
        .collect();
    let links = seen.links.iter();
    let nics = links.filter(|(link, _)| link.index != link::LOOPBACK);
    let nics = nics.map(|(link, carrier)| seen.nic(link, *carrier, &kinds, sysfs));
    Ok(nics.collect())
}

struct Seen {
    /// With whether there is a carrier.
    links: Vec<(ObservedLink, bool)>,
    addresses: Vec<(u32, IpNet)>,
    default_links: BTreeSet<u32>,
    speeds: BTreeMap<u32, u32>,
}

impl Seen {
    fn nic(
        &self,
        link: &ObservedLink,
        carrier: bool,
        kinds: &BTreeMap<u32, &str>,
        sysfs: &Sysfs,
    ) -> Nic {
        let of_link = self.addresses.iter().filter(|(at, _)| *at == link.index);
        let state = match (link.up, carrier) {
            (false, _) => NicState::Down,
            (true, false) => NicState::NoCarrier,
            (true, true) => NicState::Up,
        };
        let speed = self.speeds.get(&link.index).copied();
        // What is a port of something that is not seen is a port all the same.
        let kind_of = |master: u32| kinds.get(&master).copied().unwrap_or("unknown").to_owned();
        let hardware = link.hardware.as_ref();
        Nic {
            index: link.index,
            name: link.name.clone(),
            kind: link.kind.clone(),
            addresses: of_link.map(|(_, net)| *net).collect(),
            mac: link.mac,
            permanent_mac: hardware.and_then(|hardware| hardware.mac),
            mtu: link.mtu,
            state,
            speed: speed.filter(|_| state == NicState::Up),
            device: hardware.map(|hardware| sysfs.nic(hardware)),
            master: link.master.map(kind_of),
            parent: link.parent.filter(|_| link.parent_netns.is_none()),
            default_route: self.default_links.contains(&link.index),
            ours: link.alias.as_deref().is_some_and(is_ours),
        }
    }
}

fn is_ours(alias: &str) -> bool {
    Alias::parse(alias).is_some()
}

pub(crate) fn read_link(payload: &[u8]) -> Option<(ObservedLink, bool)> {
    const IFF_LOWER_UP: u32 = 0x1_0000;
    let flags = u32_of(payload.get(8..12)?);
    Some((link::read(payload)?, flags & IFF_LOWER_UP != 0))
}

/// Of an address that stays: one that nobody has checked yet, or that is made anew every day, is told to nobody.
pub(crate) fn read_address(payload: &[u8]) -> Option<(u32, IpNet)> {
    const IFA_FLAGS: u16 = 8;
    const UNSETTLED: u32 = libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED;
    let (header, attributes) = payload.split_at_checked(8)?;
    let flags = attribute(attributes, IFA_FLAGS).map_or(u32::from(header[2]), u32_of);
    let v6 = i32::from(header[0]) == libc::AF_INET6;
    // Of IPv4 the same bit says "secondary".
    let temporary = v6 && flags & libc::IFA_F_TEMPORARY != 0;
    if temporary || flags & UNSETTLED != 0 {
        return None;
    }
    let found = address::read(payload)?;
    Some((found.link, found.net))
}

/// The links of all default routes of the main table: several, if there are several ways out.
fn default_links(socket: &mut Socket) -> Result<BTreeSet<u32>, NetlinkError> {
    let mut links = BTreeSet::new();
    for of in Family::ALL {
        let mut message = RouteMessage::default();
        message.header.address_family = address::family(of);
        message.attributes.push(RouteAttribute::Table(MAIN));
        let what = format!("list {of} routes of the main table");
        let request = Request::new(Message::GetRoute(message), 0, what);
        let routes = list(socket, request, route::read_hops)?;
        let default = routes
            .iter()
            .filter(|route| route.dst.prefix_len() == 0 && route.table == MAIN);
        links.extend(default.filter_map(|route| route.link));
    }
    Ok(links)
}
