//! The maps and sets, and their elements as bytes: each part of a key padded to four bytes.

use crate::netlink::{Raw, Request, ip};
use crate::nft::encode::octets;
use crate::nft::set::{self, Part};
use crate::{NetlinkError, Socket};
use plexus_core::plan::{HostPort, Protocol};
use plexus_types::Family;
use std::net::{IpAddr, SocketAddr};

/// A map or a set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map(pub(super) Family, pub(super) Kind);

/// What it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ports of one address of the node.
    Exact,
    /// Ports of every address.
    Any,
    /// Pods that have ports, each as a pair with itself: a set.
    Itself,
}

pub(super) const MAPS: [Map; 6] = [
    Map(Family::V4, Kind::Exact),
    Map(Family::V4, Kind::Any),
    Map(Family::V4, Kind::Itself),
    Map(Family::V6, Kind::Exact),
    Map(Family::V6, Kind::Any),
    Map(Family::V6, Kind::Itself),
];

impl Map {
    pub(super) fn is_map(self) -> bool {
        self.1 != Kind::Itself
    }

    pub(super) fn name(self) -> String {
        let digit = match self.0 {
            Family::V4 => '4',
            Family::V6 => '6',
        };
        let of = match self.1 {
            Kind::Exact => "-on",
            Kind::Any => "",
            Kind::Itself => "-self",
        };
        format!("ports{digit}{of}")
    }

    /// Makes it if it is not there. The number tells it from others of the same transaction.
    pub(super) fn create(self, id: u32) -> Request<Raw> {
        let address = Part::Address(self.0);
        let (key, data): (&[Part], &[Part]) = match self.1 {
            Kind::Exact => (
                &[address, Part::Protocol, Part::Port],
                &[address, Part::Port],
            ),
            Kind::Any => (&[Part::Protocol, Part::Port], &[address, Part::Port]),
            Kind::Itself => (&[address, address], &[]),
        };
        let what = format!("add map {}", self.name());
        set::create(&self.name(), key, data, id, what)
    }

    /// Its ports; none of a set.
    pub(super) fn ports(self, socket: &mut Socket) -> Result<Vec<HostPort>, NetlinkError> {
        set::list(socket, &self.name(), |key, data| self.port(key, data))
    }

    /// Its pods; none of a map.
    pub(super) fn pods(self, socket: &mut Socket) -> Result<Vec<IpAddr>, NetlinkError> {
        set::list(socket, &self.name(), |key, _| self.pod(key))
    }

    pub(super) fn pod(self, key: &[u8]) -> Option<IpAddr> {
        let (pod, itself) = key.split_at_checked(self.address_length())?;
        let is_pair = itself.len() == pod.len() && !self.is_map();
        ip(pod).filter(|_| is_pair)
    }

    fn address_length(self) -> usize {
        usize::from(self.0.bits()) / 8
    }

    pub(super) fn port(self, key: &[u8], data: &[u8]) -> Option<HostPort> {
        let length = self.address_length();
        let (host_ip, key) = match self.1 {
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
        let kind = port.host_ip.map_or(Kind::Any, |_| Kind::Exact);
        let mut key = port.host_ip.map(octets).unwrap_or_default();
        key.extend([number as u8, 0, 0, 0]);
        key.extend(padded(port.port));
        let mut data = octets(port.to.ip());
        data.extend(padded(port.to.port()));
        Self {
            set: Map(Family::of(port.to.ip()), kind).name(),
            key,
            data,
            what: format!("host port {} to {}", port.port, port.to),
        }
    }

    pub(super) fn of_self(address: IpAddr) -> Self {
        Self {
            set: Map(Family::of(address), Kind::Itself).name(),
            key: [octets(address), octets(address)].concat(),
            data: Vec::new(),
            what: format!("way back of {address}"),
        }
    }

    pub(super) fn add(&self) -> Request<Raw> {
        self.change(true, format!("add the {}", self.what))
    }

    pub(super) fn delete(&self) -> Request<Raw> {
        self.change(false, format!("delete the {}", self.what))
    }

    fn change(&self, add: bool, what: String) -> Request<Raw> {
        set::change(&self.set, [(&*self.key, &*self.data)], add, what)
    }
}

fn padded(port: u16) -> [u8; 4] {
    let [high, low] = port.to_be_bytes();
    [high, low, 0, 0]
}
