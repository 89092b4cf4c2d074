//! The shim's side: one file, under a temporary name until it is whole.

use super::{Error, dir, open};
use plexus_faults::effect;
use plexus_types::{ContainerId, IfName};
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Temporary names begin with this; a list never shows them.
pub(super) const TEMPORARY: &str = ".";

/// Queues a DEL's body for the agent of that socket.
///
/// Guarantees: when it returns, the file is there with its whole content and its final name; a
/// death in between leaves at most a temporary file. Assumes that the socket's directory has a
/// parent; makes the socket's own directory if it is missing (nobody started an agent yet).
pub fn put(socket: &Path, container: &str, ifname: &str, body: &str) -> Result<(), Error> {
    let container = ContainerId::new(container).map_err(Error::Name)?;
    let ifname = IfName::new(ifname).map_err(Error::Name)?;
    let dir = dir(socket);
    effect("shim.queue.mkdir<");
    let made = make(&dir, socket.parent());
    effect("shim.queue.mkdir>");
    made.map_err(|error| Error::Open(dir.clone(), error.into()))?;
    let fd = open(&dir)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    let name = file_name(now, &container, &ifname);
    let temporary = temporary_name(now);
    let mut written = write(&fd, &temporary, &name, body);
    if written
        .as_ref()
        .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
    {
        // An agent swept it between its creation and its lock; the next time it will not.
        written = write(&fd, &temporary, &name, body);
    }
    if written.is_err() {
        // Best effort: a temporary file is never read.
        let _ = unlinkat(&fd, &temporary, AtFlags::empty());
    }
    written.map_err(|error| Error::Write(name, error))
}

/// Names sort by age.
pub(super) fn file_name(now: u128, container: &ContainerId, ifname: &IfName) -> String {
    format!("{now:020}-{container}-{ifname}.json")
}

pub(super) fn temporary_name(now: u128) -> String {
    format!("{TEMPORARY}{now:020}-{}", std::process::id())
}

fn make(dir: &Path, parent: Option<&Path>) -> Result<(), Errno> {
    let made = match rustix::fs::mkdir(dir, Mode::from_raw_mode(0o700)) {
        Err(Errno::NOENT) => {
            if let Some(parent) = parent {
                exists(rustix::fs::mkdir(parent, Mode::from_raw_mode(0o755)))?;
            }
            rustix::fs::mkdir(dir, Mode::from_raw_mode(0o700))
        }
        made => made,
    };
    exists(made)
}

fn exists(made: Result<(), Errno>) -> Result<(), Errno> {
    if made == Err(Errno::EXIST) {
        Ok(())
    } else {
        made
    }
}

fn write(
    dir: &std::os::fd::OwnedFd,
    temporary: &str,
    name: &str,
    body: &str,
) -> std::io::Result<()> {
    effect("shim.queue.write<");
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, temporary, flags, Mode::from_raw_mode(0o600))?);
    // Held until the shim ends, however it ends: tells the agent that the file is being written.
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(body.as_bytes())?;
    effect("shim.queue.write>");
    effect("shim.queue.rename<");
    renameat(dir, temporary, dir, name)?;
    effect("shim.queue.rename>");
    Ok(())
}
