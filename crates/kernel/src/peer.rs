//! Who is at the other end of a unix socket, by the kernel's word.

use crate::sys;
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

/// Asks the kernel (SO_PEERCRED).
pub fn peer_credentials(socket: impl AsFd) -> io::Result<Credentials> {
    let (pid, uid) = sys::peer_credentials(socket)?;
    Ok(Credentials {
        pid: u32::try_from(pid).ok().filter(|pid| *pid > 0),
        uid,
    })
}
