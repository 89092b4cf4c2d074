//! Virtual wires between network namespaces: bridges in one of them, the hub, and veths from there to others.
//! Owns how they are made, cut and joined again; decides no name and no address. Everything can be repeated:
//! what is there stays as it is.
//!
//! ```text
//!   hub:  bridge ── outer end ═══ inner end :node      one batch of messages per namespace
//! ```

use crate::effect::Effect;
use crate::netlink::Request;
use crate::observe::{What, observe};
use crate::{NetlinkError, Netns, Socket, address, link, route};
use ipnet::IpNet;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{InfoBridge, InfoData, LinkAttribute, LinkFlags};
use netlink_packet_route::route::RouteProtocol;
use plexus_core::plan::{ObservedLink, Route};
use plexus_types::{Family, Mac};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

/// A bridge of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// Its MAC: one of its own, so that it does not change with the ports.
    pub mac: Mac,
    /// The hub's own addresses on it.
    pub addresses: Vec<IpNet>,
}

/// A wire from a bridge of the hub to another namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    /// The bridge.
    pub bridge: String,
    /// The name of the end that is a port of the bridge.
    pub outer: String,
    /// The name of the other end.
    pub inner: String,
    /// The MAC of the other end.
    pub mac: Mac,
    /// The addresses of the other end.
    pub addresses: Vec<IpNet>,
    /// The MTU of both ends when they are made; none: the kernel's.
    pub mtu: Option<u32>,
    /// Whether the other end is brought up; otherwise it stays as it is, and a new one is down.
    pub up: bool,
}

/// Makes the hub: loopback up, with addresses; bridges up, with theirs.
pub fn make_hub(hub: &Netns, loopback: &[IpNet], bridges: &[Bridge]) -> Result<(), NetlinkError> {
    let mut socket = Socket::open_in(hub)?;
    let links = observe(&mut socket, What::LINKS)?.links;
    let missing = bridges
        .iter()
        .filter(|bridge| !links.iter().any(|link| link.name == bridge.name));
    // Nobody asks who listens to which group: without an answer, frames would be dropped.
    let data = || InfoData::Bridge(vec![InfoBridge::MulticastSnooping(false)]);
    let create = |b: &Bridge| link::create_bridge(&b.name, None, b.mac, Some(data()));
    let requests: Vec<Request> = missing.map(create).collect();
    socket.batch(Effect::none(), &requests)?;
    let named = bridges
        .iter()
        .map(|bridge| (bridge.name.as_str(), bridge.addresses.as_slice(), true));
    configure(
        &mut socket,
        [("lo", loopback, true)].into_iter().chain(named),
    )
}

/// Joins a namespace to the hub by wires, gives the inner ends their addresses and, through the first
/// wire, default routes.
pub fn plug(
    hub: &Netns,
    node: &Netns,
    wires: &[Wire],
    gateways: &[IpAddr],
) -> Result<(), NetlinkError> {
    let mut outer = Socket::open_in(hub)?;
    let mut inner = Socket::open_in(node)?;
    let in_hub = observe(&mut outer, What::LINKS)?.links;
    let in_node = observe(&mut inner, What::LINKS)?.links;
    let mut requests = Vec::new();
    for wire in wires {
        let end = in_hub.iter().find(|link| link.name == wire.outer);
        let whole = end.is_some() && in_node.iter().any(|link| link.name == wire.inner);
        if whole {
            continue;
        }
        // Its other end is in a namespace of that name that was there before.
        requests.extend(end.map(|end| link::delete(&end.name, end.index)));
        let bridge = in_hub.iter().find(|link| link.name == wire.bridge);
        requests.push(create_wire(wire, bridge.map(|bridge| bridge.index), node));
    }
    outer.batch(Effect::none(), &requests)?;
    let named = wires
        .iter()
        .map(|wire| (wire.inner.as_str(), wire.addresses.as_slice(), wire.up));
    configure(&mut inner, [("lo", &[][..], true)].into_iter().chain(named))?;
    match wires.first() {
        Some(first) => add_default_routes(&mut inner, &first.inner, gateways),
        None => Ok(()),
    }
}

/// Brings the loopback link of a namespace up.
pub fn bring_loopback_up(netns: &Netns) -> Result<(), NetlinkError> {
    let mut socket = Socket::open_in(netns)?;
    socket.batch(Effect::none(), &[link::set_up("lo", link::LOOPBACK)])
}

/// Cuts wires (`up` false) or joins them again, by their outer ends. What is not there is named by the
/// refusal.
pub fn set_carrier(hub: &Netns, outer: &[String], up: bool) -> Result<(), NetlinkError> {
    let mut socket = Socket::open_in(hub)?;
    let requests: Vec<Request> = outer.iter().map(|name| set_state(name, up)).collect();
    socket.batch(Effect::none(), &requests)
}

/// Whether each of the wires is joined, by its outer end; false also for one that is not there.
pub fn carriers(hub: &Netns, outer: &[String]) -> Result<Vec<bool>, NetlinkError> {
    let mut socket = Socket::open_in(hub)?;
    let links = observe(&mut socket, What::LINKS)?.links;
    let is_up = |name: &String| links.iter().any(|link| link.name == *name && link.up);
    Ok(outer.iter().map(is_up).collect())
}

/// Removes wires at once, by their outer ends; what is gone already is fine.
pub fn unplug(hub: &Netns, outer: &[String]) -> Result<(), NetlinkError> {
    let mut socket = Socket::open_in(hub)?;
    let links = observe(&mut socket, What::LINKS)?.links;
    let there = links.iter().filter(|link| outer.contains(&link.name));
    let delete = |there: &ObservedLink| link::delete(&there.name, there.index);
    let requests: Vec<Request> = there.map(delete).collect();
    let refused = socket.batch_all(Effect::none(), &requests)?;
    match refused.into_iter().find(|r| r.errno != libc::ENODEV) {
        Some(refused) => Err(refused.into()),
        None => Ok(()),
    }
}

/// Links up if they are to be, and the addresses that they lack.
fn configure<'a>(
    socket: &mut Socket,
    wanted: impl Iterator<Item = (&'a str, &'a [IpNet], bool)>,
) -> Result<(), NetlinkError> {
    let what = What {
        addresses: true,
        ..What::LINKS
    };
    let seen = observe(socket, what)?;
    let mut requests = Vec::new();
    for (name, addresses, up) in wanted {
        let Some(found) = seen.links.iter().find(|link| link.name == name) else {
            continue;
        };
        if up && !found.up {
            requests.push(link::set_up(name, found.index));
        }
        let has = |net: &IpNet| {
            let mut all = seen.addresses.iter();
            all.any(|a| a.link == found.index && a.net == *net)
        };
        let missing = addresses.iter().filter(|net| !has(net));
        requests.extend(missing.map(|net| address::add(name, found.index, *net)));
    }
    socket.batch(Effect::none(), &requests)
}

fn add_default_routes(
    socket: &mut Socket,
    name: &str,
    gateways: &[IpAddr],
) -> Result<(), NetlinkError> {
    let what = What {
        routes: (true, true),
        ..What::LINKS
    };
    let seen = observe(socket, what)?;
    let Some(found) = seen.links.iter().find(|link| link.name == name) else {
        return Ok(());
    };
    let has = |gateway: &IpAddr| {
        let mut routes = seen.routes.iter();
        routes.any(|r| r.dst.prefix_len() == 0 && r.via == Some(*gateway))
    };
    let missing = gateways.iter().filter(|gateway| !has(gateway));
    let requests: Vec<Request> = missing
        .map(|gateway| default_route(name, found.index, *gateway))
        .collect();
    socket.batch(Effect::none(), &requests)
}

/// Not marked as what an agent makes: it would take it for its own.
fn default_route(name: &str, index: u32, gateway: IpAddr) -> Request {
    let default = Route::new(Family::of(gateway).everything(), Some(gateway));
    let mut request = route::add(name, index, &default);
    if let Message::NewRoute(message) = &mut request.message {
        message.header.protocol = RouteProtocol::Static;
    }
    request
}

fn create_wire(wire: &Wire, bridge: Option<u32>, node: &Netns) -> Request {
    let mtu = wire.mtu.map(LinkAttribute::Mtu);
    let mut peer = vec![
        link::name(&wire.inner),
        link::address(wire.mac),
        LinkAttribute::NetNsFd(node.as_fd().as_raw_fd()),
    ];
    peer.extend(mtu.clone());
    let mut outer = vec![link::name(&wire.outer)];
    outer.extend(mtu);
    outer.push(link::veth(peer));
    outer.extend(bridge.map(LinkAttribute::Controller));
    let what = format!("create wire {}", wire.outer);
    link::make(link::message_up(outer), what)
}

fn set_state(name: &str, is_up: bool) -> Request {
    let mut message = link::message_up(vec![link::name(name)]);
    message.header.flags.set(LinkFlags::Up, is_up);
    let verb = if is_up { "join" } else { "cut" };
    Request::new(Message::SetLink(message), 0, format!("{verb} wire {name}"))
}
