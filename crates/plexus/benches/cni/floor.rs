//! The floor: the same links, addresses and routes by raw netlink in this process, in the fewest
//! messages that the kernel takes. No process, no socket to an agent, no allocation, no journal,
//! no mark on the links, no reading back, no announcement.
//!
//! All links are born in the pod's namespace by one send (a macvlan with a chosen index, up); one
//! more send inside sets the addresses, routes and what must be brought up, `lo` too. They are
//! removed by one message: by name, or several by their group.

use crate::config::{FLOOR_BRIDGE, Shape, UPLINK};
use crate::wire::Wire;
use anyhow::Result;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoMacVlan, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
    MacVlanMode,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use plexus_kernel::Netns;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, RawFd};

const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;
const LOOPBACK: u32 = 1;
const GROUP: u32 = 4242;
/// Above what the kernel gives out by itself in a fresh namespace.
const FIRST_INDEX: u32 = 1000;

/// What the floor has on the node: its bridge, and the parent of its macvlans.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Floor {
    parent: u32,
    bridge: u32,
}

impl Floor {
    /// Makes the bridge in the calling thread's namespace.
    pub(crate) fn new() -> Result<Self> {
        let mut wire = Wire::open()?;
        let mut bridge = link(vec![
            LinkAttribute::IfName(FLOOR_BRIDGE.to_owned()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
        ]);
        up(&mut bridge);
        wire.send(vec![(Message::NewLink(bridge), NEW)])?;
        let bridge = wire.index_of(FLOOR_BRIDGE)?;
        wire.send(vec![address(bridge, Ipv4Addr::new(10, 40, 0, 1))])?;
        let parent = wire.index_of(UPLINK)?;
        Ok(Self { parent, bridge })
    }

    /// Makes the pod's interfaces; `on_node` is a socket of the node, `number` the pod's.
    pub(crate) fn add(
        self,
        on_node: &mut Wire,
        pod: &Netns,
        shape: Shape,
        number: u16,
    ) -> Result<()> {
        let fd = pod.as_fd().as_raw_fd();
        let mut links = Vec::with_capacity(4);
        if shape.has_bridge() {
            links.push((Message::NewLink(self.veth(fd, number)), NEW));
        }
        for lan in 0..shape.macvlans() {
            let name = if shape.has_bridge() {
                format!("net{}", lan + 1)
            } else {
                "eth0".to_owned()
            };
            let index = FIRST_INDEX + lan as u32;
            links.push((Message::NewLink(self.macvlan(fd, name, index)), NEW));
        }
        on_node.send(links)?;
        pod.enter(|| configure(shape, number))?
    }

    fn veth(self, pod: RawFd, number: u16) -> LinkMessage {
        let peer = link(vec![
            LinkAttribute::IfName("eth0".to_owned()),
            LinkAttribute::NetNsFd(pod),
            LinkAttribute::Group(GROUP),
        ]);
        let mut message = link(vec![
            LinkAttribute::IfName(format!("fl{number}")),
            LinkAttribute::Controller(self.bridge),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
            ]),
        ]);
        up(&mut message);
        message
    }

    fn macvlan(self, pod: RawFd, name: String, index: u32) -> LinkMessage {
        let mode = InfoData::MacVlan(vec![InfoMacVlan::Mode(MacVlanMode::Bridge)]);
        let mut message = link(vec![
            LinkAttribute::IfName(name),
            LinkAttribute::NetNsFd(pod),
            LinkAttribute::Group(GROUP),
            LinkAttribute::Link(self.parent),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::MacVlan),
                LinkInfo::Data(mode),
            ]),
        ]);
        message.header.index = index;
        up(&mut message);
        message
    }
}

/// Removes a pod's interfaces.
pub(crate) fn del(pod: &Netns, shape: Shape) -> Result<()> {
    let what = if shape.has_bridge() && shape.macvlans() > 0 {
        LinkAttribute::Group(GROUP)
    } else {
        LinkAttribute::IfName("eth0".to_owned())
    };
    pod.enter(|| Wire::open()?.send(vec![(Message::DelLink(link(vec![what])), 0)]))?
}

fn configure(shape: Shape, number: u16) -> Result<()> {
    let mut wire = Wire::open()?;
    let [high, low] = number.to_be_bytes();
    let mut messages = vec![bring_up(LOOPBACK)];
    if shape.has_bridge() {
        // The kernel does not take an index for a veth's peer.
        let index = wire.index_of("eth0")?;
        messages.push(address(index, Ipv4Addr::new(10, 40, high, low)));
        messages.push(bring_up(index));
        messages.push(default_route(index, Ipv4Addr::new(10, 40, 0, 1)));
    }
    for lan in 0..shape.macvlans() {
        let net = Ipv4Addr::new(10, 41 + lan as u8, high, low);
        messages.push(address(FIRST_INDEX + lan as u32, net));
    }
    wire.send(messages)
}

fn link(attributes: Vec<LinkAttribute>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = attributes;
    message
}

fn up(message: &mut LinkMessage) {
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
}

fn bring_up(index: u32) -> (Message, u16) {
    let mut message = link(Vec::new());
    message.header.index = index;
    up(&mut message);
    (Message::SetLink(message), 0)
}

fn address(index: u32, address: Ipv4Addr) -> (Message, u16) {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = 16;
    message.header.index = index;
    message.attributes = vec![
        AddressAttribute::Local(IpAddr::V4(address)),
        AddressAttribute::Address(IpAddr::V4(address)),
    ];
    (Message::NewAddress(message), NEW)
}

fn default_route(index: u32, via: Ipv4Addr) -> (Message, u16) {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Boot;
    message.header.scope = RouteScope::Universe;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Oif(index),
        RouteAttribute::Gateway(IpAddr::V4(via).into()),
    ];
    (Message::NewRoute(message), NEW)
}
