//! The wire form of the few nf_tables messages that are needed. Bytes only; never sends.

use crate::netlink::Raw;

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

    /// One more expression of a rule.
    pub(crate) fn expression(self, name: &str, data: Attributes) -> Self {
        let expression = Attributes::default()
            .text(EXPR_NAME, name)
            .nested(EXPR_DATA, data);
        self.nested(LIST_ELEM, expression)
    }

    /// Several more expressions.
    pub(crate) fn expressions(
        self,
        list: impl IntoIterator<Item = (&'static str, Attributes)>,
    ) -> Self {
        list.into_iter()
            .fold(self, |all, (name, data)| all.expression(name, data))
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

/// A message about `family`, inside a batch or as a question.
pub(crate) fn message(kind: u16, family: u8, attributes: Attributes) -> Raw {
    let mut body = vec![family, 0, 0, 0];
    body.extend(attributes.0);
    Raw {
        kind: NFTABLES << 8 | kind,
        body,
    }
}

/// The first message of a batch.
pub(crate) fn batch_begin() -> Raw {
    Raw {
        kind: 0x10,
        body: vec![0, 0, 0, NFTABLES as u8],
    }
}

/// The last message of a batch.
pub(crate) fn batch_end() -> Raw {
    Raw {
        kind: 0x11,
        body: vec![0, 0, 0, NFTABLES as u8],
    }
}

/// Compares what is in the register with a value.
pub(crate) fn cmp(equal: bool, value: &[u8]) -> Attributes {
    Attributes::default()
        .number(CMP_SREG, REGISTER)
        .number(CMP_OP, if equal { 0 } else { 1 })
        .nested(CMP_DATA, Attributes::value(value))
}

/// Whether what is in the register is less than a value.
pub(crate) fn less(value: &[u8]) -> Attributes {
    Attributes::default()
        .number(CMP_SREG, REGISTER)
        .number(CMP_OP, 2)
        .nested(CMP_DATA, Attributes::value(value))
}

/// Loads the protocol family of the packet.
pub(crate) fn meta_nfproto() -> Attributes {
    meta(Meta::NfProto, REGISTER)
}

/// Loads what is known of a packet beside its bytes.
pub(crate) fn meta(what: Meta, register: u32) -> Attributes {
    Attributes::default()
        .number(META_DREG, register)
        .number(META_KEY, what as u32)
}

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

/// Loads bytes of the network header.
pub(crate) fn payload(offset: u32, length: u32) -> Attributes {
    load(NETWORK_HEADER, offset, length, REGISTER)
}

/// Loads bytes of the transport header and what follows it.
pub(crate) fn transport(offset: u32, length: u32) -> Attributes {
    load(TRANSPORT_HEADER, offset, length, REGISTER)
}

/// Loads the port that the packet is sent to.
pub(crate) fn destination_port(register: u32) -> Attributes {
    load(TRANSPORT_HEADER, 2, 2, register)
}

/// Loads bytes of the network header into a register.
pub(crate) fn payload_to(offset: u32, length: u32, register: u32) -> Attributes {
    load(NETWORK_HEADER, offset, length, register)
}

/// Loads whether the source leads back through the link that the packet came in by.
pub(crate) fn fib_source_present() -> Attributes {
    const SADDR_IIF_PRESENT: u32 = 1 | 8 | 32;
    fib(1, SADDR_IIF_PRESENT)
}

/// Loads the kind of the destination: see [`LOCAL_ADDRESS`].
pub(crate) fn fib_destination_type() -> Attributes {
    const DADDR: u32 = 2;
    fib(3, DADDR)
}

/// The kind of an address of the machine itself.
pub(crate) const LOCAL_ADDRESS: [u8; 4] = 2_u32.to_ne_bytes();

/// Loads the state of the connection: see [`ESTABLISHED_OR_RELATED`].
pub(crate) fn ct_state() -> Attributes {
    Attributes::default().number(1, REGISTER).number(2, 0)
}

/// Bits of the state of a connection.
pub(crate) const ESTABLISHED_OR_RELATED: [u8; 4] = 6_u32.to_ne_bytes();

/// Loads the status of the connection: see [`DNATED`].
pub(crate) fn ct_status() -> Attributes {
    Attributes::default().number(1, REGISTER).number(2, 2)
}

/// The bit of the status that says that the destination was changed.
pub(crate) const DNATED: [u8; 4] = 0x20_u32.to_ne_bytes();

/// Ends the rule with a verdict.
pub(crate) fn verdict(accept: bool) -> Attributes {
    let code = Attributes::default().number(1, u32::from(accept));
    Attributes::default()
        .number(1, 0)
        .nested(2, Attributes::default().nested(2, code))
}

/// Looks the register up in a set; with `map`, replaces it by what the map has.
pub(crate) fn lookup(set: &str, map: bool) -> Attributes {
    let lookup = Attributes::default().text(1, set).number(2, REGISTER);
    if map {
        lookup.number(3, REGISTER)
    } else {
        lookup
    }
}

/// Goes on if the register is not in a set.
pub(crate) fn missing_in(set: &str) -> Attributes {
    const INVERTED: u32 = 1;
    lookup(set, false).number(5, INVERTED)
}

/// Changes the destination to the address in the first register and the port in the second.
pub(crate) fn dnat(family: u8, port_register: u32) -> Attributes {
    const DNAT: u32 = 1;
    Attributes::default()
        .number(1, DNAT)
        .number(2, u32::from(family))
        .number(3, REGISTER)
        .number(5, port_register)
}

/// Masks the register.
pub(crate) fn bitwise(mask: &[u8]) -> Attributes {
    Attributes::default()
        .number(BITWISE_SREG, REGISTER)
        .number(BITWISE_DREG, REGISTER)
        .number(BITWISE_LEN, mask.len() as u32)
        .nested(BITWISE_MASK, Attributes::value(mask))
        .nested(BITWISE_XOR, Attributes::value(&vec![0; mask.len()]))
}

fn fib(result: u32, flags: u32) -> Attributes {
    Attributes::default()
        .number(1, REGISTER)
        .number(2, result)
        .number(3, flags)
}

fn load(base: u32, offset: u32, length: u32, register: u32) -> Attributes {
    Attributes::default()
        .number(PAYLOAD_DREG, register)
        .number(PAYLOAD_BASE, base)
        .number(PAYLOAD_OFFSET, offset)
        .number(PAYLOAD_LEN, length)
}

const NFTABLES: u16 = 10;
const NESTED: u16 = 0x8000;
const REGISTER: u32 = 1;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const LIST_ELEM: u16 = 1;
const EXPR_NAME: u16 = 1;
const EXPR_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const CMP_SREG: u16 = 1;
const CMP_OP: u16 = 2;
const CMP_DATA: u16 = 3;
const META_DREG: u16 = 1;
const META_KEY: u16 = 2;
const PAYLOAD_DREG: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LEN: u16 = 4;
const BITWISE_SREG: u16 = 1;
const BITWISE_DREG: u16 = 2;
const BITWISE_LEN: u16 = 3;
const BITWISE_MASK: u16 = 4;
const BITWISE_XOR: u16 = 5;
