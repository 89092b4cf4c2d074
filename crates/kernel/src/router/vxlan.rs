//! The VXLAN device of a router: it is inside, its socket is in the node's namespace.

use super::{RouterError, VXLAN};
use crate::effect::effect;
use crate::netlink::{Request, attributes, ip, u32_of};
use crate::observe::optional;
use crate::{NetlinkError, Netns, NodeSide, Socket, link};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVxlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use plexus_core::fabric::VXLAN_PORT;
use plexus_core::plan::{ObservedLink, Router};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// A VXLAN device, as the kernel has it.
pub(super) struct VxlanLink {
    pub(super) link: ObservedLink,
    vni: Option<u32>,
    local: Option<IpAddr>,
}

/// The device, if there is one.
pub(super) fn find(socket: &mut Socket) -> Result<Option<VxlanLink>, NetlinkError> {
    optional(socket.get(&link::get_by_name(VXLAN), read))
}

/// Makes the device what the router says; gives its index.
pub(super) fn ensure(
    node: &NodeSide,
    netns: &Netns,
    inside: &mut Socket,
    router: &Router,
    changes: &mut Vec<String>,
) -> Result<u32, RouterError> {
    let failed = RouterError::netlink(&router.name);
    let mut seen = find(inside).map_err(failed)?;
    if let Some(other) = seen.take_if(|seen| !can_become(seen, router)) {
        let request = link::delete(VXLAN, other.link.index);
        changes.push(request.what.clone());
        inside
            .batch(effect!("router.vxlan-delete"), &[request])
            .map_err(failed)?;
    }
    if seen.is_none() {
        create(node, netns, router, changes)?;
        seen = find(inside).map_err(failed)?;
    }
    let seen = seen.ok_or_else(|| RouterError::Vanished {
        router: router.name.clone(),
        link: VXLAN.into(),
    })?;
    let index = seen.link.index;
    let mut requests = Vec::new();
    if seen.local != Some(router.local) {
        requests.push(set_local(index, router));
    }
    if seen.link.mtu != router.mtu {
        requests.push(link::set_mtu(VXLAN, index, router.mtu));
    }
    if !seen.link.up {
        requests.push(link::set_up(VXLAN, index));
    }
    changes.extend(requests.iter().map(|r| r.what.clone()));
    inside
        .batch(effect!("router.vxlan"), &requests)
        .map_err(failed)?;
    Ok(index)
}

/// What can be changed without making it anew, which would lose all that it leads to.
fn can_become(seen: &VxlanLink, router: &Router) -> bool {
    seen.link.kind == "vxlan"
        && seen.vni == Some(router.vni)
        && seen.link.mac == Some(router.mac)
        && seen
            .local
            .is_some_and(|local| local.is_ipv4() == router.local.is_ipv4())
}

fn create(
    node: &NodeSide,
    netns: &Netns,
    router: &Router,
    changes: &mut Vec<String>,
) -> Result<(), RouterError> {
    // A router that was just removed takes the kernel a moment.
    const ATTEMPTS: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(50);
    let request = creation(netns, router);
    for attempt in 1..=ATTEMPTS {
        let effect = effect!("router.vxlan-create");
        let made = node.with_socket(|socket| socket.batch(effect, std::slice::from_ref(&request)));
        match made {
            Ok(()) => break,
            Err(source) if source.errno() == Some(libc::EEXIST) => {
                if attempt == ATTEMPTS {
                    return Err(RouterError::VniTaken {
                        router: router.name.clone(),
                        vni: router.vni,
                        port: VXLAN_PORT,
                        source,
                    });
                }
                std::thread::sleep(PAUSE);
            }
            Err(source) => return Err(RouterError::netlink(&router.name)(source)),
        }
    }
    changes.push(request.what);
    Ok(())
}

/// Sent from the node's namespace: that is where its socket stays.
fn creation(netns: &Netns, router: &Router) -> Request {
    let data = vec![
        InfoVxlan::Id(router.vni),
        local(router.local),
        InfoVxlan::Port(VXLAN_PORT),
        InfoVxlan::Learning(false),
    ];
    let mut message = LinkMessage::default();
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    message.attributes = vec![
        LinkAttribute::IfName(VXLAN.into()),
        LinkAttribute::NetNsFd(netns.as_fd().as_raw_fd()),
        LinkAttribute::Address(router.mac.bytes().to_vec()),
        LinkAttribute::Mtu(router.mtu),
        info(data),
    ];
    let what = format!("create vxlan {} of router {}", router.vni, router.name);
    Request::new(Message::NewLink(message), NLM_F_CREATE | NLM_F_EXCL, what)
}

fn set_local(index: u32, router: &Router) -> Request {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.attributes = vec![info(vec![InfoVxlan::Id(router.vni), local(router.local)])];
    let what = format!("set the local address of {VXLAN} to {}", router.local);
    Request::new(Message::NewLink(message), 0, what)
}

fn local(address: IpAddr) -> InfoVxlan {
    match address {
        IpAddr::V4(v4) => InfoVxlan::Local(v4),
        IpAddr::V6(v6) => InfoVxlan::Local6(v6),
    }
}

fn info(data: Vec<InfoVxlan>) -> LinkAttribute {
    LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Vxlan),
        LinkInfo::Data(InfoData::Vxlan(data)),
    ])
}

fn read(payload: &[u8]) -> Option<VxlanLink> {
    const IFLA_INFO_DATA: u16 = 2;
    const IFLA_VXLAN_ID: u16 = 1;
    const IFLA_VXLAN_LOCAL: u16 = 4;
    const IFLA_VXLAN_LOCAL6: u16 = 17;
    let link = link::read(payload)?;
    let (mut vni, mut local) = (None, None);
    let nested = |payload, wanted| {
        attributes(payload)
            .find(|(kind, _)| *kind == wanted)
            .map(|(_, value)| value)
    };
    let data = nested(payload.get(16..)?, libc::IFLA_LINKINFO)
        .and_then(|info| nested(info, IFLA_INFO_DATA));
    for (kind, value) in attributes(data.unwrap_or_default()) {
        match kind {
            IFLA_VXLAN_ID => vni = Some(u32_of(value)),
            IFLA_VXLAN_LOCAL | IFLA_VXLAN_LOCAL6 => local = ip(value),
            _ => {}
        }
    }
    Some(VxlanLink { link, vni, local })
}
