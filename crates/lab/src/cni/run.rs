//! One execution of a plugin: given its input, read to the end, and ended if it takes too long.

use crate::process::Process;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// What a plugin left.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// How long the output of one that was ended may take.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a program in the calling thread's network namespace. At the limit it is ended, with whatever it has
/// started in its process group; whoever left the group and holds its pipes is not waited for.
pub(super) fn run(
    program: &Path,
    variables: &[(&'static str, String)],
    stdin: String,
    limit: Duration,
) -> io::Result<Output> {
    let deadline = Instant::now() + limit;
    let mut child = Command::new(program)
        .env_clear()
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // A plugin that does not read all of it is none of our business.
        std::thread::spawn(move || pipe.write_all(stdin.as_bytes()));
    }
    let (stdout, stderr) = (text(child.stdout.take()), text(child.stderr.take()));
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Its number is nobody else's before `wait`.
    let end_group = || group.map(|group| kill_process_group(group, Signal::KILL));
    let process = i32::try_from(child.id()).ok().and_then(Process::open);
    if process.is_some_and(|process| !process.has_ended(limit)) {
        end_group();
    }
    let read = |pipe: Receiver<String>| {
        let left = deadline.saturating_duration_since(Instant::now());
        pipe.recv_timeout(left.max(OUTPUT_TIMEOUT)).or_else(|_| {
            end_group();
            pipe.recv_timeout(OUTPUT_TIMEOUT)
        })
    };
    let (stdout, stderr) = (read(stdout), read(stderr));
    let status = child.wait()?;
    Ok(Output {
        success: status.success(),
        stdout: stdout.unwrap_or_default(),
        stderr: stderr.unwrap_or_default(),
    })
}

/// Reads a pipe to its end, on a thread of its own.
fn text(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        send.send(String::from_utf8_lossy(&bytes).into_owned())
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Output {
        use std::os::unix::fs::PermissionsExt;
        let scratch = crate::files::tests::Scratch::new();
        let path = scratch.0.join("plugin");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let variables = [("CNI_COMMAND", "ADD".to_owned())];
        let input = "x".repeat(300_000);
        // Another thread's child may have the file open for writing between fork and exec.
        loop {
            match run(&path, &variables, input.clone(), limit) {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                other => return other.unwrap(),
            }
        }
    }

    #[test]
    fn input_and_output_of_any_size() {
        let output = sh(
            "echo $CNI_COMMAND; cat; echo no >&2; exit 3",
            Duration::from_secs(10),
        );
        assert!(!output.success);
        assert_eq!(output.stdout.len(), 4 + 300_000);
        assert_eq!(output.stderr, "no\n");
        assert!(
            sh("exit 0", Duration::from_secs(10)).success,
            "reads nothing"
        );
    }

    #[test]
    fn one_that_hangs_is_ended_with_whoever_holds_its_pipes() {
        // By itself, with a child that has its pipes, and with one that has left the group.
        for script in ["exec sleep 60", "sleep 60", "setsid sleep 20 & sleep 60"] {
            let start = Instant::now();
            let output = sh(script, Duration::from_millis(100));
            assert!(!output.success, "{script}");
            assert!(start.elapsed() < Duration::from_secs(15), "{script}");
        }
        let output = sh("echo {}; sleep 60 &", Duration::from_millis(100));
        assert_eq!((output.success, output.stdout.as_str()), (true, "{}\n"));
    }
}
