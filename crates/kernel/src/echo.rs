//! Pings that say whom they reached: ICMP echo with a token in it. Owns raw ICMP sockets of a namespace
//! and the messages; never waits longer than it is told, never judges.
//!
//! The kernel of whoever has the address answers. A listener in the namespace that is meant sees the
//! request too: only if it does, and the answer comes back, was it that namespace and not another one
//! with the same address.

use crate::{Netns, NetnsError, sys};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrV4, SocketAddrV6, SocketFlags,
    SocketType, ipproto,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// What tells one ping from all others.
pub type Token = u64;

/// Why there is no such socket.
#[derive(Debug, thiserror::Error)]
pub enum EchoError {
    /// The namespace.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The socket.
    #[error("cannot open a raw ICMP socket: this needs CAP_NET_RAW")]
    Socket(#[source] io::Error),
}

/// A raw ICMP socket of one family in one namespace.
#[derive(Debug)]
pub struct Echo {
    fd: OwnedFd,
    v6: bool,
}

/// What a socket heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
    /// Somebody's ping arrived here.
    Request(Token),
    /// The answer to a ping of this namespace arrived.
    Reply(Token),
}

impl Echo {
    /// A socket in that namespace for one family. With the index of a link, what is sent leaves by that
    /// link and nothing else is heard.
    pub fn open(netns: &Netns, v6: bool, link: Option<u32>) -> Result<Self, EchoError> {
        let open = || -> io::Result<OwnedFd> {
            let (family, protocol) = match v6 {
                true => (AddressFamily::INET6, ipproto::ICMPV6),
                false => (AddressFamily::INET, ipproto::ICMP),
            };
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let fd = rustix::net::socket_with(family, SocketType::RAW, flags, Some(protocol))?;
            if let Some(link) = link {
                let index = i32::try_from(link).map_err(io::Error::other)?;
                sys::set_option(&fd, libc::SOL_SOCKET, SO_BINDTOIFINDEX, index)?;
            }
            Ok(fd)
        };
        let fd = netns.enter(open)?.map_err(EchoError::Socket)?;
        Ok(Self { fd, v6 })
    }

    /// Sends a ping. Refused at once if there is no way there.
    pub fn send(&self, to: IpAddr, token: Token) -> io::Result<()> {
        let message = request(self.v6, token);
        let to: SocketAddrAny = match to {
            IpAddr::V4(v4) => SocketAddrV4::new(v4, 0).into(),
            IpAddr::V6(v6) => SocketAddrV6::new(v6, 0, 0, 0).into(),
        };
        rustix::net::sendto(&self.fd, &message, SendFlags::empty(), &to)?;
        Ok(())
    }

    /// What has arrived and was not heard yet.
    pub fn heard(&self) -> Vec<Heard> {
        let mut buffer = [0_u8; 2048];
        let mut heard = Vec::new();
        // Bounded: whoever floods the pod must not hold us up.
        for _ in 0..4096 {
            match rustix::net::recv(&self.fd, &mut buffer[..], RecvFlags::empty()) {
                Ok((_, length)) => heard.extend(read(self.v6, &buffer[..length.min(2048)])),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        heard
    }
}

impl AsFd for Echo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits until one of the sockets has heard something, or for that long.
pub fn wait(sockets: &[&Echo], limit: Duration) {
    let fds = sockets
        .iter()
        .map(|socket| PollFd::new(*socket, PollFlags::IN));
    let mut fds: Vec<PollFd<'_>> = fds.collect();
    let limit = Timespec::try_from(limit).ok();
    // An interruption is a short wait.
    let _ = rustix::event::poll(&mut fds, limit.as_ref());
}

const SO_BINDTOIFINDEX: i32 = 62;
/// Type of a request and of a reply, by family.
const TYPES: [(u8, u8); 2] = [(8, 0), (128, 129)];
/// Marks our own pings among all others.
const MARK: &[u8; 8] = b"plexus\0\0";

/// Type, code, checksum, identifier, sequence number, mark, token.
fn request(v6: bool, token: Token) -> [u8; 24] {
    let mut message = [0; 24];
    message[0] = TYPES[usize::from(v6)].0;
    message[4..8].copy_from_slice(&token.to_be_bytes()[4..]);
    message[8..16].copy_from_slice(MARK);
    message[16..].copy_from_slice(&token.to_be_bytes());
    if !v6 {
        // For IPv6 the kernel does it.
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    message
}

/// IPv4 comes with its header, IPv6 without.
pub(crate) fn read(v6: bool, packet: &[u8]) -> Option<Heard> {
    let skip = match v6 {
        true => 0,
        false => usize::from(packet.first()? & 0x0f) * 4,
    };
    let message = packet.get(skip..)?.get(..24)?;
    if &message[8..16] != MARK {
        return None;
    }
    let token = Token::from_be_bytes(message[16..].try_into().ok()?);
    let (request, reply) = TYPES[usize::from(v6)];
    match message[0] {
        kind if kind == request => Some(Heard::Request(token)),
        kind if kind == reply => Some(Heard::Reply(token)),
        _ => None,
    }
}

/// The checksum of the Internet's protocols.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or_default();
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let sent = request(true, 7);
        assert_eq!(read(true, &sent), Some(Heard::Request(7)));
        let mut packet = vec![0x46; 1];
        packet.resize(24, 0);
        packet.extend(request(false, 9));
        assert_eq!(read(false, &packet), Some(Heard::Request(9)));
        packet[24] = 0;
        assert_eq!(read(false, &packet), Some(Heard::Reply(9)));
        assert_eq!(checksum(&request(false, 9)), 0);
    }

    #[test]
    fn what_others_send_is_passed_over() {
        assert_eq!(read(true, &[]), None);
        assert_eq!(read(false, &[0xff; 30]), None);
        let mut other = request(true, 1);
        other[8] = 0;
        assert_eq!(read(true, &other), None);
        let mut redirect = request(true, 1);
        redirect[0] = 137;
        assert_eq!(read(true, &redirect), None);
        assert_eq!(read(true, &request(true, 1)[..23]), None);
    }
}
