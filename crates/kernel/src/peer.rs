//! Who is at the other end of a unix socket, by the kernel's word.

use crate::sys;
use plexus_types::NetnsCookie;
use std::io;
use std::os::fd::AsFd;

/// The process and user that connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// None for a process outside of our pid namespace.
    pub pid: Option<u32>,
    /// Its user.
    pub uid: u32,
}

/// The network namespace that a socket was made in. For the socket that `accept` gave, that is the
/// caller's: the kernel makes it when, and where, the caller connects.
pub fn netns_of(socket: impl AsFd) -> io::Result<NetnsCookie> {
    sys::get_option_u64(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE).map(NetnsCookie)
}

/// Asks the kernel (SO_PEERCRED).
pub fn peer_credentials(socket: impl AsFd) -> io::Result<Credentials> {
    let (pid, uid) = sys::peer_credentials(socket)?;
    Ok(Credentials {
        pid: u32::try_from(pid).ok().filter(|pid| *pid > 0),
        uid,
    })
}
