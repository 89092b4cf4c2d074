//! The agent's state directory: there, writable, with room, and with a journal that is one.

use super::{Check, Subject};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Less room than this and writes will soon fail.
const MIN_FREE_BYTES: u64 = 64 << 20;
/// What every SQLite file begins with.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

pub(super) fn check(directory: &Path) -> Vec<Check> {
    let display = directory.display();
    match fs::metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return vec![Check::warn(
                Subject::StateDirectory,
                format!("{display} is not there: no agent has run here"),
                "start one: plexus agent, or plexus up",
            )];
        }
        Err(error) => {
            return vec![Check::fail(
                Subject::StateDirectory,
                format!("cannot look at {display}: {error}"),
                "run as root; is its disk mounted?",
            )];
        }
        Ok(found) if !found.is_dir() => {
            return vec![Check::fail(
                Subject::StateDirectory,
                format!("{display} is not a directory"),
                "move it away, or name another with --state-dir",
            )];
        }
        Ok(_) => {}
    }
    let found = rustix::fs::access(directory, rustix::fs::Access::WRITE_OK);
    let mut checks = vec![writable(directory, found)];
    if let Ok(found) = rustix::fs::statvfs(directory) {
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        checks.push(room(directory, free));
    }
    checks.push(journal(&directory.join("journal.db")));
    checks
}

/// Whether its file system takes writes: as root the mode says nothing.
pub(super) fn writable(directory: &Path, found: rustix::io::Result<()>) -> Check {
    let name = Subject::StateDirectory;
    let display = directory.display();
    match found {
        Ok(()) => Check::pass(name, format!("{display} can be written")),
        Err(error) => Check::fail(
            name,
            format!("{display} cannot be written: {error}"),
            "no pod can be attached without a journal: mount it writable",
        ),
    }
}

pub(super) fn room(directory: &Path, free: u64) -> Check {
    let name = Subject::StateRoom;
    let (display, mib) = (directory.display(), free >> 20);
    match free {
        0 => Check::fail(
            name,
            format!("the disk of {display} is full"),
            "free some: no pod can be attached, removing still works",
        ),
        free if free < MIN_FREE_BYTES => Check::warn(
            name,
            format!("the disk of {display} has {mib} MiB left"),
            "free some before it is full: then no pod can be attached",
        ),
        _ => Check::pass(name, format!("{mib} MiB left")),
    }
}

/// Whether the journal is a database at all; the agent says more when it opens it.
pub(super) fn journal(path: &Path) -> Check {
    let name = Subject::Journal;
    let display = path.display();
    let next = "move journal.db* away and start the agent: interfaces with our mark are adopted";
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Check::warn(
                name,
                format!("{display} is not there: no agent has run here"),
                "start one: plexus agent, or plexus up",
            );
        }
        Err(error) => {
            return Check::fail(
                name,
                format!("cannot read {display}: {error}"),
                "run as root",
            );
        }
    };
    let mut start = [0; 16];
    match file.read_exact(&mut start) {
        Ok(()) if start == *MAGIC => Check::pass(name, format!("{display} is there")),
        Ok(()) => Check::fail(
            name,
            format!("{display} is damaged: it is no database"),
            next,
        ),
        Err(_) => Check::fail(name, format!("{display} is damaged: it is cut off"), next),
    }
}
