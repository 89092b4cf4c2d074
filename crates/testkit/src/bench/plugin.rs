//! One execution of a CNI plugin with a clock around it. The child is started by `posix_spawn`: nothing here asks for
//! more.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a plugin, whose environment is set, to its end; gives the time that took and its result.
///
/// # Errors
/// It cannot be run, fails, or prints no JSON.
pub fn timed(command: &mut Command, config: &Value) -> Result<(Duration, Value)> {
    let stdin = config.to_string();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let program = Path::new(command.get_program()).to_path_buf();
    let start = Instant::now();
    let (success, output) =
        execute(command, &stdin).with_context(|| format!("cannot run {}", program.display()))?;
    let took = start.elapsed();
    if !success {
        let text = String::from_utf8_lossy(&output);
        bail!("{} failed: {text}", program.display());
    }
    let result = match output.trim_ascii() {
        [] => Value::Null,
        text => serde_json::from_slice(text)
            .with_context(|| format!("{} printed no JSON", program.display()))?,
    };
    Ok((took, result))
}

fn execute(command: &mut Command, stdin: &str) -> std::io::Result<(bool, Vec<u8>)> {
    let mut child = command.spawn()?;
    let mut output = Vec::with_capacity(8192);
    let written = child
        .stdin
        .take()
        .map_or(Ok(()), |mut pipe| pipe.write_all(stdin.as_bytes()));
    if let Some(mut pipe) = child.stdout.take() {
        let _ = pipe.read_to_end(&mut output)?;
    }
    let status = child.wait()?;
    written?;
    Ok((status.success(), output))
}
