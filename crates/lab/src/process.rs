//! The lab's processes, found by what the kernel shows: each carries the lab and its part in its environment,
//! from before it runs until it ends. So there is no record that could be wrong or lost, whoever was killed
//! when.
//!
//! Signals go through a descriptor of the process: a stranger who got the same number is never hit.

use crate::error::LabError;
use crate::layout::Layout;
use crate::part::Part;
use plexus_kernel::named;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The variable by which a process is known.
pub(crate) const MARK: &str = "PLEXUS_LAB_PART";

/// Its value for a part.
pub(crate) fn mark(layout: &Layout, part: Part) -> String {
    format!("{} {part}", layout.dir().display())
}

/// A process that was there when we looked, held so that its number means nobody else.
#[derive(Debug)]
pub(crate) struct Process {
    pid: i32,
    fd: OwnedFd,
}

impl Process {
    /// The process that is this part of the lab, if it runs.
    pub(crate) fn of_part(layout: &Layout, part: Part) -> Option<Self> {
        let wanted = format!("{MARK}={}", mark(layout, part));
        let mut found = all().filter_map(|pid| Self::if_is(pid, |entry| entry == wanted));
        found.find(|process| process.runs_verb(part.verb()))
    }

    /// Every process that carries the mark of the lab, whatever it is.
    pub(crate) fn of_lab(layout: &Layout) -> Vec<Self> {
        let wanted = format!("{MARK}={} ", layout.dir().display());
        all()
            .filter_map(|pid| Self::if_is(pid, |entry| entry.starts_with(&wanted)))
            .collect()
    }

    /// Every process that is in one of these network namespaces, but ourselves and those that wait for us.
    pub(crate) fn in_namespaces(names: &[String]) -> Vec<Self> {
        let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        let wanted: BTreeSet<_> = names
            .iter()
            .filter_map(|name| identity(&named::path(name)).ok())
            .collect();
        let ours = ancestors();
        all()
            .filter(|pid| !ours.contains(pid))
            .filter_map(Self::open)
            .filter(|process| {
                let path = format!("/proc/{}/ns/net", process.pid);
                identity(Path::new(&path)).is_ok_and(|found| wanted.contains(&found))
            })
            .collect()
    }

    /// The process with this number now; none if there is none, or only its remains.
    pub(crate) fn open(pid: i32) -> Option<Self> {
        let fd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let process = Self { pid, fd };
        (!process.has_ended(Duration::ZERO)).then_some(process)
    }

    /// Its number.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Signals it; one that has ended does not mind.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.fd, signal);
    }

    /// Whether it has ended, or does so within the limit.
    pub(crate) fn has_ended(&self, limit: Duration) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        rustix::event::poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready > 0)
    }

    /// Kills it and waits until it is gone.
    pub(crate) fn kill(&self) -> Result<(), LabError> {
        self.signal(Signal::KILL);
        let limit = Duration::from_secs(10);
        if self.has_ended(limit) {
            return Ok(());
        }
        Err(LabError::NotYet {
            what: format!("process {} to end", self.pid),
            limit,
            last: "it was sent SIGKILL".to_owned(),
        })
    }

    /// Held first and looked at then: what is read is of the process that is held.
    fn if_is(pid: i32, wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let environment = |pid: i32| -> io::Result<bool> {
            let bytes = fs::read(format!("/proc/{pid}/environ"))?;
            let mut entries = bytes.split(|byte| *byte == 0);
            Ok(entries.any(|entry| std::str::from_utf8(entry).is_ok_and(&wanted)))
        };
        if !environment(pid).ok()? {
            return None;
        }
        let process = Self::open(pid)?;
        environment(pid).ok()?.then_some(process)
    }

    /// What a part starts (a plugin that an agent executes) may carry its mark too.
    fn runs_verb(&self, verb: &str) -> bool {
        let words = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(verb.as_bytes())
    }
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
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
    use crate::files::tests::Scratch;
    use std::process::{Child, Command};

    fn sleeper(layout: &Layout, part: Part, verb: &str) -> Child {
        // `sleep 60 …` would refuse a word; the shell takes any and replaces itself.
        Command::new("sh")
            .args([verb, "60"])
            .env(MARK, mark(layout, part))
            .current_dir(layout.root())
            .spawn()
            .unwrap()
    }

    #[test]
    fn a_part_is_found_by_its_mark_and_its_verb() {
        let scratch = Scratch::new();
        // The script's name is the first argument, as a verb is.
        for verb in ["server", "agent", "plugin"] {
            fs::write(scratch.0.join(verb), "sleep 60; exit").unwrap();
        }
        let layout = Layout::in_root(&scratch.0, "x".parse().unwrap());
        let other = Layout::in_root(&scratch.0, "y".parse().unwrap());
        let agent = Part::Agent("n1".parse().unwrap());
        let mut children = [
            sleeper(&layout, Part::Server, "server"),
            sleeper(&layout, agent, "plugin"),
            sleeper(&other, agent, "agent"),
        ];
        let eventually = |found: &dyn Fn() -> bool| {
            (0..200).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                found()
            })
        };
        assert!(eventually(
            &|| Process::of_part(&layout, Part::Server).is_some()
        ));
        let server = Process::of_part(&layout, Part::Server).unwrap();
        assert_eq!(server.pid(), children[0].id() as i32);
        assert!(Process::of_part(&layout, agent).is_none(), "only a plugin");
        // Each shell, and the `sleep` that it started.
        assert!(eventually(&|| Process::of_lab(&layout).len() == 4));
        assert!(eventually(&|| Process::of_lab(&other).len() == 2));
        for process in Process::of_lab(&layout) {
            process.kill().unwrap();
        }
        assert!(Process::of_part(&layout, Part::Server).is_none());
        assert!(children[2].try_wait().unwrap().is_none(), "another lab's");
        for process in Process::of_lab(&other) {
            process.kill().unwrap();
        }
        for child in &mut children {
            child.wait().unwrap();
        }
    }

    #[test]
    fn we_are_among_our_ancestors() {
        let ours = ancestors();
        assert!(ours.contains(&(std::process::id() as i32)));
        assert!(ours.contains(&1));
        assert!(Process::open(i32::MAX).is_none());
    }
}
