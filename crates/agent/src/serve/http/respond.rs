//! Answering, and knowing whether the answer arrived.

use super::Connection;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a peer may take to read an answer that fits its socket buffer.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Response {
    /// 200, 400, …
    pub(crate) status: u16,
    /// `application/json` or `text/plain`
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The peer read all of it and closed.
    Read,
    /// The peer was gone, or went without reading it.
    Lost,
}

impl Response {
    pub(crate) fn json(status: u16, body: String) -> Self {
        Self {
            status,
            content_type: "application/json",
            body,
        }
    }

    pub(crate) fn text(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    /// Writes the answer and waits until the peer has read it and closed. A peer that dies with
    /// the answer unread makes the kernel reset the connection: that is how we know.
    pub(crate) fn deliver(&self, stream: &mut dyn Connection) -> Delivery {
        // Before the answer: whoever waits for it is not kept from running by what we do after it.
        if stream.read_within(CONFIRM_TIMEOUT).is_err() || self.write(stream).is_err() {
            return Delivery::Lost;
        }
        let deadline = Instant::now() + CONFIRM_TIMEOUT;
        let mut rest = [0; 256];
        loop {
            match stream.read(&mut rest) {
                Ok(0) => return Delivery::Read,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(_) => return Delivery::Lost,
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if stream.read_within(left).is_err() {
                return Delivery::Lost;
            }
        }
        Delivery::Read
    }

    fn write(&self, stream: &mut dyn Connection) -> std::io::Result<()> {
        let reason = match self.status {
            200 => "OK",
            400..=499 => "Refused",
            _ => "Failed",
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        );
        stream.write_within(CONFIRM_TIMEOUT)?;
        stream.write_all(&[head.as_bytes(), self.body.as_bytes()].concat())?;
        stream.end()
    }
}

/// Whether the peer has closed its end while it waits for an answer.
pub(crate) fn peer_is_gone(stream: &UnixStream) -> bool {
    match rustix::net::recv(stream, &mut [0_u8; 16], RecvFlags::DONTWAIT) {
        Ok((_, count)) => count == 0,
        Err(errno) => !matches!(errno, Errno::AGAIN | Errno::INTR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn answer() -> Response {
        Response::json(200, "{}".to_owned())
    }

    #[test]
    fn a_reader_is_a_delivery() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let peer = std::thread::spawn(move || {
            let mut text = String::new();
            theirs.read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(answer().deliver(&mut ours), Delivery::Read);
        assert!(peer.join().unwrap().ends_with("{}"));
    }

    #[test]
    fn a_peer_that_left_before_is_lost() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        assert!(!peer_is_gone(&ours));
        drop(theirs);
        assert!(peer_is_gone(&ours));
        assert_eq!(answer().deliver(&mut ours), Delivery::Lost);
    }

    #[test]
    fn a_peer_that_dies_without_reading_is_lost() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let peer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(theirs);
        });
        assert_eq!(answer().deliver(&mut ours), Delivery::Lost);
        peer.join().unwrap();
    }
}
