//! Links: how one is made, changed, removed and read.

use crate::device;
use crate::netlink::{Request, attributes, text, u32_of};
use netlink_packet_core::{DefaultNla, Emitable, NLM_F_CREATE, NLM_F_EXCL};
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
        LinkAttribute::IfName(link.name.to_string()),
        LinkAttribute::NetNsFd(pod),
        LinkAttribute::Group(group),
    ];
    inside.extend(
        link.mac
            .map(|mac| LinkAttribute::Address(mac.bytes().to_vec())),
    );
    inside.extend(link.mtu.map(LinkAttribute::Mtu));
    let (message, what) = match &link.kind {
        LinkKind::Stacked(stacked) => {
            let Stacked { parent, kind, .. } = stacked;
            inside.push(LinkAttribute::Link(parent.index));
            inside.push(self::kind(
                InfoKind::Other(kind.clone()),
                Some(InfoData::Other(data_of(stacked))),
            ));
            (
                message(inside),
                format!("create {kind} {} on {}", link.name, parent.name),
            )
        }
        LinkKind::Veth(end) => (
            host_end(end, bridge, message(inside)),
            format!("create veth {} with node end {}", link.name, end.name),
        ),
        LinkKind::Moved(device) => return device::give(link, device, pod),
    };
    let create = Request::new(Message::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, what);
    vec![create]
}

/// Marks a link of the socket's namespace. In a message of its own: the kernel ignores an alias in
/// the message that creates the link.
pub(crate) fn set_alias(name: &str, index: u32, alias: &str) -> Request {
    let mut attributes = vec![LinkAttribute::IfAlias(alias.to_owned())];
    if index == 0 {
        attributes.push(LinkAttribute::IfName(name.to_owned()));
    }
    let mut message = message(attributes);
    message.header.index = index;
    Request::new(
        Message::SetLink(message),
        0,
        format!("set the alias of {name}"),
    )
}

/// The same, with more to set: see [`devconf`](crate::devconf).
pub(crate) fn set_alias_and(
    name: &str,
    index: u32,
    alias: &str,
    more: Option<LinkAttribute>,
) -> Request {
    let mut request = set_alias(name, index, alias);
    if let Message::SetLink(message) = &mut request.message {
        message.attributes.extend(more);
    }
    request
}

/// Lets the bridge send frames back out of the port that they came in by.
pub(crate) fn set_hairpin(name: &str) -> Request {
    let port = vec![
        LinkInfo::PortKind(InfoPortKind::Bridge),
        LinkInfo::PortData(InfoPortData::BridgePort(vec![InfoBridgePort::HairpinMode(
            true,
        )])),
    ];
    let message = message(vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::LinkInfo(port),
    ]);
    Request::new(
        Message::NewLink(message),
        0,
        format!("switch hairpin mode on for {name}"),
    )
}

/// Brings a link up.
pub(crate) fn set_up(name: &str, index: u32) -> Request {
    set_flags(name, index, LinkFlags::Up, "bring up")
}

/// Sets the MTU of a link.
pub(crate) fn set_mtu(name: &str, index: u32, mtu: u32) -> Request {
    let mut message = message(vec![LinkAttribute::Mtu(mtu)]);
    message.header.index = index;
    let what = format!("set the MTU of {name} to {mtu}");
    Request::new(Message::SetLink(message), 0, what)
}

/// Puts a link into a group.
pub(crate) fn set_group(name: &str, index: u32, group: u32) -> Request {
    let mut message = message(vec![LinkAttribute::Group(group)]);
    message.header.index = index;
    let what = format!("put {name} into group {group:#x}");
    Request::new(Message::SetLink(message), 0, what)
}

/// Makes the link between the node and a router: the node's end in a group, up; the other end in
/// the router's namespace.
pub(crate) fn create_uplink(
    (outer, inner): (&str, &str),
    mtu: u32,
    group: u32,
    router: RawFd,
) -> Request {
    let peer = message(vec![
        LinkAttribute::IfName(inner.to_owned()),
        LinkAttribute::NetNsFd(router),
        LinkAttribute::Mtu(mtu),
    ]);
    let mut message = message(vec![
        LinkAttribute::IfName(outer.to_owned()),
        LinkAttribute::Mtu(mtu),
        LinkAttribute::Group(group),
        kind(InfoKind::Veth, Some(InfoData::Veth(InfoVeth::Peer(peer)))),
    ]);
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    let what = format!("create uplink {outer}");
    Request::new(Message::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, what)
}

/// Makes a link a port of a bridge.
pub(crate) fn set_master(name: &str, index: u32, master: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes.push(LinkAttribute::Controller(master));
    Request::new(Message::SetLink(message), 0, format!("make {name} a port"))
}

/// Switches promiscuous mode on.
pub(crate) fn set_promisc(name: &str, index: u32) -> Request {
    set_flags(
        name,
        index,
        LinkFlags::Promisc,
        "switch promiscuous mode on for",
    )
}

/// Makes a bridge, up.
pub(crate) fn create_bridge(name: &str, mtu: Option<u32>, mac: Mac) -> Request {
    let mut attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::Address(mac.bytes().to_vec()),
        kind(InfoKind::Bridge, None),
    ];
    attributes.extend(mtu.map(LinkAttribute::Mtu));
    let mut message = message(attributes);
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    let what = format!("create bridge {name}");
    Request::new(Message::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, what)
}

/// Makes a link of any kind, down.
pub(crate) fn create_plain(
    name: &str,
    info: InfoKind,
    data: Option<InfoData>,
    parent: Option<u32>,
) -> Request {
    let mut attributes = vec![LinkAttribute::IfName(name.to_owned()), kind(info, data)];
    attributes.extend(parent.map(LinkAttribute::Link));
    let what = format!("create link {name}");
    Request::new(
        Message::NewLink(message(attributes)),
        NLM_F_CREATE | NLM_F_EXCL,
        what,
    )
}

/// Removes one link.
pub(crate) fn delete(name: &str, index: u32) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    Request::new(Message::DelLink(message), 0, format!("delete link {name}"))
}

/// Removes every link of a group in one go: as slow as removing one.
pub(crate) fn delete_group(group: u32) -> Request {
    let message = message(vec![LinkAttribute::Group(group)]);
    Request::new(
        Message::DelLink(message),
        0,
        format!("delete the links of group {group}"),
    )
}

/// Asks for the link of that name.
pub(crate) fn get_by_name(name: &str) -> Request {
    let message = message(vec![
        LinkAttribute::IfName(name.to_owned()),
        without_statistics(),
    ]);
    Request::new(Message::GetLink(message), 0, format!("find link {name}"))
}

/// Asks for the link of that index.
pub(crate) fn get_by_index(index: u32) -> Request {
    let mut message = message(vec![without_statistics()]);
    message.header.index = index;
    Request::new(Message::GetLink(message), 0, format!("find link {index}"))
}

/// Asks for all links.
pub(crate) fn list() -> Request {
    let message = message(vec![without_statistics()]);
    Request::new(Message::GetLink(message), 0, "list links")
}

/// Asks for all links of the namespace that has this number in the socket's.
pub(crate) fn list_in(nsid: i32) -> Request {
    let message = message(vec![LinkAttribute::IfNetnsId(nsid), without_statistics()]);
    let what = format!("list links of namespace {nsid}");
    Request::new(Message::GetLink(message), 0, what)
}

/// Reads one link from an answer.
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
        parent_elsewhere: false,
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
            libc::IFLA_LINK_NETNSID => link.parent_elsewhere = true,
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

fn mac(value: &[u8]) -> Option<Mac> {
    Mac::new(<[u8; 6]>::try_from(value).ok()?).ok()
}

const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;

fn read_info(link: &mut ObservedLink, info: &[u8]) {
    let mut data = &[][..];
    for (kind, value) in attributes(info) {
        match kind {
            IFLA_INFO_KIND => link.kind = text(value),
            IFLA_INFO_DATA => data = value,
            _ => {}
        }
    }
    // Of bridges, which have many, nobody asks for numbers.
    if link.parent.is_some() {
        let numbers =
            attributes(data).filter_map(|(attribute, value)| Some((attribute, number(value)?)));
        link.options.extend(numbers);
    }
}

fn number(value: &[u8]) -> Option<u32> {
    match value {
        [a] => Some(u32::from(*a)),
        [a, b] => Some(u32::from(u16::from_ne_bytes([*a, *b]))),
        [_, _, _, _] => Some(u32_of(value)),
        _ => None,
    }
}

fn host_end(end: &HostEnd, bridge: Option<u32>, peer: LinkMessage) -> LinkMessage {
    let mut attributes = vec![
        LinkAttribute::IfName(end.name.to_string()),
        LinkAttribute::Address(end.mac.bytes().to_vec()),
        // No queue on the way into the pod, as the reference plugin has it.
        LinkAttribute::TxQueueLen(0),
        kind(InfoKind::Veth, Some(InfoData::Veth(InfoVeth::Peer(peer)))),
    ];
    attributes.extend(end.mtu.map(LinkAttribute::Mtu));
    attributes.extend(bridge.map(LinkAttribute::Controller));
    if end.source_check {
        attributes.push(LinkAttribute::Group(crate::nft::guard::CHECKED));
    }
    let mut message = message(attributes);
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    message
}

fn set_flags(name: &str, index: u32, flags: LinkFlags, verb: &str) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = flags;
    message.header.change_mask = flags;
    Request::new(Message::SetLink(message), 0, format!("{verb} {name}"))
}

fn message(attributes: Vec<LinkAttribute>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = attributes;
    message
}

fn kind(kind: InfoKind, data: Option<InfoData>) -> LinkAttribute {
    LinkAttribute::LinkInfo(
        [LinkInfo::Kind(kind)]
            .into_iter()
            .chain(data.map(LinkInfo::Data))
            .collect(),
    )
}

fn without_statistics() -> LinkAttribute {
    LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats])
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
