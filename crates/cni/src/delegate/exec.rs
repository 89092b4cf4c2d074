//! One process: started in a group of its own, followed until it ends, never longer than it may.
//!
//! Follows the process itself, not its pipes: a plugin that leaves a child behind with its standard
//! output open does not hold us up.

use super::{Cause, NOT_EXECUTED, Root, root};
use plexus_faults::effect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Standard error is for a message, not for reading.
const MAX_STDERR: usize = 4096;
/// A killed process that is not gone by then hangs in the kernel; somebody else waits for it.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// What to run.
pub(super) struct Job<'a> {
    pub(super) path: &'a Path,
    /// Where that path is, if not in our own root.
    pub(super) root: Option<&'a Root>,
    /// All of the environment.
    pub(super) env: Vec<(&'static str, String)>,
    pub(super) stdin: File,
    pub(super) limit: Duration,
    pub(super) max_output: usize,
    /// Names of the effect, before and after.
    pub(super) effect: (&'static str, &'static str),
}

/// What came of it.
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl Job<'_> {
    /// Runs it to its end.
    pub(super) fn run(self) -> Result<Output, Cause> {
        let (limit, max_output) = (self.limit, self.max_output);
        let (before, after) = self.effect;
        effect(before);
        let (path, in_root) = (self.path, self.root.is_some());
        let output = self
            .start()
            .and_then(|process| process.follow(limit, max_output));
        effect(after);
        let output = output?;
        if in_root
            && output.status.code() == Some(NOT_EXECUTED.into())
            && let Some(reason) = root::reason(&output.stderr)
        {
            return Err(Cause::Spawn(path.to_owned(), io::Error::other(reason)));
        }
        Ok(output)
    }

    fn start(self) -> Result<Process, Cause> {
        let mut command = match self.root {
            Some(root) => root.command(self.path),
            None => Command::new(self.path),
        };
        command.env_clear().envs(self.env).process_group(0);
        command
            .stdin(Stdio::from(self.stdin))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = unless_busy(|| command.spawn())
            .map_err(|error| Cause::Spawn(self.path.to_owned(), error))?;
        // The command still holds standard input, and its lock with it.
        drop(command);
        Process::new(child).map_err(Cause::Watch)
    }
}

/// Tries again while somebody is just writing the file (an upgrade): it cannot be executed yet, ETXTBSY.
pub(super) fn unless_busy<T>(mut execute: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..20 {
        match execute() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            executed => return executed,
        }
    }
    execute()
}

/// A running child; killed with its group, and reaped, when it goes out of scope.
struct Process {
    child: Option<Child>,
    group: Option<Pid>,
    pidfd: Option<OwnedFd>,
    stdout: Pipe,
    stderr: Pipe,
}

impl Process {
    fn new(mut child: Child) -> io::Result<Self> {
        let stdout = Pipe::new(child.stdout.take().map(OwnedFd::from));
        let stderr = Pipe::new(child.stderr.take().map(OwnedFd::from));
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // From here on Drop takes care of the child.
        let mut process = Self {
            child: Some(child),
            group,
            pidfd: None,
            stdout,
            stderr,
        };
        let group = group.ok_or(Errno::SRCH)?;
        process.pidfd = Some(pidfd_open(group, PidfdFlags::empty())?);
        process.stdout.unblock()?;
        process.stderr.unblock()?;
        Ok(process)
    }

    fn follow(mut self, limit: Duration, max_output: usize) -> Result<Output, Cause> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let stderr = super::error::excerpt(&self.stderr.bytes);
                return Err(Cause::TimedOut { limit, stderr });
            }
            let ended = self.wait(left).map_err(Cause::Watch)?;
            self.stdout
                .read(max_output + 1, ended)
                .map_err(Cause::Watch)?;
            self.stderr.read(MAX_STDERR, ended).map_err(Cause::Watch)?;
            if self.stdout.bytes.len() > max_output {
                return Err(Cause::TooMuch(max_output));
            }
            if ended && let Some(mut child) = self.child.take() {
                let status = child.wait().map_err(Cause::Watch)?;
                let stdout = std::mem::take(&mut self.stdout.bytes);
                let stderr = std::mem::take(&mut self.stderr.bytes);
                return Ok(Output {
                    status,
                    stdout,
                    stderr,
                });
            }
        }
    }

    /// Waits for output or for the end; says whether it has ended.
    fn wait(&self, left: Duration) -> io::Result<bool> {
        let Some(pidfd) = &self.pidfd else {
            return Err(Errno::BADF.into());
        };
        let mut fds = vec![PollFd::new(pidfd, PollFlags::IN)];
        for pipe in [&self.stdout, &self.stderr] {
            fds.extend(
                pipe.file
                    .as_ref()
                    .map(|file| PollFd::new(file, PollFlags::IN)),
            );
        }
        match poll(&mut fds, Some(&timespec(left))) {
            Ok(_) => Ok(fds.first().is_some_and(|fd| !fd.revents().is_empty())),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn kill(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        // It may have ended in between; what cannot be killed is waited for below all the same.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.kill();
        if let Some(pidfd) = &self.pidfd {
            let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
            if matches!(poll(&mut fds, Some(&timespec(KILL_TIMEOUT))), Ok(0)) {
                std::thread::spawn(move || child.wait());
                return;
            }
        }
        let _ = child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Our end of a pipe, and what we keep of what came out.
struct Pipe {
    file: Option<File>,
    bytes: Vec<u8>,
}

impl Pipe {
    fn new(fd: Option<OwnedFd>) -> Self {
        Self {
            file: fd.map(File::from),
            bytes: Vec::new(),
        }
    }

    fn unblock(&self) -> io::Result<()> {
        if let Some(file) = &self.file {
            let flags = fcntl_getfl(file.as_fd())?;
            fcntl_setfl(file.as_fd(), flags | OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    /// Reads what is there: one piece of it, or `all` of it (at most a pipe's buffer, since the
    /// writer is dead; a bound, in case its children are not). Keeps `most` bytes.
    fn read(&mut self, most: usize, all: bool) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        for _ in 0..if all { 128 } else { 1 } {
            let Some(file) = &mut self.file else {
                return Ok(());
            };
            match file.read(&mut chunk) {
                Ok(0) => self.file = None,
                Ok(read) => {
                    let room = most.saturating_sub(self.bytes.len()).min(read);
                    self.bytes
                        .extend_from_slice(chunk.get(..room).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
