//! The lab of the demonstration: commands are shown, run, and what they print is shown too.

use anyhow::{Context, Result, bail};
use plexus_testkit::{PLEXUS, bin};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct Lab {
    plexus: PathBuf,
    name: &'static str,
}

impl Lab {
    /// Removes what a run before this one may have left.
    pub(crate) fn new(name: &'static str) -> Result<Self> {
        let lab = Self {
            plexus: bin(PLEXUS),
            name,
        };
        lab.run(&["lab", "down"])?;
        Ok(lab)
    }

    /// Where the programs are.
    pub(crate) fn directory(&self) -> &Path {
        self.plexus.parent().unwrap_or(Path::new("."))
    }

    /// A path in the lab's own directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        Path::new("/run/plexus/lab").join(self.name).join(name)
    }

    /// The kubeconfig that gets the lab's context, and goes with it: the user's own stays as it is.
    fn kubeconfig(&self) -> PathBuf {
        std::env::temp_dir().join(format!("plexus-{}-kubeconfig", self.name))
    }

    /// `plexus …`, not started yet.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.plexus);
        command
            .args(words)
            .env("PLEXUS_LAB", self.name)
            .env("KUBECONFIG", self.kubeconfig())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command and gives what it printed.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String> {
        let line = words.join(" ");
        let output = self.command(words).output();
        let output = output.with_context(|| format!("cannot run plexus {line}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr);
            bail!("plexus {line} failed: {text}{printed}");
        }
        Ok(text)
    }

    /// Shows a command, runs it, and shows what it printed.
    pub(crate) fn show(&self, words: &[&str]) -> Result<String> {
        if crate::stopped() {
            bail!("stopped");
        }
        tell!("  $ plexus {}", words.join(" "));
        let listed = self.run(words);
        let text = match &listed {
            Ok(text) => text.clone(),
            Err(_) => String::new(),
        };
        for line in text.lines().take_while(|line| !line.is_empty()) {
            tell!("    {line}");
        }
        listed
    }

    /// Removes the lab, and looks whether that is true.
    pub(crate) fn remove(&self) -> Result<()> {
        tell!("  $ plexus lab down");
        let printed = self.run(&["lab", "down"])?;
        tell!("    {}", printed.trim());
        let names = Command::new("ip").arg("netns").output();
        let names = String::from_utf8_lossy(&names.context("cannot run ip")?.stdout).into_owned();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        let (prefix, dir) = (format!("px-{}-", self.name), self.file(""));
        let of_lab = |line: &&str| line.contains(&prefix) || line.contains(&*dir.to_string_lossy());
        let left: Vec<&str> = names.lines().chain(mounts.lines()).filter(of_lab).collect();
        if !left.is_empty() || dir.exists() {
            bail!("left behind: {}", left.join(", "));
        }
        Ok(())
    }
}
