//! What the tests' pods do in their containers: answer on port 80 with their name, and on `/cgi-bin/me` also
//! with the address of whoever asks. One thread per pod, which ends when the pod's namespace has no name any more.

use anyhow::{Context, Result, bail};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

const PORT: u16 = 80;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(5);

/// The namespaces that have a server.
#[derive(Default)]
pub(super) struct Servers(Mutex<BTreeSet<PathBuf>>);

impl Servers {
    /// Starts one in a namespace, unless there is one already; it answers when this returns.
    pub(super) fn start(&self, name: &str, netns: &Path) -> Result<()> {
        let Ok(mut known) = self.0.lock() else {
            bail!("another test has panicked while it started a server");
        };
        if known.contains(netns) {
            return Ok(());
        }
        let listener = listen(netns)?;
        known.insert(netns.to_owned());
        let (name, netns) = (name.to_owned(), netns.to_owned());
        std::thread::spawn(move || {
            while netns.exists() {
                match listener.accept() {
                    Ok((stream, _)) => drop(answer(&stream, &name)),
                    Err(_) => std::thread::sleep(POLL_INTERVAL),
                }
            }
        });
        Ok(())
    }
}

/// For both families, in that namespace. A thread of its own goes there and does not come back.
fn listen(netns: &Path) -> Result<TcpListener> {
    let inside = || -> Result<TcpListener> {
        let file = File::open(netns)?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        // Takes IPv4 as well, as Linux does unless it is told otherwise.
        let listener = TcpListener::bind(("::", PORT))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let done = std::thread::scope(|scope| scope.spawn(inside).join());
    let Ok(listener) = done else {
        bail!("cannot listen in {}", netns.display());
    };
    listener.with_context(|| format!("cannot listen in {}", netns.display()))
}

fn answer(mut stream: &TcpStream, name: &str) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut lines = BufReader::new(stream);
    let mut request = String::new();
    lines.read_line(&mut request)?;
    // The rest of the request, so that closing does not cut the answer short.
    let mut line = String::new();
    while lines.read_line(&mut line)? > 2 {
        line.clear();
    }
    let body = if request.contains(" /cgi-bin/me") {
        format!("{name} {}\n", stream.peer_addr()?.ip())
    } else {
        format!("{name}\n")
    };
    write!(stream, "HTTP/1.0 200 OK\r\n\r\n{body}")
}
