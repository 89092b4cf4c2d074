//! Who lives in network namespaces: the processes whose first thread is there, each held so that its number means
//! nobody else. Owns the search; ends nobody by itself.
//!
//! Threads may look into namespaces of others for a moment. Our programs do that beside their first thread, so
//! that a process is where it belongs at every look.

use crate::named;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// A process that was there when we looked. Signals go through its descriptor: a stranger who got the same number
/// is never hit.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    fd: OwnedFd,
}

impl Process {
    /// The process with this number now; none if there is none, or only its remains.
    pub fn open(pid: i32) -> Option<Self> {
        let fd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let process = Self { pid, fd };
        (!process.has_ended(Duration::ZERO)).then_some(process)
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// SIGKILL; one that has ended does not mind.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.fd, Signal::KILL);
    }

    /// Whether it has ended, or does so within the limit.
    pub fn has_ended(&self, limit: Duration) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let limit = Timespec::try_from(limit).ok();
        rustix::event::poll(&mut fds, limit.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// The network namespace of its first thread.
    fn namespace(&self) -> Option<(u64, u64)> {
        identity(Path::new(&format!("/proc/{}/ns/net", self.pid))).ok()
    }
}

/// Everybody who lives in one of the namespaces with these names, but ourselves and those that wait for us.
pub fn residents(names: &[String]) -> Vec<Process> {
    let wanted = names
        .iter()
        .filter_map(|name| identity(&named::path(name)).ok());
    let wanted: BTreeSet<_> = wanted.collect();
    let ours = ancestors();
    let others = all_processes().filter(|pid| !ours.contains(pid));
    let lives_there = |process: &Process| {
        process
            .namespace()
            .is_some_and(|place| wanted.contains(&place))
    };
    others
        .filter_map(Process::open)
        .filter(lives_there)
        .collect()
}

/// The numbers of all processes.
pub fn all_processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The same for every path to a namespace.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Ourselves, our parent, its parent, … up to the first process.
fn ancestors() -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut next = Some(rustix::process::getpid().as_raw_nonzero().get());
    while let Some(pid) = next
        && pid > 0
        && found.insert(pid)
    {
        next = parent(pid);
    }
    found
}

/// After the name in parentheses, which may contain anything: state, parent.
fn parent(pid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Instant;

    #[test]
    fn whoever_lives_there_is_found_and_nobody_else() {
        named::prepare().unwrap();
        let names = ["a", "b"].map(|part| format!("px-live{}{part}", std::process::id()));
        for name in &names {
            named::ensure(name).unwrap();
        }
        let mut children = names.each_ref().map(|name| {
            let place = format!("--net={}", named::path(name).display());
            let mut command = Command::new("nsenter");
            command.args([&place, "sleep", "60"]).spawn().unwrap()
        });
        let pids = |names: &[String]| -> Vec<i32> {
            let mut pids: Vec<i32> = residents(names).iter().map(Process::pid).collect();
            pids.sort_unstable();
            pids
        };
        let expected: Vec<i32> = children.iter().map(|child| child.id() as i32).collect();
        let mut both = expected.clone();
        both.sort_unstable();
        let start = Instant::now();
        while pids(&names) != both {
            assert!(start.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(pids(&names[..1]), expected[..1]);
        assert_eq!(pids(&[]), Vec::<i32>::new());
        for process in residents(&names) {
            process.kill();
            assert!(process.has_ended(Duration::from_secs(30)));
        }
        assert_eq!(pids(&names), Vec::<i32>::new(), "remains live nowhere");
        for child in &mut children {
            child.wait().unwrap();
        }
        for name in &names {
            named::remove(name).unwrap();
        }
    }

    #[test]
    fn we_are_among_our_ancestors() {
        let ours = ancestors();
        assert!(ours.contains(&(std::process::id() as i32)));
        let parent = std::os::unix::process::parent_id() as i32;
        // That of who was put into a container from outside cannot be seen.
        assert!(parent == 0 || ours.contains(&parent));
        assert!(Process::open(i32::MAX).is_none());
    }
}
