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

    fn value(value: &[u8]) -> Self {
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

/// Loads the protocol family of the packet.
pub(crate) fn meta_nfproto() -> Attributes {
    Attributes::default()
        .number(META_DREG, REGISTER)
        .number(META_KEY, META_NFPROTO)
}

/// Loads bytes of the network header.
pub(crate) fn payload(offset: u32, length: u32) -> Attributes {
    Attributes::default()
        .number(PAYLOAD_DREG, REGISTER)
        .number(PAYLOAD_BASE, NETWORK_HEADER)
        .number(PAYLOAD_OFFSET, offset)
        .number(PAYLOAD_LEN, length)
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

const NFTABLES: u16 = 10;
const NESTED: u16 = 0x8000;
const REGISTER: u32 = 1;
const NETWORK_HEADER: u32 = 1;
const META_NFPROTO: u32 = 15;
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
