//! The maps and sets, and their elements as bytes: each part of a key padded to four bytes.

use crate::netlink::{Raw, Request, attributes, ip};
use crate::nft::chain::{INET, TABLE};
use crate::nft::encode::{Attributes, message};
use crate::{NetlinkError, Socket};
use netlink_packet_core::NLM_F_CREATE;
use plexus_core::plan::{HostPort, Protocol};
use plexus_types::Family;
use std::net::{IpAddr, SocketAddr};

/// The map of a family: for one address of the node, or for every one.
pub(super) fn map_name(family: Family, exact: bool) -> String {
    format!("ports{}{}", digit(family), if exact { "-on" } else { "" })
}

/// The set of pods of a family that have ports, each as a pair with itself.
pub(super) fn self_name(family: Family) -> String {
    format!("ports{}-self", digit(family))
}

/// A map or a set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map {
    family: Family,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exact,
    Any,
    Itself,
}

/// All of them.
pub(super) const MAPS: [Map; 6] = {
    const fn map(family: Family, kind: Kind) -> Map {
        Map { family, kind }
    }
    [
        map(Family::V4, Kind::Exact),
        map(Family::V4, Kind::Any),
        map(Family::V4, Kind::Itself),
        map(Family::V6, Kind::Exact),
        map(Family::V6, Kind::Any),
        map(Family::V6, Kind::Itself),
    ]
};

impl Map {
    pub(super) fn is_map(&self) -> bool {
        self.kind != Kind::Itself
    }

    fn name(&self) -> String {
        match self.kind {
            Kind::Exact => map_name(self.family, true),
            Kind::Any => map_name(self.family, false),
            Kind::Itself => self_name(self.family),
        }
    }

    /// Makes it if it is not there. The number tells it from others of the same transaction.
    pub(super) fn create(&self, id: u32) -> Request<Raw> {
        const NEWSET: u16 = 9;
        const MAP: u32 = 8;
        let (address, length) = match self.family {
            Family::V4 => (IPV4, 4),
            Family::V6 => (IPV6, 16),
        };
        let (key, key_length) = match self.kind {
            Kind::Exact => (types(&[address, PROTOCOL, SERVICE]), length + 8),
            Kind::Any => (types(&[PROTOCOL, SERVICE]), 8),
            Kind::Itself => (types(&[address, address]), 2 * length),
        };
        let set = Attributes::default()
            .text(1, TABLE)
            .text(2, &self.name())
            .number(3, if self.is_map() { MAP } else { 0 })
            .number(4, key)
            .number(5, key_length);
        let set = if self.is_map() {
            set.number(6, types(&[address, SERVICE]))
                .number(7, length + 4)
        } else {
            set
        };
        let what = format!("add map {}", self.name());
        Request::new(
            message(NEWSET, INET, set.number(10, id)),
            NLM_F_CREATE,
            what,
        )
    }

    /// Its ports; none of a set.
    pub(super) fn ports(&self, socket: &mut Socket) -> Result<Vec<HostPort>, NetlinkError> {
        self.list(socket, |element| self.port(element))
    }

    /// Its pods; none of a map.
    pub(super) fn pods(&self, socket: &mut Socket) -> Result<Vec<IpAddr>, NetlinkError> {
        self.list(socket, |element| self.pod(element))
    }

    fn list<T>(
        &self,
        socket: &mut Socket,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, NetlinkError> {
        const GETSETELEM: u16 = 13;
        let which = Attributes::default().text(1, TABLE).text(2, &self.name());
        let what = format!("list the elements of {}", self.name());
        let request: Request<Raw> = Request::new(message(GETSETELEM, INET, which), 0, what);
        socket.dump(request, Vec::new, |found, payload| {
            let elements = payload.get(4..).and_then(|p| nested(p, ELEMENTS));
            for (_, element) in attributes(elements.unwrap_or_default()) {
                found.extend(read(element));
            }
        })
    }

    fn pod(&self, element: &[u8]) -> Option<IpAddr> {
        let key = nested(element, KEY).and_then(|k| nested(k, VALUE))?;
        let is_pair = key.len() == 2 * self.length() && !self.is_map();
        ip(key.get(..self.length()).filter(|_| is_pair)?)
    }

    /// Of an address.
    fn length(&self) -> usize {
        match self.family {
            Family::V4 => 4,
            Family::V6 => 16,
        }
    }

    fn port(&self, element: &[u8]) -> Option<HostPort> {
        let key = nested(element, KEY).and_then(|k| nested(k, VALUE))?;
        let data = nested(element, DATA).and_then(|d| nested(d, VALUE))?;
        let length = self.length();
        let (host_ip, key) = match self.kind {
            Kind::Exact => (Some(ip(key.get(..length)?)?), key.get(length..)?),
            _ => (None, key),
        };
        let protocol = match i32::from(*key.first()?) {
            libc::IPPROTO_TCP => Protocol::Tcp,
            libc::IPPROTO_UDP => Protocol::Udp,
            libc::IPPROTO_SCTP => Protocol::Sctp,
            _ => return None,
        };
        let port = |at: usize, bytes: &[u8]| {
            let bytes = bytes.get(at..at + 2)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        Some(HostPort {
            protocol,
            host_ip,
            port: port(4, key)?,
            to: SocketAddr::new(ip(data.get(..length)?)?, port(length, data)?),
        })
    }
}

/// One element.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Element {
    set: String,
    key: Vec<u8>,
    data: Vec<u8>,
    what: String,
}

impl Element {
    pub(super) fn of_port(port: &HostPort) -> Self {
        let number = match port.protocol {
            Protocol::Tcp => libc::IPPROTO_TCP,
            Protocol::Udp => libc::IPPROTO_UDP,
            Protocol::Sctp => libc::IPPROTO_SCTP,
        };
        let mut key = port.host_ip.map(octets).unwrap_or_default();
        key.extend([number as u8, 0, 0, 0]);
        key.extend(padded(port.port));
        let mut data = octets(port.to.ip());
        data.extend(padded(port.to.port()));
        Self {
            set: map_name(Family::of(port.to.ip()), port.host_ip.is_some()),
            key,
            data,
            what: format!("host port {} to {}", port.port, port.to),
        }
    }

    pub(super) fn of_self(address: IpAddr) -> Self {
        Self {
            set: self_name(Family::of(address)),
            key: [octets(address), octets(address)].concat(),
            data: Vec::new(),
            what: format!("way back of {address}"),
        }
    }

    pub(super) fn add(&self) -> Request<Raw> {
        const NEWSETELEM: u16 = 12;
        let what = format!("add the {}", self.what);
        Request::new(message(NEWSETELEM, INET, self.list()), NLM_F_CREATE, what)
    }

    pub(super) fn delete(&self) -> Request<Raw> {
        const DELSETELEM: u16 = 14;
        let what = format!("delete the {}", self.what);
        Request::new(message(DELSETELEM, INET, self.list()), 0, what)
    }

    fn list(&self) -> Attributes {
        let element = Attributes::default().nested(KEY, Attributes::value(&self.key));
        let element = if self.data.is_empty() {
            element
        } else {
            element.nested(DATA, Attributes::value(&self.data))
        };
        Attributes::default()
            .text(1, TABLE)
            .text(2, &self.set)
            .nested(ELEMENTS, Attributes::default().element(element))
    }
}

const ELEMENTS: u16 = 3;
const KEY: u16 = 1;
const DATA: u16 = 2;
const VALUE: u16 = 1;

/// How nft calls the types of a key, six bits each, so that it can show it.
fn types(parts: &[u32]) -> u32 {
    parts.iter().fold(0, |all, part| all << 6 | part)
}

const IPV4: u32 = 7;
const IPV6: u32 = 8;
const PROTOCOL: u32 = 12;
const SERVICE: u32 = 13;

fn digit(family: Family) -> char {
    match family {
        Family::V4 => '4',
        Family::V6 => '6',
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn padded(port: u16) -> [u8; 4] {
    let [high, low] = port.to_be_bytes();
    [high, low, 0, 0]
}

fn nested(payload: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(payload)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
}
