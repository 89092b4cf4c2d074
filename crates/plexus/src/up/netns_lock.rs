//! One `plexus up` per network namespace: two would take each other's routes and firewall rules away,
//! wherever their files are. A socket without a file, whose name every network namespace has once; free
//! when its process ends, however it ends.
//!
//! Anybody may take such a name. Only root is believed: somebody else's socket keeps nobody from working.

use anyhow::{Context, bail};
use rustix::net::sockopt::socket_peercred;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

const NAME: &str = "plexus-up";
/// One that ends lets go of its file a moment before its socket.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The network namespace is ours while this is there.
#[derive(Debug)]
pub(crate) struct NetnsLock {
    _socket: Option<UnixListener>,
}

impl NetnsLock {
    /// Takes the network namespace of this process; fails if another one works here, and says who.
    pub(crate) fn take() -> anyhow::Result<Self> {
        Self::named(NAME)
    }

    fn named(name: &str) -> anyhow::Result<Self> {
        let address = SocketAddr::from_abstract_name(name).context("cannot name a socket")?;
        let until = Instant::now() + SOCKET_TIMEOUT;
        loop {
            match UnixListener::bind_addr(&address) {
                Ok(socket) => {
                    let _socket = Some(socket);
                    return Ok(Self { _socket });
                }
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(error) => return Err(error).context("cannot take this network namespace"),
            }
            let holder = UnixStream::connect_addr(&address).ok();
            let holder = holder.and_then(|stream| socket_peercred(&stream).ok());
            match holder {
                Some(holder) if !holder.uid.is_root() => {
                    tracing::warn!(
                        process = holder.pid.as_raw_nonzero(),
                        user = holder.uid.as_raw(),
                        "a user's program has the name of our socket: another plexus up would not be noticed"
                    );
                    return Ok(Self { _socket: None });
                }
                Some(holder) if Instant::now() > until => bail!(
                    "plexus works in this network namespace already (process {}): another one needs a \
                     network namespace of its own besides its own --root",
                    holder.pid.as_raw_nonzero()
                ),
                None if Instant::now() > until => {
                    bail!("another program has the socket @{name} of this network namespace")
                }
                _ => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_refused_until_the_first_ends() {
        let name = format!("plexus-up-test-{}", std::process::id());
        let first = NetnsLock::named(&name).unwrap();
        if rustix::process::geteuid().is_root() {
            let error = NetnsLock::named(&name).unwrap_err().to_string();
            let me = format!("process {}", std::process::id());
            assert!(error.contains(&me), "{error}");
            assert!(error.contains("network namespace of its own"), "{error}");
        }
        drop(first);
        NetnsLock::named(&name).unwrap();
    }
}
