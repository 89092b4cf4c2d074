//! One execution of a plugin: given its input, read to the end, and ended if it takes too long.

use crate::process::{Process, ended_within};
use rustix::process::Signal;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a plugin left.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) success: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs a program in the calling thread's network namespace.
pub(super) fn run(
    program: &Path,
    variables: &[(&'static str, String)],
    stdin: String,
    limit: Duration,
) -> io::Result<Output> {
    let mut child = Command::new(program)
        .env_clear()
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let process = i32::try_from(child.id()).ok().and_then(Process::open);
    let (mut input, output, errors) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        // A plugin that does not read all of it is none of our business.
        scope.spawn(move || {
            input
                .take()
                .map(|mut pipe| pipe.write_all(stdin.as_bytes()))
        });
        let stdout = scope.spawn(|| text(output));
        let stderr = scope.spawn(|| text(errors));
        let fd = process.map(Process::into_fd);
        if let Some(fd) = &fd
            && !ended_within(fd, limit)
        {
            let _ = rustix::process::pidfd_send_signal(fd, Signal::KILL);
        }
        let status = child.wait()?;
        Ok(Output {
            success: status.success(),
            stdout: stdout.join().unwrap_or_default(),
            stderr: stderr.join().unwrap_or_default(),
        })
    })
}

fn text(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

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
    fn one_that_hangs_is_ended() {
        let start = Instant::now();
        let output = sh("exec sleep 60", Duration::from_millis(100));
        assert!(!output.success);
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
