//! One execution of a CNI plugin, as a runtime makes it, with a clock around it.

use anyhow::{Context, Result};
use plexus_testkit::bench::timed;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

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
        let mut command = Command::new(self.program);
        command
            .env_clear()
            .env("CNI_COMMAND", self.verb)
            .env("CNI_CONTAINERID", self.container)
            .env("CNI_NETNS", self.netns)
            .env("CNI_IFNAME", self.ifname)
            .env("CNI_PATH", self.program.parent().unwrap_or(Path::new("/")))
            .env("PLEXUS_AGENT_SOCKET", self.socket);
        timed(&mut command, config).with_context(|| format!("{} failed", self.verb))
    }
}
