//! One HTTP/1.1 exchange over a unix socket: the request as one write, the response read to its
//! declared end. Knows only what our agent sends: a status line, headers, a body with a length or
//! up to the end of the connection. Anything else is a server that went away.

use plexus_faults::effect;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const MAX_HEAD: usize = 16 << 10;
const MAX_RESPONSE: usize = 4 << 20;

/// What the server answered.
#[derive(Debug)]
pub struct Response {
    /// 200, or an error.
    pub status: u16,
    /// The text after the headers.
    pub body: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum RequestError {
    /// Nobody is there, or it went away before it had answered.
    Away(String),
    /// It is there and does not answer in time.
    Slow,
    /// We cannot reach it at all, and waiting will not help.
    Barred(String),
}

/// A whole POST, ready to be sent any number of times.
pub fn request(path: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: plexus\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut bytes = Vec::with_capacity(head.len() + body.len());
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

/// Connects, sends, and reads the answer; all of it within `limit`.
pub fn exchange(socket: &Path, request: &[u8], limit: Duration) -> Result<Response, RequestError> {
    let until = Instant::now() + limit;
    effect("shim.connect<");
    let stream = connect(socket, limit);
    effect("shim.connect>");
    let mut stream = stream?;
    effect("shim.write<");
    let sent = stream.write_all(request);
    effect("shim.write>");
    if let Err(error) = &sent
        && timed_out(error)
    {
        return Err(RequestError::Slow);
    }
    effect("shim.read<");
    let answer = receive(&mut stream, until);
    effect("shim.read>");
    // An agent may refuse, answer and close before it has read everything.
    match (answer, sent) {
        (Err(RequestError::Away(_)), Err(error)) => Err(RequestError::Away(format!(
            "the connection broke while the request was sent: {error}"
        ))),
        (answer, _) => answer,
    }
}

fn connect(socket: &Path, limit: Duration) -> Result<UnixStream, RequestError> {
    let barred = |error: Errno| {
        RequestError::Barred(format!("cannot connect to {}: {error}", socket.display()))
    };
    let address = SocketAddrUnix::new(socket).map_err(barred)?;
    let flags = SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(barred)?;
    // SO_SNDTIMEO also bounds connect, which blocks while the agent's backlog is full.
    for timeout in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
        sockopt::set_socket_timeout(&fd, timeout, Some(limit)).map_err(barred)?;
    }
    match rustix::net::connect(&fd, &address) {
        Ok(()) => Ok(UnixStream::from(fd)),
        Err(error @ (Errno::NOENT | Errno::CONNREFUSED | Errno::INTR)) => {
            Err(RequestError::Away(format!("nobody listens there: {error}")))
        }
        Err(Errno::AGAIN) => Err(RequestError::Slow),
        Err(error) => Err(barred(error)),
    }
}

fn receive(stream: &mut UnixStream, until: Instant) -> Result<Response, RequestError> {
    let away = |text: &str| RequestError::Away(text.to_owned());
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    let mut head: Option<Head> = None;
    loop {
        if Instant::now() > until {
            return Err(RequestError::Slow);
        }
        let read = match stream.read(&mut chunk) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if timed_out(&error) => return Err(RequestError::Slow),
            Err(error) => return Err(away(&format!("the connection broke: {error}"))),
        };
        bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
        if head.is_none() {
            head = Head::find(&bytes)?;
        }
        if bytes.len() > MAX_RESPONSE || (head.is_none() && bytes.len() > MAX_HEAD) {
            return Err(away("its answer is too large"));
        }
        let Some(head) = &head else {
            if read == 0 {
                return Err(away("it closed the connection without an answer"));
            }
            continue;
        };
        let end = match head.length {
            Some(length) => head.end.saturating_add(length),
            None if read == 0 => bytes.len(),
            None => usize::MAX,
        };
        if let Some(body) = bytes.get(head.end..end) {
            let body = std::str::from_utf8(body).map_err(|_| away("its answer is not UTF-8"))?;
            return Ok(Response {
                status: head.status,
                body: body.trim().to_owned(),
            });
        }
        if read == 0 {
            return Err(away("it closed the connection in the middle of its answer"));
        }
    }
}

/// Status line and headers, as far as they matter.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) length: Option<usize>,
    /// Where the body begins.
    pub(super) end: usize,
}

impl Head {
    /// None while the head is incomplete.
    pub(super) fn find(bytes: &[u8]) -> Result<Option<Self>, RequestError> {
        let Some(at) = bytes
            .windows(4)
            .take(MAX_HEAD)
            .position(|four| four == b"\r\n\r\n")
        else {
            return Ok(None);
        };
        let text = bytes
            .get(..at)
            .and_then(|head| std::str::from_utf8(head).ok());
        text.and_then(|text| Self::parse(text, at + 4))
            .map(Some)
            .ok_or_else(|| {
                RequestError::Away("its answer is not HTTP/1.1 as the agent speaks it".into())
            })
    }

    fn parse(text: &str, end: usize) -> Option<Self> {
        let mut lines = text.split("\r\n");
        let status = lines
            .next()?
            .strip_prefix("HTTP/1.1 ")?
            .get(..3)?
            .parse()
            .ok()?;
        let mut head = Self {
            status,
            length: None,
            end,
        };
        for line in lines {
            let (name, value) = line.split_once(':')?;
            if name.eq_ignore_ascii_case("content-length") {
                head.length = Some(value.trim().parse().ok()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                return None;
            }
        }
        Some(head)
    }
}

fn timed_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
