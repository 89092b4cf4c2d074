//! One netlink socket: a small blocking transport. Several requests go out in one send; the kernel
//! has answered all of them when the send returns, and the answers are read until the last one's.
//!
//! A batch is not a transaction: the kernel carries on after a request that it refuses. Only the
//! last request asks for an acknowledgement; errors of the others arrive unasked.

use super::answer::{Answers, HEADER, Verdict};
use super::error::{NetlinkError, Refused};
use crate::effect::Effect;
use crate::{Netns, sys};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A netlink socket. Works in the network namespace in which it was opened, whichever namespace
/// its user is in.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
    /// Answers may be left unread: not fit for another request.
    broken: bool,
}

/// One message to the kernel, with words for the case that it is refused.
#[derive(Debug)]
pub(crate) struct Request<M = RouteNetlinkMessage> {
    pub(crate) message: M,
    pub(crate) flags: u16,
    /// Completes "the kernel refused to …".
    pub(crate) what: String,
    /// What is there already is as good.
    unless_there: bool,
}

impl<M> Request<M> {
    pub(crate) fn new(message: impl Into<M>, flags: u16, what: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            flags,
            what: what.into(),
            unless_there: false,
        }
    }

    /// The same, but not refused if it is there already.
    pub(crate) fn unless_there(mut self) -> Self {
        self.unless_there = true;
        self
    }

    /// The same, but refused if it is there already.
    pub(crate) fn exclusive(mut self) -> Self {
        self.flags |= NLM_F_CREATE | NLM_F_EXCL;
        self
    }

    /// The same, but what is there already is replaced.
    pub(crate) fn replacing(mut self) -> Self {
        self.flags = (self.flags & !NLM_F_EXCL) | NLM_F_CREATE | NLM_F_REPLACE;
        self
    }
}

/// A message that is bytes already.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) kind: u16,
    pub(crate) body: Vec<u8>,
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }
    fn buffer_len(&self) -> usize {
        self.body.len()
    }
    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

/// A dump that the kernel says was torn by a change is repeated, this often.
const TORN_DUMPS: usize = 8;
/// The kernel answers within the send; this only bounds what should never happen.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// As large as the kernel makes the datagrams of a dump.
const BUFFER: usize = 32 * 1024;
/// Requests beyond this go in a further send: the errors of one send must fit the receive queue.
const SEND_AT_MOST: usize = 16 * 1024;
/// The same bound for teardown, whose requests are all short.
const SEND_ALL_AT_MOST: usize = 128;

const NLM_F_DUMP_INTR: u16 = 0x10;
const NETLINK_CAP_ACK: i32 = 10;
const NETLINK_EXT_ACK: i32 = 11;
const NETLINK_GET_STRICT_CHK: i32 = 12;

thread_local! {
    // One per thread and kept: a fresh socket per pod then costs no buffer.
    static SCRATCH: RefCell<(Vec<u8>, Vec<u8>)> =
        RefCell::new((Vec::with_capacity(4096), vec![0; BUFFER]));
}

impl Socket {
    /// A route socket in the calling thread's namespace.
    pub fn open() -> Result<Self, NetlinkError> {
        Self::of_protocol(None)
    }

    /// A route socket in that namespace.
    pub fn open_in(netns: &Netns) -> Result<Self, NetlinkError> {
        netns.enter(Self::open)?
    }

    /// A netfilter socket in the calling thread's namespace.
    pub(crate) fn netfilter() -> Result<Self, NetlinkError> {
        Self::of_protocol(Some(rustix::net::netlink::NETFILTER))
    }

    /// A generic netlink socket in the calling thread's namespace.
    pub(crate) fn generic() -> Result<Self, NetlinkError> {
        Self::of_protocol(Some(rustix::net::netlink::GENERIC))
    }

    fn of_protocol(protocol: Option<Protocol>) -> Result<Self, NetlinkError> {
        let open = || -> io::Result<OwnedFd> {
            let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
            let fd = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
            for option in [NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK] {
                sys::set_option(&fd, libc::SOL_NETLINK, option, 1)?;
            }
            let timeout = rustix::net::sockopt::Timeout::Recv;
            rustix::net::sockopt::set_socket_timeout(&fd, timeout, Some(ANSWER_WITHIN))?;
            Ok(fd)
        };
        let fd = open().map_err(|source| NetlinkError::Open { source })?;
        Ok(Self {
            fd,
            sequence: 0,
            broken: false,
        })
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Sends all requests, reads all answers, and gives the first refusal. Requests after a
    /// refused one may have been carried out all the same.
    pub(crate) fn batch<M: NetlinkSerializable>(
        &mut self,
        effect: Effect,
        requests: &[Request<M>],
    ) -> Result<(), NetlinkError> {
        let mut rest = requests;
        while !rest.is_empty() {
            let mut size = 0;
            let fitting = rest.iter().take_while(|request| {
                size += HEADER + request.message.buffer_len();
                size <= SEND_AT_MOST
            });
            let (now, later) = rest.split_at(fitting.count().max(1));
            let first = requests.len() - rest.len();
            let refused = effect.around(|| self.send_batch(now))?;
            if let Some(refused) = refused.into_iter().next() {
                return Err(Refused {
                    index: refused.index + first,
                    ..refused
                }
                .into());
            }
            rest = later;
        }
        Ok(())
    }

    /// Sends all requests however many are refused, and gives every refusal: for teardown.
    pub(crate) fn batch_all<M: NetlinkSerializable>(
        &mut self,
        effect: Effect,
        requests: &[Request<M>],
    ) -> Result<Vec<Refused>, NetlinkError> {
        let mut refused = Vec::new();
        for now in requests.chunks(SEND_ALL_AT_MOST) {
            refused.extend(effect.around(|| self.send_batch(now))?);
        }
        Ok(refused)
    }

    /// One send that the kernel carries out wholly or not at all: nf_tables' batches. The first
    /// and the last request are the frame; the last but one asks for the acknowledgement.
    pub(crate) fn transaction<M: NetlinkSerializable>(
        &mut self,
        requests: &[Request<M>],
    ) -> Result<(), NetlinkError> {
        let Some((_, acknowledged)) = requests.split_last() else {
            return Ok(());
        };
        let ack_on = acknowledged.len().saturating_sub(1);
        let first = self.send(
            requests,
            |index| if index == ack_on { NLM_F_ACK } else { 0 },
        )?;
        let refused = self.answers(acknowledged, first, |_, _| false)?;
        first_refusal(refused)
    }

    /// One answer to one question.
    pub(crate) fn get<M: NetlinkSerializable, T>(
        &mut self,
        request: &Request<M>,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, NetlinkError> {
        let requests = std::slice::from_ref(request);
        let first = self.send(requests, |_| 0)?;
        let (mut read, mut answer) = (Some(read), None);
        let refused = self.answers(requests, first, |_, payload| {
            answer = read.take().map(|read| read(payload));
            true
        })?;
        first_refusal(refused)?;
        answer.ok_or_else(|| garbled(requests, "an acknowledgement instead of an answer"))
    }

    /// Every object of a kind, in the kernel's order. A dump that was torn by a change is
    /// repeated from a new `start`.
    pub(crate) fn dump<M: NetlinkSerializable, S>(
        &mut self,
        request: Request<M>,
        mut start: impl FnMut() -> S,
        mut each: impl FnMut(&mut S, &[u8]),
    ) -> Result<S, NetlinkError> {
        let requests = [Request {
            flags: request.flags | NLM_F_DUMP,
            ..request
        }];
        for _ in 0..TORN_DUMPS {
            let mut state = start();
            let mut torn = false;
            let first = self.send(&requests, |_| 0)?;
            let refused = self.answers(&requests, first, |flags, payload| {
                torn |= flags & NLM_F_DUMP_INTR != 0;
                each(&mut state, payload);
                false
            })?;
            first_refusal(refused)?;
            if !torn {
                return Ok(state);
            }
        }
        Err(garbled(
            &requests,
            "objects changed during every attempt to list them",
        ))
    }

    fn send_batch<M: NetlinkSerializable>(
        &mut self,
        requests: &[Request<M>],
    ) -> Result<Vec<Refused>, NetlinkError> {
        let last = requests.len().saturating_sub(1);
        let first = self.send(requests, |index| if index == last { NLM_F_ACK } else { 0 })?;
        self.answers(requests, first, |_, _| false)
    }

    /// Sends the requests with consecutive sequence numbers and gives the first of these.
    fn send<M: NetlinkSerializable>(
        &mut self,
        requests: &[Request<M>],
        extra: impl Fn(usize) -> u16,
    ) -> Result<u32, NetlinkError> {
        let first = self.sequence.wrapping_add(1);
        let kernel = SocketAddrNetlink::new(0, 0);
        let sent = SCRATCH.with_borrow_mut(|(out, _)| {
            out.clear();
            for (index, request) in requests.iter().enumerate() {
                self.sequence = self.sequence.wrapping_add(1);
                append(out, request, self.sequence, extra(index));
            }
            again(|| rustix::net::sendto(&self.fd, out, SendFlags::empty(), &kernel))
        });
        match sent {
            Ok(_) => Ok(first),
            Err(source) => {
                self.broken = true;
                Err(NetlinkError::Send {
                    what: first_of(requests),
                    source,
                })
            }
        }
    }

    /// Reads until the answer to the last request: its acknowledgement, the end of its dump, or
    /// (if `each` says so) a payload. Gives every refusal, in order.
    fn answers<M>(
        &mut self,
        requests: &[Request<M>],
        first: u32,
        mut each: impl FnMut(u16, &[u8]) -> bool,
    ) -> Result<Vec<Refused>, NetlinkError> {
        let mut refused = Vec::new();
        let done = SCRATCH.with_borrow_mut(|(_, buffer)| {
            loop {
                let datagram = self.receive(buffer, requests)?;
                for answer in Answers(datagram) {
                    let answer = answer.ok_or_else(|| garbled(requests, "a length is wrong"))?;
                    let index = answer.sequence.wrapping_sub(first) as usize;
                    let Some(request) = requests.get(index) else {
                        return Err(garbled(requests, "a sequence number is not ours"));
                    };
                    let mut last = index + 1 == requests.len();
                    match answer.verdict() {
                        Verdict::Payload => last &= each(answer.flags, answer.payload),
                        Verdict::Skip => last = false,
                        Verdict::Code(0, _) => {}
                        Verdict::Code(libc::EEXIST, _) if request.unless_there => {}
                        Verdict::Code(errno, text) => {
                            let what = request.what.clone();
                            refused.push(Refused {
                                index,
                                what,
                                errno,
                                text,
                            });
                        }
                    }
                    if last {
                        return Ok(());
                    }
                }
            }
        });
        self.broken |= done.is_err();
        done.map(|()| refused)
    }

    fn receive<'b, M>(
        &self,
        buffer: &'b mut [u8],
        requests: &[Request<M>],
    ) -> Result<&'b [u8], NetlinkError> {
        let failed = |source| NetlinkError::Receive {
            what: first_of(requests),
            source,
        };
        loop {
            // MSG_TRUNC: the true length comes back even if the buffer is too small.
            let (length, from) = again(|| {
                rustix::net::recvfrom(&self.fd, &mut *buffer, RecvFlags::TRUNC)
                    .map(|(_, length, from)| (length, from))
            })
            .map_err(failed)?;
            let sender = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
            if sender.is_none_or(|sender| sender.pid() != 0) {
                continue;
            }
            if length > buffer.len() {
                return Err(garbled(requests, "it is longer than 32 KiB"));
            }
            return Ok(&buffer[..length]);
        }
    }
}

fn append<M: NetlinkSerializable>(
    out: &mut Vec<u8>,
    request: &Request<M>,
    sequence: u32,
    flags: u16,
) {
    let start = out.len();
    let length = HEADER + request.message.buffer_len();
    out.extend_from_slice(&(length as u32).to_ne_bytes());
    out.extend_from_slice(&request.message.message_type().to_ne_bytes());
    out.extend_from_slice(&(request.flags | flags | NLM_F_REQUEST).to_ne_bytes());
    out.extend_from_slice(&sequence.to_ne_bytes());
    out.extend_from_slice(&[0; 4]);
    out.resize(start + length, 0);
    request.message.serialize(&mut out[start + HEADER..]);
    out.resize((start + length).next_multiple_of(4), 0);
}

fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => continue,
            other => return other.map_err(io::Error::from),
        }
    }
}

fn first_refusal(refused: Vec<Refused>) -> Result<(), NetlinkError> {
    refused
        .into_iter()
        .next()
        .map_or(Ok(()), |refused| Err(refused.into()))
}

fn garbled<M>(requests: &[Request<M>], why: &'static str) -> NetlinkError {
    NetlinkError::Garbled {
        what: first_of(requests),
        why,
    }
}

fn first_of<M>(requests: &[Request<M>]) -> String {
    requests
        .first()
        .map(|request| request.what.clone())
        .unwrap_or_default()
}
