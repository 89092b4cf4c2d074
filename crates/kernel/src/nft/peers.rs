//! The sets `peers4` and `peers6` of `inet plexus`: the nodes of the cluster, between which alone our
//! tunnels lead. Owns the sets and their elements; what looks into them is in [`guard`](super::guard).

use super::chain::{INET, TABLE, commit};
use super::encode::{Attributes, message};
use crate::netlink::{Raw, Request, attributes, ip};
use crate::{NetlinkError, Socket};
use netlink_packet_core::NLM_F_CREATE;
use plexus_types::Family;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The set of a family.
pub(super) fn set(family: Family) -> &'static str {
    match family {
        Family::V4 => "peers4",
        Family::V6 => "peers6",
    }
}

/// Makes the sets if they are not there. The numbers tell them from others of the same transaction.
pub(super) fn create() -> impl Iterator<Item = Request<Raw>> {
    const NEWSET: u16 = 9;
    const IPV4: u32 = 7;
    const IPV6: u32 = 8;
    Family::ALL.into_iter().map(|family| {
        let (id, kind, length) = match family {
            Family::V4 => (1, IPV4, 4),
            Family::V6 => (2, IPV6, 16),
        };
        let attributes = Attributes::default()
            .text(1, TABLE)
            .text(2, set(family))
            .number(3, 0)
            .number(4, kind)
            .number(5, length)
            .number(10, id);
        let what = format!("add set {}", set(family));
        Request::new(message(NEWSET, INET, attributes), NLM_F_CREATE, what)
    })
}

/// What is in the sets; none if there is no set.
pub(super) fn list(socket: &mut Socket) -> Result<Option<BTreeSet<IpAddr>>, NetlinkError> {
    const GETSETELEM: u16 = 13;
    let mut all = BTreeSet::new();
    for family in Family::ALL {
        let which = Attributes::default().text(1, TABLE).text(2, set(family));
        let what = format!("list the elements of {}", set(family));
        let request: Request<Raw> = Request::new(message(GETSETELEM, INET, which), 0, what);
        let found = socket.dump(request, Vec::new, |found, payload| {
            let elements = payload.get(4..).and_then(|p| nested(p, ELEMENTS));
            for (_, element) in attributes(elements.unwrap_or_default()) {
                let key = nested(element, KEY).and_then(|key| nested(key, VALUE));
                found.extend(key.and_then(ip));
            }
        });
        match found {
            Ok(found) => all.extend(found),
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(all))
}

/// Makes the sets exactly this; gives the number of addresses that were changed.
pub(super) fn write(socket: &mut Socket, wanted: &BTreeSet<IpAddr>) -> Result<usize, NetlinkError> {
    let have = list(socket)?;
    if have.is_none() {
        commit(socket, create())?;
    }
    let have = have.unwrap_or_default();
    let (gone, new): (Vec<_>, Vec<_>) = (
        have.difference(wanted).copied().collect(),
        wanted.difference(&have).copied().collect(),
    );
    for (addresses, add) in [(&new, true), (&gone, false)] {
        for family in Family::ALL {
            let of_family: Vec<_> = addresses
                .iter()
                .filter(|address| Family::of(**address) == family)
                .collect();
            for some in of_family.chunks(AT_A_TIME) {
                commit(socket, [elements(family, some, add)])?;
            }
        }
    }
    Ok(gone.len() + new.len())
}

/// As many elements as fit into one message without doubt.
const AT_A_TIME: usize = 512;
const ELEMENTS: u16 = 3;
const KEY: u16 = 1;
const VALUE: u16 = 1;

fn elements(family: Family, addresses: &[&IpAddr], add: bool) -> Request<Raw> {
    const NEWSETELEM: u16 = 12;
    const DELSETELEM: u16 = 14;
    let list = addresses
        .iter()
        .fold(Attributes::default(), |all, address| {
            let key = match address {
                IpAddr::V4(v4) => Attributes::value(&v4.octets()),
                IpAddr::V6(v6) => Attributes::value(&v6.octets()),
            };
            all.element(Attributes::default().nested(KEY, key))
        });
    let list = Attributes::default()
        .text(1, TABLE)
        .text(2, set(family))
        .nested(ELEMENTS, list);
    let (kind, flags, verb) = match add {
        true => (NEWSETELEM, NLM_F_CREATE, "add to"),
        false => (DELSETELEM, 0, "delete from"),
    };
    let what = format!("{verb} {} {} addresses", set(family), addresses.len());
    Request::new(message(kind, INET, list), flags, what)
}

fn nested(payload: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(payload)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
}
