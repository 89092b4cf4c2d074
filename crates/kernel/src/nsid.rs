//! The numbers by which a network namespace knows others. A namespace keeps its number as long as it lives, whether or not
//! a process or a mount shows it: links inside can be listed by it from outside.

use crate::netlink::{Request, u32_of};
use crate::observe::{self, attribute};
use crate::{NetlinkError, Netns, Socket, link};
use netlink_packet_route::RouteNetlinkMessage as Message;
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};
use plexus_core::plan::ObservedLink;
use std::os::fd::{AsFd, AsRawFd};

/// Gives `other` a number in the socket's namespace, unless it has one.
pub(crate) fn add(other: &Netns) -> Request {
    const ANY: i32 = -1;
    let message = message(vec![NsidAttribute::Id(ANY), of(other)]);
    let what = format!("number namespace {}", other.path().display());
    Request::new(Message::NewNsId(message), 0, what).unless_there()
}

/// The links of every namespace that the socket's namespace has a number for.
pub(crate) fn links(socket: &mut Socket) -> Result<Vec<ObservedLink>, NetlinkError> {
    let request: Request = Request::new(Message::GetNsId(message(vec![])), 0, "list namespaces");
    let numbers = observe::list(socket, request, read)?;
    let mut all = Vec::new();
    for number in numbers {
        match observe::list(socket, link::list_in(number), link::read) {
            Ok(links) => all.extend(links),
            // So does the kernel call a number whose namespace died meanwhile.
            Err(error) if error.errno() == Some(libc::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// The number that the socket's namespace has for `other`; none if it has none.
pub(crate) fn number_of(socket: &mut Socket, other: &Netns) -> Result<Option<i32>, NetlinkError> {
    let what = format!("find the number of namespace {}", other.path().display());
    let request: Request = Request::new(Message::GetNsId(message(vec![of(other)])), 0, what);
    socket.get(&request, read)
}

fn of(netns: &Netns) -> NsidAttribute {
    // A descriptor is never negative.
    NsidAttribute::Fd(netns.as_fd().as_raw_fd() as u32)
}

fn message(attributes: Vec<NsidAttribute>) -> NsidMessage {
    let mut message = NsidMessage::default();
    message.attributes = attributes;
    message
}

/// None if there is no number.
pub(crate) fn read(payload: &[u8]) -> Option<i32> {
    const HEADER: usize = 4;
    const NSID: u16 = 1;
    let number = u32_of(attribute(payload.get(HEADER..)?, NSID)?) as i32;
    (number >= 0).then_some(number)
}
