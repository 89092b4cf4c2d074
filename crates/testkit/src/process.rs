//! Processes with a bound: started inside a namespace, waited for, killed by their own id.

use crate::NetNs;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Runs a program in the test's own namespace and gives what it printed; panics if it fails.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    checked(&format!("{program} {}", arguments.join(" ")), output)
}

/// Runs a program in the test's own namespace; whether it succeeds does not matter.
pub(crate) fn try_run(program: &str, arguments: &[&str]) {
    let ran = Command::new(program).args(arguments).output();
    drop(ran.unwrap_or_else(|error| panic!("cannot run {program}: {error}")));
}

/// The text of a program that must have succeeded.
pub(crate) fn checked(what: &str, output: Output) -> String {
    assert!(
        output.status.success(),
        "{what}: {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A process that runs in a namespace, with its output collected by a thread.
#[derive(Debug)]
pub struct Running {
    what: String,
    pid: Pid,
    done: Receiver<Output>,
}

impl Running {
    /// Starts it: a child inherits the namespace of the thread that makes it.
    pub fn start(ns: &NetNs, what: &str, mut command: Command, stdin: Vec<u8>) -> Self {
        let (send_pid, pid) = channel();
        let (send, done) = channel();
        let ns = ns.handle();
        std::thread::spawn(move || {
            NetNs::set(&ns);
            let started = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            let mut child = match started {
                Ok(child) => child,
                Err(error) => panic!("cannot run {command:?}: {error}"),
            };
            let _ = send_pid.send(pid_of(&child));
            // A child that does not read all of it is none of our business.
            let _ = child.stdin.take().map(|mut pipe| pipe.write_all(&stdin));
            if let Ok(output) = child.wait_with_output() {
                let _ = send.send(output);
            }
        });
        let pid = pid.recv().expect("the process starts");
        Self {
            what: what.to_owned(),
            pid,
            done,
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// SIGKILL.
    pub fn kill(&self) {
        let _ = kill_process(self.pid, Signal::KILL);
    }

    /// What it printed, if it ends within the limit.
    pub fn ended_within(&self, limit: Duration) -> Option<Output> {
        match self.done.recv_timeout(limit) {
            Ok(output) => Some(output),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("{}: lost", self.what),
        }
    }

    /// What it printed; panics, after killing it, if it does not end in time.
    pub fn wait(self, limit: Duration) -> Output {
        self.ended_within(limit).unwrap_or_else(|| {
            self.kill();
            panic!("{}: not finished after {limit:?}", self.what)
        })
    }
}

/// Repeats a question until the answer is yes, or until the time is up.
pub fn within(limit: Duration, mut question: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if question() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Longer than anything healthy takes on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// As [`within`] [`TIMEOUT`], and panics with `what` if it never becomes true.
#[track_caller]
pub fn eventually(what: &str, question: impl FnMut() -> bool) {
    assert!(within(TIMEOUT, question), "not within {TIMEOUT:?}: {what}");
}

pub(crate) fn pid_of(child: &Child) -> Pid {
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .expect("a process id")
}
