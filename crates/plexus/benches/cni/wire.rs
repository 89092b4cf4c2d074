//! The least that speaks netlink: several messages in one send, one acknowledgement for the last.
//! Apart from the product's own transport, so that the floor does not rest on what it measures.

use anyhow::{Context, Result, bail};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::os::fd::OwnedFd;

const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;

/// A route socket of the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Wire {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl Wire {
    pub(crate) fn open() -> Result<Self> {
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let fd = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, None)
            .context("cannot open a netlink socket")?;
        Ok(Self {
            fd,
            buffer: vec![0; 16 * 1024],
        })
    }

    /// Sends all messages with their flags at once; fails with the first that is refused.
    pub(crate) fn send(&mut self, messages: Vec<(RouteNetlinkMessage, u16)>) -> Result<()> {
        let last = messages.len();
        let mut bytes = Vec::with_capacity(1024);
        for (index, (message, flags)) in messages.into_iter().enumerate() {
            let ack = if index + 1 == last { NLM_F_ACK } else { 0 };
            append(&mut bytes, message, flags | ack, index as u32 + 1);
        }
        self.write(&bytes)?;
        loop {
            for (kind, sequence, payload) in self.read()? {
                if kind != NLMSG_ERROR {
                    continue;
                }
                match errno(&payload) {
                    0 if sequence as usize == last => return Ok(()),
                    0 => {}
                    errno => bail!(
                        "message {sequence} of {last}: {}",
                        std::io::Error::from_raw_os_error(errno)
                    ),
                }
            }
        }
    }

    /// The index of the link of that name.
    pub(crate) fn index_of(&mut self, name: &str) -> Result<u32> {
        let mut message = LinkMessage::default();
        message
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        let mut bytes = Vec::with_capacity(64);
        append(&mut bytes, RouteNetlinkMessage::GetLink(message), 0, 1);
        self.write(&bytes)?;
        let answers = self.read()?;
        let index = answers
            .first()
            .filter(|(kind, ..)| *kind != NLMSG_ERROR)
            .and_then(|(.., payload)| payload.get(4..8)?.try_into().ok())
            .map(u32::from_ne_bytes);
        index.with_context(|| format!("there is no link {name}"))
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&self.fd, bytes, SendFlags::empty(), &kernel)
            .context("cannot send to the kernel")?;
        Ok(())
    }

    /// One datagram: kind, sequence number and payload of each message in it.
    fn read(&mut self) -> Result<Vec<(u16, u32, Vec<u8>)>> {
        let (_, length, _) =
            rustix::net::recvfrom(&self.fd, self.buffer.as_mut_slice(), RecvFlags::empty())
                .context("cannot receive from the kernel")?;
        let mut rest = self.buffer.get(..length).unwrap_or_default();
        let mut messages = Vec::new();
        while let Some(header) = rest.get(..HEADER) {
            let word = |at: usize| {
                u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
            };
            let size = word(0) as usize;
            let payload = rest.get(HEADER..size).context("a length is wrong")?;
            let kind = u16::from_ne_bytes([header[4], header[5]]);
            messages.push((kind, word(8), payload.to_vec()));
            rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(messages)
    }
}

fn append(bytes: &mut Vec<u8>, message: RouteNetlinkMessage, flags: u16, sequence: u32) {
    let mut header = NetlinkHeader::default();
    header.flags = flags | NLM_F_REQUEST;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let start = bytes.len();
    bytes.resize(start + message.buffer_len().next_multiple_of(4), 0);
    if let Some(room) = bytes.get_mut(start..) {
        message.serialize(room);
    }
}

fn errno(payload: &[u8]) -> i32 {
    let code = payload.get(..4).and_then(|code| code.try_into().ok());
    code.map_or(0, |code| -i32::from_ne_bytes(code))
}
