//! HTTP/1.1 over a unix socket, as small as can be: one request, one answer, bounded in time.

use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const IO_TIMEOUT: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The number in the first line.
    pub status: u16,
    /// All after the empty line.
    pub body: String,
}

impl Response {
    /// The body as JSON; panics if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("no JSON: {error}: {:?}", self.body))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self {
            status,
            body: body.to_owned(),
        })
    }
}

/// `GET path`; none if nobody answers.
pub fn get(socket: &Path, path: &str) -> Option<Response> {
    exchange(
        socket,
        format!("GET {path} HTTP/1.1\r\nHost: plexus\r\nConnection: close\r\n\r\n").as_bytes(),
    )
}

/// `POST path` with a JSON body and further header lines; none if nobody answers.
pub fn post(socket: &Path, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Response> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: plexus\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    let mut request = request.into_bytes();
    request.extend_from_slice(body);
    exchange(socket, &request)
}

/// Any request with a JSON body, which may be empty; none if nobody answers.
pub fn send(socket: &Path, method: &str, path: &str, body: &[u8]) -> Option<Response> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: plexus\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    exchange(socket, &[head.as_bytes(), body].concat())
}

/// Sends bytes as they are; none if nobody answers, or not in HTTP.
pub fn exchange(socket: &Path, bytes: &[u8]) -> Option<Response> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(IO_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(IO_TIMEOUT)).ok()?;
    // The agent may answer, and close, before it has read everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut chunk = [0; 65536];
    loop {
        match stream.read(&mut chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend_from_slice(&chunk[..length]),
        }
        if complete(&answer) {
            break;
        }
    }
    Response::parse(&answer)
}

/// Whether the announced length has arrived.
fn complete(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    length
        .and_then(|length| length.trim().parse::<usize>().ok())
        .is_some_and(|length| answer.len() >= end + 4 + length)
}
