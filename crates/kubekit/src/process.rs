//! Processes that outlive us: started in a session of their own, logged to a file, remembered by id
//! *and* start time, so that a stranger who got the same id is never signalled.

use crate::layout::Layout;
use crate::wait;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A process that was there when we looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pid: i32,
    started: u64,
}

impl Process {
    /// The process with this id now; none if there is none, or only its remains.
    pub(crate) fn find(pid: i32) -> Option<Self> {
        let (state, started) = stat(pid)?;
        (state != 'Z' && state != 'X').then_some(Self { pid, started })
    }

    /// The one that was started under this name, if it still runs.
    pub(crate) fn recorded(layout: &Layout, name: &str) -> Option<Self> {
        let text = fs::read_to_string(layout.pid_file(name)).ok()?;
        let (pid, started) = text.trim().split_once(' ')?;
        let started: u64 = started.parse().ok()?;
        let found = Self::find(pid.parse().ok()?)?;
        (found.started == started).then_some(found)
    }

    pub(crate) fn pid(self) -> i32 {
        self.pid
    }

    pub(crate) fn alive(self) -> bool {
        Self::find(self.pid) == Some(self)
    }

    /// Signals it, if it is still there.
    pub(crate) fn signal(self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.alive()) {
            // Gone in between is what we want.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills it and waits until it is gone.
    pub(crate) fn kill(self) -> Result<()> {
        self.signal(Signal::KILL);
        self.wait_gone(Duration::from_secs(10))
    }

    /// Asks it to end, and kills it if it does not within `timeout`.
    pub(crate) fn stop(self, timeout: Duration) -> Result<()> {
        self.signal(Signal::TERM);
        self.wait_gone(timeout).or_else(|_| self.kill())
    }

    pub(crate) fn wait_gone(self, timeout: Duration) -> Result<()> {
        let what = format!("process {} gone", self.pid);
        wait::until(&what, timeout, || Ok((!self.alive()).then_some(())))
    }

    /// Its only child.
    fn child(self) -> Option<Self> {
        let path = format!("/proc/{0}/task/{0}/children", self.pid);
        let text = fs::read_to_string(path).ok()?;
        Self::find(text.split_whitespace().next()?.parse().ok()?)
    }
}

/// What is started is the process that we want, or a guide whose child it is (`nsenter` and
/// `unshare` fork where a new process-id namespace is entered).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Direct,
    Guided,
}

/// Starts `argv` under `name`; refuses if that one runs already.
pub(crate) fn start(layout: &Layout, name: &str, start: Start, argv: &[String]) -> Result<Process> {
    if Process::recorded(layout, name).is_some() {
        bail!("{name} runs already: stop it first");
    }
    let log = layout.log(name);
    let open = || -> std::io::Result<_> {
        fs::create_dir_all(parent(&log))?;
        OpenOptions::new().create(true).append(true).open(&log)
    };
    let out = open().with_context(|| format!("cannot write {}", log.display()))?;
    let err = out.try_clone().context("cannot share the log")?;
    let mut child = Command::new("setsid")
        .args(argv)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let pid = i32::try_from(child.id()).context("a process id that is none")?;
    // Reaped here if it ends before we do; else whoever adopts it does that.
    std::thread::spawn(move || child.wait());
    let process = settled(pid, start)
        .with_context(|| format!("{name} did not start; it said: {}", tail(&log)))?;
    remember(layout, name, process)?;
    Ok(process)
}

/// Records a process under a name.
pub(crate) fn remember(layout: &Layout, name: &str, process: Process) -> Result<()> {
    let path = layout.pid_file(name);
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(parent(&path))?;
        fs::write(&path, format!("{} {}\n", process.pid, process.started))
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// The last lines of a log, for an error message.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(5);
    lines[from..].join("\n")
}

fn settled(pid: i32, start: Start) -> Result<Process> {
    wait::until("the process", Duration::from_secs(30), || {
        let Some(process) = Process::find(pid) else {
            return Ok(None);
        };
        Ok(match start {
            Start::Direct => Some(process),
            Start::Guided => process.child(),
        })
    })
}

/// State and start time, after the name in parentheses that may contain anything.
fn stat(pid: i32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some((
        fields.first()?.chars().next()?,
        fields.get(19)?.parse().ok()?,
    ))
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_id_and_start() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::find(child.id() as i32).unwrap();
        assert!(process.alive());
        let other_process = Process {
            started: process.started + 1,
            ..process
        };
        other_process.signal(Signal::KILL);
        assert!(process.alive(), "a stranger with the same id was hit");
        process.kill().unwrap();
        assert!(!process.alive(), "its remains count as alive");
        child.wait().unwrap();
    }
}
