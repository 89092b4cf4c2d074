//! Links: how one is made, changed, removed and read.

use crate::device;
use crate::netlink::{Request, attributes, text, u32_of};
use crate::observe::attribute;
use netlink_packet_core::{DefaultNla, Emitable};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{
    InfoBridgePort, InfoData, InfoKind, InfoPortData, InfoPortKind, InfoVeth, LinkAttribute,
    LinkExtentMask, LinkFlags, LinkInfo, LinkMessage,
};
use plexus_core::plan::{
    Hardware, HostEnd, Link, LinkKind, LinkOption, ObservedLink, Stacked, Width,
};
use plexus_types::Mac;
use std::os::fd::RawFd;

/// The loopback link has this index in every namespace.
pub(crate) const LOOPBACK: u32 = 1;

/// Makes a link of a plan inside the pod's namespace under its final name, down; of a veth pair
/// the node's end, up and in its bridge, with the pod's end as its peer. A device of the node is moved there.
///
/// `bridge` is the index of the host end's bridge.
pub(crate) fn create(link: &Link, group: u32, pod: RawFd, bridge: Option<u32>) -> Vec<Request> {
    let mut inside = vec![
        name(link.name.as_str()),
        LinkAttribute::NetNsFd(pod),
        LinkAttribute::Group(group),
    ];
    inside.extend(link.mac.map(address));
    inside.extend(link.mtu.map(LinkAttribute::Mtu));
    match &link.kind {
        LinkKind::Stacked(stacked) => {
            let Stacked {
                parent, kind: of, ..
            } = stacked;
            let data = InfoData::Other(data_of(stacked));
            inside.push(LinkAttribute::Link(parent.index));
            inside.push(kind(InfoKind::Other(of.clone()), Some(data)));
            let what = format!("create {of} {} on {}", link.name, parent.name);
            vec![make(message(0, inside), what)]
        }
        LinkKind::Veth(end) => {
            let what = format!("create veth {} with node end {}", link.name, end.name);
            vec![make(host_end(end, bridge, inside), what)]
        }
        LinkKind::Moved(device) => device::give(link, device, pod),
    }
}

/// Marks a link of the socket's namespace. In a message of its own: the kernel ignores an alias in
/// the message that creates the link.
pub(crate) fn set_alias(link: &str, index: u32, alias: &str) -> Request {
    set_alias_and(link, index, alias, None)
}

/// The same, with more to set: see [`devconf`](crate::devconf).
pub(crate) fn set_alias_and(
    link: &str,
    index: u32,
    alias: &str,
    more: Option<LinkAttribute>,
) -> Request {
    let mut attributes = vec![LinkAttribute::IfAlias(alias.to_owned())];
    attributes.extend((index == 0).then(|| name(link)));
    attributes.extend(more);
    set(index, attributes, format!("set the alias of {link}"))
}

/// Lets the bridge send frames back out of the port that they came in by.
pub(crate) fn set_hairpin(link: &str) -> Request {
    let hairpin = InfoPortData::BridgePort(vec![InfoBridgePort::HairpinMode(true)]);
    let port = LinkAttribute::LinkInfo(vec![
        LinkInfo::PortKind(InfoPortKind::Bridge),
        LinkInfo::PortData(hairpin),
    ]);
    let what = format!("switch hairpin mode on for {link}");
    Request::new(
        Message::NewLink(message(0, vec![name(link), port])),
        0,
        what,
    )
}

pub(crate) fn set_up(link: &str, index: u32) -> Request {
    let what = format!("bring up {link}");
    set_flags(index, LinkFlags::Up, LinkFlags::Up, what)
}

pub(crate) fn set_promisc(link: &str, index: u32) -> Request {
    let what = format!("switch promiscuous mode on for {link}");
    set_flags(index, LinkFlags::Promisc, LinkFlags::Promisc, what)
}

pub(crate) fn set_mtu(link: &str, index: u32, mtu: u32) -> Request {
    let what = format!("set the MTU of {link} to {mtu}");
    set(index, vec![LinkAttribute::Mtu(mtu)], what)
}

pub(crate) fn set_group(link: &str, index: u32, group: u32) -> Request {
    let what = format!("put {link} into group {group:#x}");
    set(index, vec![LinkAttribute::Group(group)], what)
}

pub(crate) fn set_master(link: &str, index: u32, master: u32) -> Request {
    let what = format!("make {link} a port");
    set(index, vec![LinkAttribute::Controller(master)], what)
}

/// Makes the link between the node and a router: the node's end in a group, up; the other end in
/// the router's namespace.
pub(crate) fn create_uplink(
    (outer, inner): (&str, &str),
    mtu: u32,
    group: u32,
    router: RawFd,
) -> Request {
    let mtu = LinkAttribute::Mtu(mtu);
    let peer = vec![name(inner), LinkAttribute::NetNsFd(router), mtu.clone()];
    let outer_end = vec![name(outer), mtu, LinkAttribute::Group(group), veth(peer)];
    make(message_up(outer_end), format!("create uplink {outer}"))
}

/// Makes a bridge, up.
pub(crate) fn create_bridge(
    bridge: &str,
    mtu: Option<u32>,
    mac: Mac,
    data: Option<InfoData>,
) -> Request {
    let mut attributes = vec![name(bridge), address(mac), kind(InfoKind::Bridge, data)];
    attributes.extend(mtu.map(LinkAttribute::Mtu));
    make(message_up(attributes), format!("create bridge {bridge}"))
}

/// Makes a link of any kind, down.
pub(crate) fn create_plain(
    link: &str,
    info: InfoKind,
    data: Option<InfoData>,
    parent: Option<u32>,
) -> Request {
    let mut attributes = vec![name(link), kind(info, data)];
    attributes.extend(parent.map(LinkAttribute::Link));
    make(message(0, attributes), format!("create link {link}"))
}

pub(crate) fn delete(link: &str, index: u32) -> Request {
    let message = Message::DelLink(message(index, Vec::new()));
    Request::new(message, 0, format!("delete link {link}"))
}

/// Removes every link of a group in one go: as slow as removing one.
pub(crate) fn delete_group(group: u32) -> Request {
    let message = Message::DelLink(message(0, vec![LinkAttribute::Group(group)]));
    Request::new(message, 0, format!("delete the links of group {group}"))
}

pub(crate) fn get_by_name(link: &str) -> Request {
    get(0, vec![name(link)], format!("find link {link}"))
}

pub(crate) fn get_by_index(index: u32) -> Request {
    get(index, Vec::new(), format!("find link {index}"))
}

pub(crate) fn list() -> Request {
    get(0, Vec::new(), "list links".to_owned())
}

/// Asks for all links of the namespace that has this number in the socket's.
pub(crate) fn list_in(nsid: i32) -> Request {
    let what = format!("list links of namespace {nsid}");
    get(0, vec![LinkAttribute::IfNetnsId(nsid)], what)
}

/// Without statistics, which nobody reads.
fn get(index: u32, mut attributes: Vec<LinkAttribute>, what: String) -> Request {
    attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
    Request::new(Message::GetLink(message(index, attributes)), 0, what)
}

pub(crate) fn read(payload: &[u8]) -> Option<ObservedLink> {
    let header = payload.get(..16)?;
    let flags = u32_of(&header[8..12]);
    let mut link = ObservedLink {
        index: u32_of(&header[4..8]),
        name: String::new(),
        kind: String::new(),
        options: Vec::new(),
        mac: None,
        mtu: 0,
        up: flags & libc::IFF_UP as u32 != 0,
        group: 0,
        alias: None,
        master: None,
        parent: None,
        parent_netns: None,
        promisc: flags & libc::IFF_PROMISC as u32 != 0,
        altnames: Vec::new(),
        hardware: None,
    };
    let (mut bus, mut device, mut permanent) = (None, None, None);
    let mut info = &[][..];
    for (kind, value) in attributes(&payload[16..]) {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_ADDRESS => link.mac = mac(value),
            libc::IFLA_MTU => link.mtu = u32_of(value),
            libc::IFLA_GROUP => link.group = u32_of(value),
            libc::IFLA_IFALIAS => link.alias = Some(text(value)),
            libc::IFLA_MASTER => link.master = Some(u32_of(value)),
            libc::IFLA_LINK => link.parent = Some(u32_of(value)),
            libc::IFLA_LINK_NETNSID => link.parent_netns = Some(u32_of(value) as i32),
            libc::IFLA_LINKINFO => info = value,
            libc::IFLA_PROP_LIST => {
                let names = attributes(value).filter(|(kind, _)| *kind == libc::IFLA_ALT_IFNAME);
                link.altnames.extend(names.map(|(_, name)| text(name)));
            }
            libc::IFLA_PARENT_DEV_BUS_NAME => bus = Some(text(value)),
            libc::IFLA_PARENT_DEV_NAME => device = Some(text(value)),
            libc::IFLA_PERM_ADDRESS => permanent = mac(value),
            _ => {}
        }
    }
    read_info(&mut link, info);
    if let (Some(bus), Some(device)) = (bus, device) {
        link.hardware = Some(Hardware {
            bus,
            device,
            mac: permanent,
        });
    }
    Some(link)
}

/// Reads a MAC; of Ethernet alone.
pub(crate) fn mac(value: &[u8]) -> Option<Mac> {
    Mac::new(<[u8; 6]>::try_from(value).ok()?).ok()
}

fn read_info(link: &mut ObservedLink, info: &[u8]) {
    const IFLA_INFO_KIND: u16 = 1;
    link.kind = attribute(info, IFLA_INFO_KIND)
        .map(text)
        .unwrap_or_default();
    // Of bridges, which have many, nobody asks for numbers.
    if link.parent.is_some() {
        let data = attribute(info, IFLA_INFO_DATA).unwrap_or_default();
        let numbers = attributes(data).filter_map(|(kind, value)| Some((kind, number(value)?)));
        link.options.extend(numbers);
    }
}

pub(crate) const IFLA_INFO_DATA: u16 = 2;

fn number(value: &[u8]) -> Option<u32> {
    match value {
        [a] => Some(u32::from(*a)),
        [a, b] => Some(u32::from(u16::from_ne_bytes([*a, *b]))),
        [_, _, _, _] => Some(u32_of(value)),
        _ => None,
    }
}

fn host_end(end: &HostEnd, bridge: Option<u32>, peer: Vec<LinkAttribute>) -> LinkMessage {
    let mut attributes = vec![
        name(end.name.as_str()),
        address(end.mac),
        // No queue on the way into the pod, as the reference plugin has it.
        LinkAttribute::TxQueueLen(0),
        veth(peer),
    ];
    attributes.extend(end.mtu.map(LinkAttribute::Mtu));
    attributes.extend(bridge.map(LinkAttribute::Controller));
    attributes.extend(end.group().map(LinkAttribute::Group));
    message_up(attributes)
}

/// Makes a link; one that is there is refused.
pub(crate) fn make(message: LinkMessage, what: String) -> Request {
    Request::new(Message::NewLink(message), 0, what).exclusive()
}

/// Changes a link; without an index, the one whose name is among the attributes.
pub(crate) fn set(index: u32, attributes: Vec<LinkAttribute>, what: String) -> Request {
    Request::new(Message::SetLink(message(index, attributes)), 0, what)
}

/// Makes those flags of a link that are in the mask what they are in `flags`.
pub(crate) fn set_flags(index: u32, flags: LinkFlags, mask: LinkFlags, what: String) -> Request {
    let mut message = message(index, Vec::new());
    message.header.flags = flags;
    message.header.change_mask = mask;
    Request::new(Message::SetLink(message), 0, what)
}

pub(crate) fn message(index: u32, attributes: Vec<LinkAttribute>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes = attributes;
    message
}

/// Of a link that is to be up.
pub(crate) fn message_up(attributes: Vec<LinkAttribute>) -> LinkMessage {
    let mut message = message(0, attributes);
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    message
}

pub(crate) fn name(name: &str) -> LinkAttribute {
    LinkAttribute::IfName(name.to_owned())
}

pub(crate) fn address(mac: Mac) -> LinkAttribute {
    LinkAttribute::Address(mac.bytes().to_vec())
}

pub(crate) fn kind(kind: InfoKind, data: Option<InfoData>) -> LinkAttribute {
    let kind = [LinkInfo::Kind(kind)].into_iter();
    LinkAttribute::LinkInfo(kind.chain(data.map(LinkInfo::Data)).collect())
}

/// One end of a veth pair, the other one of which has these attributes.
pub(crate) fn veth(peer: Vec<LinkAttribute>) -> LinkAttribute {
    let peer = InfoData::Veth(InfoVeth::Peer(message(0, peer)));
    kind(InfoKind::Veth, Some(peer))
}

/// The data of a stacked link: its options as attributes.
fn data_of(stacked: &Stacked) -> Vec<u8> {
    let option = |(option, value): (&LinkOption, u32)| {
        let bytes = match option.width {
            // The table of the kind has no wider numbers than its attributes.
            Width::U16 => (value as u16).to_ne_bytes().to_vec(),
            Width::U32 => value.to_ne_bytes().to_vec(),
        };
        DefaultNla::new(option.attribute, bytes)
    };
    let attributes: Vec<DefaultNla> = stacked.options().map(option).collect();
    let attributes = attributes.as_slice();
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}
