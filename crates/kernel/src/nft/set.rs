//! Sets and maps of `inet plexus`, and their elements: how one is made, listed and changed. Each part of a key has a
//! multiple of four bytes.

use super::chain::TABLE;
use super::encode::{Attributes, address_length, request};
use crate::netlink::{Raw, Request, attributes};
use crate::observe::attribute;
use crate::{NetlinkError, Socket};
use netlink_packet_core::NLM_F_CREATE;
use plexus_types::Family;

/// What a part of a key, or of a map's data, is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Address(Family),
    Protocol,
    Port,
}

impl Part {
    /// Its number in nft, which shows elements by it.
    fn number(self) -> u32 {
        match self {
            Part::Address(Family::V4) => 7,
            Part::Address(Family::V6) => 8,
            Part::Protocol => 12,
            Part::Port => 13,
        }
    }

    fn length(self) -> u32 {
        match self {
            Part::Address(family) => address_length(family),
            Part::Protocol | Part::Port => 4,
        }
    }
}

/// Makes a set, or a map if there is data, if it is not there. The number tells it from others of the same transaction.
pub(super) fn create(
    name: &str,
    key: &[Part],
    data: &[Part],
    id: u32,
    what: String,
) -> Request<Raw> {
    const NEWSET: u16 = 9;
    const MAP: u32 = 8;
    // Six bits each.
    let kind = |parts: &[Part]| parts.iter().fold(0, |all, part| all << 6 | part.number());
    let length = |parts: &[Part]| parts.iter().map(|part| part.length()).sum();
    let mut set = Attributes::default()
        .text(1, TABLE)
        .text(2, name)
        .number(3, if data.is_empty() { 0 } else { MAP })
        .number(4, kind(key))
        .number(5, length(key));
    if !data.is_empty() {
        set = set.number(6, kind(data)).number(7, length(data));
    }
    request(NEWSET, set.number(10, id), NLM_F_CREATE, what)
}

/// What `read` makes of each element's key and data.
///
/// The kernel moves the elements of a set that grew to a larger table a moment later. A list that comes in several
/// messages misses some of them meanwhile, and the kernel does not say so: such a list counts once two in a row agree.
pub(super) fn list<T: PartialEq>(
    socket: &mut Socket,
    name: &str,
    read: impl Fn(&[u8], &[u8]) -> Option<T>,
) -> Result<Vec<T>, NetlinkError> {
    let mut last = None;
    for _ in 0..MAX_LISTS {
        let (messages, elements) = list_once(socket, name, &read)?;
        if messages <= 1 || last.as_ref() == Some(&elements) {
            return Ok(elements);
        }
        last = Some(elements);
    }
    Err(NetlinkError::Garbled {
        what: listing(name),
        why: "it was another one in every attempt",
    })
}

/// How often a long list is read, at most.
const MAX_LISTS: usize = 16;

/// The elements as the kernel lists them now, and in how many messages it did.
fn list_once<T>(
    socket: &mut Socket,
    name: &str,
    read: impl Fn(&[u8], &[u8]) -> Option<T>,
) -> Result<(usize, Vec<T>), NetlinkError> {
    const GETSETELEM: u16 = 13;
    let which = Attributes::default().text(1, TABLE).text(2, name);
    socket.dump(
        request(GETSETELEM, which, 0, listing(name)),
        || (0, Vec::new()),
        |(messages, found), payload| {
            *messages += 1;
            found.extend(elements(payload, &read));
        },
    )
}

/// What `read` makes of each element in an answer, of its key and data.
pub(super) fn elements<T>(
    payload: &[u8],
    read: impl Fn(&[u8], &[u8]) -> Option<T>,
) -> impl Iterator<Item = T> {
    let elements = payload.get(4..).and_then(|p| attribute(p, ELEMENTS));
    attributes(elements.unwrap_or_default()).filter_map(move |(_, element)| {
        let data = value(element, DATA).unwrap_or_default();
        value(element, KEY).and_then(|key| read(key, data))
    })
}

fn listing(name: &str) -> String {
    format!("list the elements of {name}")
}

/// Adds elements to a set or map, or deletes them: keys, each with its data.
pub(super) fn change<'e>(
    name: &str,
    elements: impl IntoIterator<Item = (&'e [u8], &'e [u8])>,
    add: bool,
    what: String,
) -> Request<Raw> {
    const NEWSETELEM: u16 = 12;
    const DELSETELEM: u16 = 14;
    let mut list = Attributes::default();
    for (key, data) in elements {
        let mut element = Attributes::default().nested(KEY, Attributes::value(key));
        if !data.is_empty() {
            element = element.nested(DATA, Attributes::value(data));
        }
        list = list.element(element);
    }
    let elements = Attributes::default()
        .text(1, TABLE)
        .text(2, name)
        .nested(ELEMENTS, list);
    match add {
        true => request(NEWSETELEM, elements, NLM_F_CREATE, what),
        false => request(DELSETELEM, elements, 0, what),
    }
}

/// The bytes of a part of an element.
fn value(element: &[u8], part: u16) -> Option<&[u8]> {
    const VALUE: u16 = 1;
    attribute(attribute(element, part)?, VALUE)
}

const ELEMENTS: u16 = 3;
const KEY: u16 = 1;
const DATA: u16 = 2;
