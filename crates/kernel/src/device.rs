//! Devices that are moved between namespaces: the messages that move, rename and restore one. Owns their order; which
//! device it is, and how it was, is in the plan.

use crate::link::{self, address, message, name, set, set_flags};
use crate::netlink::Request;
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage, Prop};
use plexus_core::plan::{Device, Link, ObservedLink};
use plexus_types::Mac;
use std::os::fd::RawFd;

/// The kernel finds a free number for it.
pub(crate) const ANY_NAME: &str = "dev%d";

/// Marks a device of the socket's namespace and moves it into the pod's under its final name. Moving brings it down.
pub(crate) fn give(link: &Link, device: &Device, pod: RawFd) -> Vec<Request> {
    let (from, to) = (device.name.as_str(), link.name.as_str());
    let mut requests = vec![link::set_alias(from, device.index, &link.alias)];
    if device.altnames.iter().any(|name| name == to) {
        // A link cannot have the same name twice; it has it again when it goes back.
        requests.push(delete_altname(from, device.index, to));
    }
    let mut attributes = vec![LinkAttribute::NetNsFd(pod), name(to)];
    attributes.extend(link.mac.map(address));
    attributes.extend(link.mtu.map(LinkAttribute::Mtu));
    let what = format!("move {from} into the pod as {to}");
    requests.push(set(device.index, attributes, what));
    requests
}

/// Moves a link of the socket's namespace into another one, where it has that name: under its present one for a moment,
/// if that is free there.
pub(crate) fn send(link: &ObservedLink, netns: RawFd, to: &str) -> Request {
    let what = format!("move {} to the node as {to}", link.name);
    set(
        link.index,
        vec![LinkAttribute::NetNsFd(netns), name(to)],
        what,
    )
}

/// Renames a link, which must be down.
pub(crate) fn rename(link: &ObservedLink, to: &str) -> Request {
    let what = format!("rename {} to {to}", link.name);
    set(link.index, vec![name(to)], what)
}

pub(crate) fn set_mac(link: &ObservedLink, mac: Mac) -> Request {
    let what = format!("set the MAC of {} to {mac}", link.name);
    set(link.index, vec![address(mac)], what)
}

pub(crate) fn set_down(link: &ObservedLink) -> Request {
    let what = format!("bring down {}", link.name);
    set_flags(link.index, LinkFlags::empty(), LinkFlags::Up, what)
}

/// Makes a link as promiscuous, and as up, as the device was.
pub(crate) fn set_state(link: &ObservedLink, device: &Device) -> Request {
    let mut wanted = LinkFlags::empty();
    wanted.set(LinkFlags::Up, device.up);
    wanted.set(LinkFlags::Promisc, device.promisc);
    let what = format!("restore the state of {}", link.name);
    set_flags(link.index, wanted, LinkFlags::Up | LinkFlags::Promisc, what)
}

/// Gives a link one more name.
pub(crate) fn add_altname(name: &str, index: u32, altname: &str) -> Request {
    let what = format!("give {name} the further name {altname}");
    Request::new(Message::NewLinkProp(altnames(index, altname)), 0, what)
}

/// Takes one of its further names from a link.
pub(crate) fn delete_altname(name: &str, index: u32, altname: &str) -> Request {
    let what = format!("take the further name {altname} from {name}");
    Request::new(Message::DelLinkProp(altnames(index, altname)), 0, what)
}

fn altnames(index: u32, altname: &str) -> LinkMessage {
    let name = vec![Prop::AltIfName(altname.to_owned())];
    message(index, vec![LinkAttribute::PropList(name)])
}
