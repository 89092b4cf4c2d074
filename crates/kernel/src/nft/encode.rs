//! The wire form of the few nf_tables messages that are needed: attributes, and the expressions of rules in the order in
//! which `nft` writes them. Bytes only; never sends.

use crate::netlink::{Raw, Request};
use ipnet::IpNet;
use plexus_types::Family;
use std::net::IpAddr;

/// A list of attributes being written. Numbers of nf_tables are big-endian.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    pub(crate) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let length = (value.len() + 4) as u16;
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(crate) fn nested(self, kind: u16, inner: Attributes) -> Self {
        self.bytes(kind | NESTED, &inner.0)
    }

    /// One more element of a list.
    pub(crate) fn element(self, inner: Attributes) -> Self {
        self.nested(LIST_ELEM, inner)
    }

    /// A value, as data of a set or a comparison.
    pub(crate) fn value(value: &[u8]) -> Self {
        Attributes::default().bytes(DATA_VALUE, value)
    }
}

/// A message about tables `inet`, inside a batch or as a question.
pub(crate) fn request(
    kind: u16,
    attributes: Attributes,
    flags: u16,
    what: impl Into<String>,
) -> Request<Raw> {
    let mut body = vec![INET, 0, 0, 0];
    body.extend(attributes.0);
    let kind = NFTABLES << 8 | kind;
    Request::new(Raw { kind, body }, flags, what)
}

/// The first or the last message of a batch.
pub(super) fn batch_end(kind: u16, what: &str) -> Request<Raw> {
    let body = vec![0, 0, 0, NFTABLES as u8];
    Request::new(Raw { kind, body }, 0, what)
}

pub(super) const BATCH_BEGIN: u16 = 0x10;
pub(super) const BATCH_END: u16 = 0x11;

/// The expressions of a rule. What loads a value puts it into the first register, from where the next one takes it.
#[derive(Debug, Default)]
pub(crate) struct Expressions(pub(super) Attributes);

/// What the kernel knows of a packet beside its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meta {
    IifName = 6,
    OifName = 7,
    NfProto = 15,
    L4Proto = 16,
    IifGroup = 21,
    OifGroup = 22,
}

/// An address of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Source,
    Destination,
}

/// Where bytes of a packet are counted from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Header {
    Network = 1,
    Transport = 2,
}

impl Expressions {
    /// `meta nfproto ipv4`
    pub(crate) fn of_family(family: Family) -> Self {
        Self::default().and_family(family)
    }

    /// The same, after others.
    pub(crate) fn and_family(self, family: Family) -> Self {
        self.meta(Meta::NfProto).is(&[nfproto(family) as u8])
    }

    /// `iifname "…"`, `oifname "…"`
    pub(crate) fn of_link(which: Meta, name: &str) -> Self {
        let mut padded = [0; 16];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        Self::default().meta(which).is(&padded)
    }

    /// Loads what is known of a packet beside its bytes.
    pub(crate) fn meta(self, what: Meta) -> Self {
        self.meta_to(what, REGISTER)
    }

    pub(crate) fn meta_to(self, what: Meta, register: u32) -> Self {
        let to = Attributes::default().number(1, register);
        self.add("meta", to.number(2, what as u32))
    }

    /// Loads bytes of a header, or of what follows it.
    pub(crate) fn payload(self, header: Header, offset: u32, length: u32) -> Self {
        self.payload_to(header, (offset, length), REGISTER)
    }

    fn payload_to(self, header: Header, (offset, length): (u32, u32), register: u32) -> Self {
        let payload = Attributes::default()
            .number(1, register)
            .number(2, header as u32)
            .number(3, offset)
            .number(4, length);
        self.add("payload", payload)
    }

    pub(crate) fn address(self, family: Family, end: End) -> Self {
        self.address_to(family, end, REGISTER)
    }

    pub(crate) fn address_to(self, family: Family, end: End, register: u32) -> Self {
        let offset = address_offset(family, end);
        self.payload_to(Header::Network, (offset, address_length(family)), register)
    }

    /// Loads the port that the packet is sent to.
    pub(crate) fn destination_port_to(self, register: u32) -> Self {
        self.payload_to(Header::Transport, (2, 2), register)
    }

    /// `udp dport …`
    pub(crate) fn udp_port(self, port: u16) -> Self {
        self.meta(Meta::L4Proto)
            .is(&[libc::IPPROTO_UDP as u8])
            .destination_port_to(REGISTER)
            .is(&port.to_be_bytes())
    }

    /// Goes on if the address is in the network, or if it is not.
    pub(crate) fn in_net(self, end: End, net: IpNet, is_in: bool) -> Self {
        let loaded = self.address(Family::of(net.addr()), end);
        let mask = octets(net.netmask());
        let is_one_address = mask.iter().all(|byte| *byte == 0xff);
        let masked = match is_one_address {
            true => loaded,
            false => loaded.masked(&mask),
        };
        masked.compare(equality(is_in), &octets(net.network()))
    }

    /// `ip saddr 127.0.0.0/8`, by the first byte alone.
    pub(crate) fn in_loopback(self, end: End, is_in: bool) -> Self {
        self.payload(Header::Network, address_offset(Family::V4, end), 1)
            .compare(equality(is_in), &[127])
    }

    /// Goes on if what was loaded is this.
    pub(crate) fn is(self, value: &[u8]) -> Self {
        self.compare(equality(true), value)
    }

    /// Goes on if what was loaded is anything else.
    pub(crate) fn differs(self, value: &[u8]) -> Self {
        self.compare(equality(false), value)
    }

    /// Goes on if what was loaded is less than this.
    pub(crate) fn less(self, value: &[u8]) -> Self {
        const LESS: u32 = 2;
        self.compare(LESS, value)
    }

    fn compare(self, operator: u32, value: &[u8]) -> Self {
        let compare = Attributes::default()
            .number(1, REGISTER)
            .number(2, operator)
            .nested(3, Attributes::value(value));
        self.add("cmp", compare)
    }

    fn masked(self, mask: &[u8]) -> Self {
        let masked = Attributes::default()
            .number(1, REGISTER)
            .number(2, REGISTER)
            .number(3, mask.len() as u32)
            .nested(4, Attributes::value(mask))
            .nested(5, Attributes::value(&vec![0; mask.len()]));
        self.add("bitwise", masked)
    }

    /// Goes on if what was loaded is in a set, or if it is not.
    pub(crate) fn in_set(self, set: &str, is_in: bool) -> Self {
        const INVERTED: u32 = 1;
        let lookup = Attributes::default().text(1, set).number(2, REGISTER);
        match is_in {
            true => self.add("lookup", lookup),
            false => self.add("lookup", lookup.number(5, INVERTED)),
        }
    }

    /// Replaces what was loaded by what a map has for it.
    pub(crate) fn mapped(self, map: &str) -> Self {
        let lookup = Attributes::default().text(1, map).number(2, REGISTER);
        self.add("lookup", lookup.number(3, REGISTER))
    }

    /// `fib saddr . iif oif missing`
    pub(crate) fn foreign_source(self) -> Self {
        const SADDR_IIF_PRESENT: u32 = 1 | 8 | 32;
        self.fib(1, SADDR_IIF_PRESENT).is(&[0; 4])
    }

    /// `fib daddr type local`
    pub(crate) fn local_address(self) -> Self {
        const DADDR: u32 = 2;
        const LOCAL: u32 = 2;
        self.fib(3, DADDR).is(&LOCAL.to_ne_bytes())
    }

    fn fib(self, result: u32, flags: u32) -> Self {
        let fib = Attributes::default().number(1, REGISTER);
        self.add("fib", fib.number(2, result).number(3, flags))
    }

    /// `ct state established,related`
    pub(crate) fn of_known_connection(self) -> Self {
        const STATE: u32 = 0;
        const ESTABLISHED_OR_RELATED: u32 = 6;
        self.connection(STATE, ESTABLISHED_OR_RELATED)
    }

    /// `ct status dnat`
    pub(crate) fn of_dnat(self) -> Self {
        const STATUS: u32 = 2;
        const DNATED: u32 = 0x20;
        self.connection(STATUS, DNATED)
    }

    /// Goes on if one of the bits is set.
    fn connection(self, key: u32, bits: u32) -> Self {
        let loaded = Attributes::default().number(1, REGISTER).number(2, key);
        self.add("ct", loaded)
            .masked(&bits.to_ne_bytes())
            .differs(&[0; 4])
    }

    pub(crate) fn accept(self) -> Self {
        self.verdict(ACCEPT)
    }

    pub(crate) fn drop(self) -> Self {
        self.verdict(0)
    }

    fn verdict(self, code: u32) -> Self {
        let code = Attributes::default().number(1, code);
        let verdict = Attributes::default().nested(2, code);
        let verdict = Attributes::default().number(1, 0).nested(2, verdict);
        self.add("immediate", verdict)
    }

    pub(crate) fn masquerade(self) -> Self {
        self.add("masq", Attributes::default())
    }

    /// Changes the destination to the address in the first register and the port in the second.
    pub(crate) fn dnat(self, family: Family, port_register: u32) -> Self {
        const DNAT: u32 = 1;
        let dnat = Attributes::default()
            .number(1, DNAT)
            .number(2, nfproto(family) as u32)
            .number(3, REGISTER)
            .number(5, port_register);
        self.add("nat", dnat)
    }

    fn add(self, name: &str, data: Attributes) -> Self {
        let expression = Attributes::default().text(1, name).nested(2, data);
        Self(self.0.element(expression))
    }
}

fn equality(is_equal: bool) -> u32 {
    u32::from(!is_equal)
}

pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

pub(super) fn address_length(family: Family) -> u32 {
    u32::from(family.bits()) / 8
}

fn address_offset(family: Family, end: End) -> u32 {
    match (family, end) {
        (Family::V4, End::Source) => 12,
        (Family::V4, End::Destination) => 16,
        (Family::V6, End::Source) => 8,
        (Family::V6, End::Destination) => 24,
    }
}

fn nfproto(family: Family) -> i32 {
    match family {
        Family::V4 => libc::NFPROTO_IPV4,
        Family::V6 => libc::NFPROTO_IPV6,
    }
}

pub(super) const ACCEPT: u32 = 1;
const INET: u8 = 1;
const NFTABLES: u16 = 10;
const NESTED: u16 = 0x8000;
/// The first register of sixteen bytes.
const REGISTER: u32 = 1;
const LIST_ELEM: u16 = 1;
const DATA_VALUE: u16 = 1;
