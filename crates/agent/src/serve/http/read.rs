//! Reading one request from a peer that may be slow, wrong or hostile.

use super::Connection;
use std::time::{Duration, Instant};

/// How much and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of request line and headers.
    pub(crate) head: usize,
    /// Bytes of body.
    pub(crate) body: usize,
    /// From the first byte asked for to the last one read.
    pub(crate) time: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Request {
    /// `POST`
    pub(crate) method: String,
    /// `/cni/add?x=y`
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
}

/// Why a request could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the peer closed the connection")]
    Closed,
    #[error("this is not an HTTP/1.1 request: {0}")]
    Malformed(String),
    #[error("the {part} has more than {limit} bytes")]
    TooLarge { part: &'static str, limit: usize },
    #[error("a request with a body needs Content-Length")]
    NoLength,
    #[error("the request was not complete after {0:?}")]
    Slow(Duration),
    #[error("reading the request failed")]
    Io(#[source] std::io::Error),
}

impl Request {
    /// The two parts of the target.
    pub(crate) fn path_and_query(&self) -> (&str, &str) {
        self.target.split_once('?').unwrap_or((&self.target, ""))
    }
}

impl HttpError {
    /// The status that tells the peer.
    pub(crate) fn status(&self) -> u16 {
        match self {
            HttpError::Closed | HttpError::Malformed(_) | HttpError::Io(_) => 400,
            HttpError::TooLarge { .. } => 413,
            HttpError::NoLength => 411,
            HttpError::Slow(_) => 408,
        }
    }
}

/// Reads one request; never more than the limits say.
pub(crate) fn read(stream: &mut dyn Connection, limits: Limits) -> Result<Request, HttpError> {
    let mut reader = Reader {
        stream,
        limits,
        deadline: Instant::now() + limits.time,
    };
    let mut buffer = Vec::with_capacity(4096);
    let (mut request, length, body_at, wants_continue) = loop {
        // Whatever came in at once: what is beyond the limit is no head.
        let most = buffer.len().min(limits.head);
        if let Some(head) = parse_head(&buffer[..most])? {
            break head;
        }
        if buffer.len() >= limits.head {
            return Err(HttpError::TooLarge {
                part: "head",
                limit: limits.head,
            });
        }
        if reader.more(&mut buffer)? == 0 {
            return Err(if buffer.is_empty() {
                HttpError::Closed
            } else {
                HttpError::Malformed("it ends in the middle of its head".to_owned())
            });
        }
    };
    if length > limits.body {
        return Err(HttpError::TooLarge {
            part: "body",
            limit: limits.body,
        });
    }
    if wants_continue && buffer.len() == body_at {
        reader
            .stream
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .map_err(HttpError::Io)?;
    }
    request.body = buffer.split_off(body_at);
    while request.body.len() < length {
        if reader.more(&mut request.body)? == 0 {
            return Err(HttpError::Malformed(
                "it ends in the middle of its body".to_owned(),
            ));
        }
    }
    request.body.truncate(length);
    Ok(request)
}

type Head = (Request, usize, usize, bool);

fn parse_head(buffer: &[u8]) -> Result<Option<Head>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut parsed = httparse::Request::new(&mut headers);
    let status = parsed
        .parse(buffer)
        .map_err(|e| HttpError::Malformed(e.to_string()))?;
    let httparse::Status::Complete(body_at) = status else {
        return Ok(None);
    };
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        ..Request::default()
    };
    let (mut length, mut wants_continue) = (None, false);
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            let read = content_length(value)?;
            if length.replace(read).is_some_and(|earlier| earlier != read) {
                let why = "it has two different Content-Lengths";
                return Err(HttpError::Malformed(why.to_owned()));
            }
        } else if header.name.eq_ignore_ascii_case("expect") {
            wants_continue = value.eq_ignore_ascii_case("100-continue");
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(HttpError::NoLength);
        }
    }
    if request.method == "POST" && length.is_none() {
        return Err(HttpError::NoLength);
    }
    Ok(Some((
        request,
        length.unwrap_or(0),
        body_at,
        wants_continue,
    )))
}

/// Digits and nothing else: a number may have a sign, a length may not.
fn content_length(text: &str) -> Result<usize, HttpError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let length = text.parse().ok().filter(|_| digits);
    length.ok_or_else(|| {
        let short: String = text.chars().take(64).collect();
        HttpError::Malformed(format!("Content-Length {short:?} is no number"))
    })
}

struct Reader<'a> {
    stream: &'a mut dyn Connection,
    limits: Limits,
    deadline: Instant,
}

impl Reader<'_> {
    /// Appends what is there to the buffer; 0 means that the peer has finished.
    fn more(&mut self, buffer: &mut Vec<u8>) -> Result<usize, HttpError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(HttpError::Slow(self.limits.time));
        }
        self.stream.read_within(left).map_err(HttpError::Io)?;
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(count) => {
                buffer.extend_from_slice(&chunk[..count]);
                Ok(count)
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => self.more(buffer),
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                Err(HttpError::Slow(self.limits.time))
            }
            Err(e) => Err(HttpError::Io(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    const LIMITS: Limits = Limits {
        head: 1024,
        body: 64,
        time: Duration::from_millis(200),
    };

    fn read_bytes(bytes: &[u8]) -> Result<Request, HttpError> {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(bytes).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        read(&mut ours, LIMITS)
    }

    #[test]
    fn reads_a_request() {
        let request =
            read_bytes(b"POST /cni/add HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcdef").unwrap();
        assert_eq!(
            (request.method.as_str(), request.target.as_str()),
            ("POST", "/cni/add")
        );
        assert_eq!(request.body, b"abc");
    }

    #[test]
    fn refuses_garbage_and_excess() {
        for (bytes, status) in [
            (&b"\x16\x03\x01\x02\x00\x01\x00garbage\r\n\r\n"[..], 400),
            (b"", 400),
            (b"POST /x HTTP/1.1\r\nContent-Len", 400),
            (b"POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nab", 400),
            (b"POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST /x HTTP/1.1\r\nContent-Length: 65\r\n\r\n", 413),
            (b"POST /x HTTP/1.1\r\n\r\n", 411),
            (
                b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                411,
            ),
        ] {
            assert_eq!(read_bytes(bytes).unwrap_err().status(), status, "{bytes:?}");
        }
        for (lengths, status) in [
            ("3", None),
            ("3\r\nContent-Length: 3", None),
            ("+3", Some(400)),
            ("3\r\nContent-Length: 2", Some(400)),
        ] {
            let text = format!("POST /x HTTP/1.1\r\nContent-Length: {lengths}\r\n\r\nabc");
            let got = read_bytes(text.as_bytes())
                .err()
                .map(|error| error.status());
            assert_eq!(got, status, "{lengths}");
        }
        let complete = format!("GET /x HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(2000));
        assert_eq!(read_bytes(complete.as_bytes()).unwrap_err().status(), 413);
        let digits = format!(
            "POST /x HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
            "9".repeat(900)
        );
        assert!(read_bytes(digits.as_bytes()).unwrap_err().to_string().len() < 200);
        let long = [b"GET /x HTTP/1.1\r\nA: ".to_vec(), vec![b'a'; 2000]].concat();
        assert_eq!(read_bytes(&long).unwrap_err().status(), 413);
    }

    #[test]
    fn a_stalling_peer_is_let_go() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"POST /cni/add HTTP/1.1\r\n").unwrap();
        assert_eq!(read(&mut ours, LIMITS).unwrap_err().status(), 408);
    }

    #[test]
    fn says_continue_to_those_who_wait_for_it() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let peer = std::thread::spawn(move || {
            theirs
                .write_all(b"POST /x HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
                .unwrap();
            let mut answer = [0; 25];
            theirs.read_exact(&mut answer).unwrap();
            theirs.write_all(b"ok").unwrap();
            answer
        });
        assert_eq!(read(&mut ours, LIMITS).unwrap().body, b"ok");
        assert!(peer.join().unwrap().starts_with(b"HTTP/1.1 100"));
    }
}
