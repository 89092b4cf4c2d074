//! One execution of a CNI plugin, as a runtime makes it, with a clock around it. The child is
//! started by `posix_spawn`: nothing here asks for more.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a plugin is told through its environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) program: &'a Path,
    pub(crate) verb: &'a str,
    pub(crate) container: &'a str,
    pub(crate) netns: &'a Path,
    pub(crate) ifname: &'a str,
    /// The agent's; the reference plugins do not look at it.
    pub(crate) socket: &'a Path,
}

impl Call<'_> {
    /// Runs it to its end, and gives the time that took and its result.
    pub(crate) fn run(&self, config: &Value) -> Result<(Duration, Value)> {
        let stdin = config.to_string();
        let mut command = Command::new(self.program);
        command
            .env_clear()
            .env("CNI_COMMAND", self.verb)
            .env("CNI_CONTAINERID", self.container)
            .env("CNI_NETNS", self.netns)
            .env("CNI_IFNAME", self.ifname)
            .env("CNI_PATH", self.program.parent().unwrap_or(Path::new("/")))
            .env("PLEXUS_AGENT_SOCKET", self.socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let start = Instant::now();
        let (success, output) = execute(&mut command, &stdin)
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let took = start.elapsed();
        if !success {
            let text = String::from_utf8_lossy(&output);
            bail!("{} of {} failed: {text}", self.verb, self.program.display());
        }
        let result = match output.trim_ascii() {
            [] => Value::Null,
            text => serde_json::from_slice(text)
                .with_context(|| format!("{} printed no JSON", self.program.display()))?,
        };
        Ok((took, result))
    }
}

fn execute(command: &mut Command, stdin: &str) -> std::io::Result<(bool, Vec<u8>)> {
    let mut child = command.spawn()?;
    let mut output = Vec::with_capacity(4096);
    let written = child
        .stdin
        .take()
        .map_or(Ok(()), |mut pipe| pipe.write_all(stdin.as_bytes()));
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut output)?;
    }
    let status = child.wait()?;
    written?;
    Ok((status.success(), output))
}
