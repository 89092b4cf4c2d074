//! Runs a program to its end and gives what it printed; a failure names the program and what it
//! said.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs `argv`; fails when it does. Gives its standard output.
pub(crate) fn run<S: AsRef<OsStr>>(argv: &[S]) -> Result<String> {
    checked(&line_of(argv), output(argv, "")?)
}

/// Runs `argv` with `input` on its standard input; fails when it does.
pub(crate) fn feed<S: AsRef<OsStr>>(argv: &[S], input: &str) -> Result<String> {
    checked(&line_of(argv), output(argv, input)?)
}

/// Runs `argv`, whatever comes of it. An error only if it cannot be started.
pub(crate) fn output<S: AsRef<OsStr>>(argv: &[S], input: &str) -> Result<Output> {
    let line = line_of(argv);
    let (program, arguments) = argv.split_first().context("no program to run")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`: is it installed?"))?;
    let mut pipe = child.stdin.take().context("no pipe to the program")?;
    let text = input.to_owned();
    // On a thread of its own: a program that prints a lot before it reads would wait for us.
    let writer = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
    let output = child
        .wait_with_output()
        .with_context(|| format!("cannot wait for `{line}`"))?;
    // Not reading its input is the program's right.
    let _ = writer.join();
    Ok(output)
}

/// Whether `argv` runs and succeeds.
pub(crate) fn succeeds<S: AsRef<OsStr>>(argv: &[S]) -> bool {
    output(argv, "").is_ok_and(|output| output.status.success())
}

fn checked(line: &str, output: Output) -> Result<String> {
    if !output.status.success() {
        bail!(
            "`{line}` failed with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn line_of<S: AsRef<OsStr>>(argv: &[S]) -> String {
    let words: Vec<_> = argv
        .iter()
        .map(|word| word.as_ref().to_string_lossy())
        .collect();
    words.join(" ")
}
