//! The VXLAN device of a router: it is inside, its socket is in the node's namespace.

use super::{RouterError, VXLAN, Work};
use crate::effect::effect;
use crate::netlink::{Request, ip, u32_of};
use crate::observe::{attribute, optional};
use crate::{NetlinkError, Netns, Socket, link};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{InfoData, InfoKind, InfoVxlan, LinkAttribute};
use plexus_core::fabric::VXLAN_PORT;
use plexus_core::plan::{ObservedLink, Router};
use plexus_types::Family;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// A VXLAN device, as the kernel has it.
pub(crate) struct VxlanLink {
    pub(super) link: ObservedLink,
    pub(crate) vni: Option<u32>,
    pub(crate) local: Option<IpAddr>,
}

/// The device, if there is one.
pub(super) fn find(socket: &mut Socket) -> Result<Option<VxlanLink>, NetlinkError> {
    optional(socket.get(&link::get_by_name(VXLAN), read))
}

/// Makes the device what the router says.
pub(super) fn ensure(work: &mut Work<'_>, inside: &mut Socket) -> Result<(), RouterError> {
    let router = work.router;
    let failed = RouterError::netlink(&router.name);
    let mut seen = find(inside).map_err(failed)?;
    if let Some(other) = seen.take_if(|seen| !can_become(seen, router)) {
        let request = link::delete(VXLAN, other.link.index);
        work.send(inside, effect!("router.vxlan-delete"), &[request])?;
    }
    if seen.is_none() {
        create(work)?;
        seen = find(inside).map_err(failed)?;
    }
    let seen = seen.ok_or_else(|| work.vanished(VXLAN))?;
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
    work.send(inside, effect!("router.vxlan"), &requests)
}

/// What can be changed without making it anew, which would lose all that it leads to.
fn can_become(seen: &VxlanLink, router: &Router) -> bool {
    seen.link.kind == "vxlan"
        && seen.vni == Some(router.vni)
        && seen.link.mac == Some(router.mac)
        && seen.local.map(Family::of) == Some(Family::of(router.local))
}

fn create(work: &mut Work<'_>) -> Result<(), RouterError> {
    // A router that was just removed takes the kernel a moment.
    const ATTEMPTS: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(50);
    let (node, router) = (work.node, work.router);
    let request = creation(work.netns, router);
    for attempt in 1..=ATTEMPTS {
        let effect = effect!("router.vxlan-create");
        let made = node.with_socket(|socket| socket.batch(effect, std::slice::from_ref(&request)));
        match made {
            Ok(()) => break,
            Err(source) if source.errno() == Some(libc::EEXIST) => {
                if attempt == ATTEMPTS {
                    let (router, vni) = (router.name.clone(), router.vni);
                    return Err(RouterError::VniTaken {
                        router,
                        vni,
                        source,
                    });
                }
                std::thread::sleep(PAUSE);
            }
            Err(source) => return Err(RouterError::netlink(&router.name)(source)),
        }
    }
    work.changes.push(request.what);
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
    let message = link::message_up(vec![
        link::name(VXLAN),
        LinkAttribute::NetNsFd(netns.as_fd().as_raw_fd()),
        link::address(router.mac),
        LinkAttribute::Mtu(router.mtu),
        info(data),
    ]);
    let what = format!("create vxlan {} of router {}", router.vni, router.name);
    link::make(message, what)
}

fn set_local(index: u32, router: &Router) -> Request {
    let data = vec![InfoVxlan::Id(router.vni), local(router.local)];
    let message = link::message(index, vec![info(data)]);
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
    link::kind(InfoKind::Vxlan, Some(InfoData::Vxlan(data)))
}

pub(crate) fn read(payload: &[u8]) -> Option<VxlanLink> {
    const IFLA_VXLAN_ID: u16 = 1;
    const IFLA_VXLAN_LOCAL: u16 = 4;
    const IFLA_VXLAN_LOCAL6: u16 = 17;
    let link = link::read(payload)?;
    let data = attribute(payload.get(16..)?, libc::IFLA_LINKINFO)
        .and_then(|info| attribute(info, link::IFLA_INFO_DATA))
        .unwrap_or_default();
    let local = [IFLA_VXLAN_LOCAL, IFLA_VXLAN_LOCAL6].map(|kind| attribute(data, kind));
    Some(VxlanLink {
        link,
        vni: attribute(data, IFLA_VXLAN_ID).map(u32_of),
        local: local.into_iter().flatten().find_map(ip),
    })
}
