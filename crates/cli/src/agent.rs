//! An agent on this machine, asked over its socket.

use serde_json::Value;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longer than any answer takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// More than any answer has.
const MAX_ANSWER_BYTES: u64 = 256 << 20;

/// One GET: the status and the text.
pub fn get(socket: &Path, path: &str) -> io::Result<(u16, String)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer)?;
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "it does not speak HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(odd)?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(odd)?, body.to_owned()))
}

/// All attachments that an agent knows.
pub fn attachments(socket: &Path) -> io::Result<Vec<Value>> {
    let (status, body) = get(socket, "/attachments")?;
    if status != 200 {
        return Err(io::Error::other(body.trim_end().to_owned()));
    }
    serde_json::from_str(&body).map_err(io::Error::other)
}
