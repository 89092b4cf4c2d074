//! Waiting until something happens: another thread calls ([`Wake`]), a directory changes
//! ([`DirectoryWatch`]), links or nftables change ([`Changes`](crate::Changes)), or time passes. Owns the
//! descriptors that become readable then.
//!
//! Never says what has changed: whoever is woken looks for itself. So an event is never lost to a full queue, and
//! many of them are one.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Reads at a time, so that whoever makes events without end cannot keep us.
const READS: usize = 64;

/// Something that can be waited for.
pub trait Source: Debug + Send {
    /// Readable when something has happened.
    fn fd(&self) -> BorrowedFd<'_>;
}

impl<S: Source + Sync> Source for Arc<S> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_ref().fd()
    }
}

/// Waits until something happens, or so long; gives the place of the last source that has something. What has
/// happened until then is one event, of all sources.
pub fn wait(sources: &[&dyn Source], timeout: Option<Duration>) -> io::Result<Option<usize>> {
    let fds = sources.iter().map(|source| source.fd());
    let fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let mut fds: Vec<PollFd<'_>> = fds.collect();
    // Longer than that is for ever.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Err(Errno::INTR) | Ok(0) => return Ok(None),
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    for (source, _) in sources.iter().zip(&ready).filter(|(_, ready)| **ready) {
        clear(source.fd());
    }
    Ok(ready.iter().rposition(|ready| *ready))
}

/// Takes away what is there. An overflow is an event like any other, and its error goes with it.
fn clear(fd: BorrowedFd<'_>) {
    let mut buffer = [0_u8; 4096];
    for _ in 0..READS {
        match rustix::io::read(fd, &mut buffer) {
            Ok(0) | Err(Errno::AGAIN) => return,
            Ok(_) | Err(_) => {}
        }
    }
}

/// One thread wakes another with it; also before that one sleeps.
#[derive(Debug)]
pub struct Wake(OwnedFd);

impl Wake {
    /// Nobody has called yet.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    /// Wakes whoever waits, or the next one who would.
    pub fn wake(&self) {
        // It fails only if so many calls wait already that no more can be counted.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Source for Wake {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What of a directory counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// Files that come, go or are written.
    All,
    /// Files that come.
    New,
    /// Files that come as a whole, by being renamed.
    Renamed,
}

/// Directories whose changes are events.
#[derive(Debug)]
pub struct DirectoryWatch(OwnedFd);

impl DirectoryWatch {
    /// Without directories. A machine has few of these, 128 a user mostly: it may fail.
    pub fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(
            CreateFlags::CLOEXEC | CreateFlags::NONBLOCK,
        )?))
    }

    /// Watches a directory from now on. One that is watched already is no second one, one that was made anew under
    /// the same name is: call it before each look.
    pub fn add(&self, directory: &Path, what: Watched) -> io::Result<()> {
        let renamed = WatchFlags::MOVED_TO;
        let new = renamed | WatchFlags::CREATE;
        let all = new | WatchFlags::MOVED_FROM | WatchFlags::DELETE | WatchFlags::CLOSE_WRITE;
        let flags = match what {
            Watched::All => all,
            Watched::New => new,
            Watched::Renamed => renamed,
        };
        let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let flags = flags | itself | WatchFlags::ONLYDIR;
        inotify::add_watch(&self.0, directory, flags)?;
        Ok(())
    }
}

impl Source for DirectoryWatch {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough to be noticed if it is waited for in vain.
    const LONG: Option<Duration> = Some(Duration::from_secs(60));
    const NOT: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn a_call_before_the_sleep_counts_and_many_are_one() {
        let (first, second) = (Wake::new().unwrap(), Wake::new().unwrap());
        let both: [&dyn Source; 2] = [&first, &second];
        assert_eq!(wait(&both, NOT).unwrap(), None);
        second.wake();
        second.wake();
        assert_eq!(wait(&both, LONG).unwrap(), Some(1));
        assert_eq!(wait(&both, NOT).unwrap(), None);
        // Whoever tells whether he was only called must not miss what happened besides.
        first.wake();
        second.wake();
        assert_eq!(wait(&both, NOT).unwrap(), Some(1));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(&[&first], LONG).unwrap());
            first.wake();
            assert_eq!(waiting.join().unwrap(), Some(0));
        });
    }

    #[test]
    fn files_that_come_go_and_are_written() {
        let name = format!("plexus-events-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        let watch = DirectoryWatch::new().unwrap();
        let missing = watch.add(&directory, Watched::All).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        std::fs::create_dir_all(&directory).unwrap();
        let (file, other) = (directory.join("a"), directory.join("b"));
        let happened = || wait(&[&watch], NOT).unwrap().is_some();

        watch.add(&directory, Watched::New).unwrap();
        std::fs::write(&file, "1").unwrap();
        assert!(happened() && !happened());
        std::fs::write(&file, "2").unwrap();
        assert!(!happened(), "it was there already");
        watch.add(&directory, Watched::Renamed).unwrap();
        std::fs::write(&other, "2").unwrap();
        assert!(!happened(), "it may not be whole yet");
        std::fs::rename(&other, &file).unwrap();
        assert!(happened() && !happened());

        watch.add(&directory, Watched::All).unwrap();
        std::fs::write(&file, "3").unwrap();
        assert!(happened() && !happened());
        std::fs::rename(&file, &other).unwrap();
        assert!(happened() && !happened());
        std::fs::remove_file(&other).unwrap();
        assert!(happened() && !happened());
        std::fs::remove_dir(&directory).unwrap();
        assert!(happened());

        std::fs::create_dir_all(&directory).unwrap();
        watch.add(&directory, Watched::All).unwrap();
        let _ = wait(&[&watch], NOT).unwrap();
        std::fs::write(&file, "4").unwrap();
        assert!(happened(), "the new directory is watched");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
