//! How fast links are, as their drivers say. Owns the questions to the kernel's `ethtool` family; a kernel without it
//! says nothing.

use crate::netlink::{Raw, Request, u16_of, u32_of};
use crate::nexthop::push;
use crate::observe::attribute;
use crate::{NetlinkError, Socket};
use std::collections::BTreeMap;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const ETHTOOL_MSG_LINKMODES_GET: u8 = 4;
const ETHTOOL_A_LINKMODES_HEADER: u16 = 1;
const ETHTOOL_A_LINKMODES_SPEED: u16 = 5;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
/// Attributes are in it, if only none.
const NLA_F_NESTED: u16 = 0x8000;
/// Command, version, nothing.
const HEADER: usize = 4;
const UNKNOWN: u32 = u32::MAX;

/// The speed of each link of the calling thread's namespace that says it, in Mbit/s, by index.
pub(crate) fn speeds() -> Result<BTreeMap<u32, u32>, NetlinkError> {
    let mut socket = Socket::generic()?;
    let family = socket.get(&family(), |payload| {
        let attributes = payload.get(HEADER..).unwrap_or_default();
        attribute(attributes, CTRL_ATTR_FAMILY_ID).map(u16_of)
    });
    let family = match family {
        Ok(family) => family,
        Err(error) if error.is_missing() => None,
        Err(error) => return Err(error),
    };
    let Some(kind) = family else {
        return Ok(BTreeMap::new());
    };
    let mut body = vec![ETHTOOL_MSG_LINKMODES_GET, 1, 0, 0];
    push(&mut body, ETHTOOL_A_LINKMODES_HEADER | NLA_F_NESTED, &[]);
    let request = Raw { kind, body };
    let request: Request<Raw> = Request::new(request, 0, "list the speeds of links");
    socket.dump(request, BTreeMap::new, |found, payload| {
        found.extend(read(payload));
    })
}

fn family() -> Request<Raw> {
    let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
    push(&mut body, CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
    let kind = GENL_ID_CTRL;
    Request::new(Raw { kind, body }, 0, "find the netlink family ethtool")
}

pub(crate) fn read(payload: &[u8]) -> Option<(u32, u32)> {
    let attributes = payload.get(HEADER..)?;
    let header = attribute(attributes, ETHTOOL_A_LINKMODES_HEADER)?;
    let index = attribute(header, ETHTOOL_A_HEADER_DEV_INDEX).map(u32_of)?;
    let speed = attribute(attributes, ETHTOOL_A_LINKMODES_SPEED).map(u32_of)?;
    (speed != 0 && speed != UNKNOWN).then_some((index, speed))
}
