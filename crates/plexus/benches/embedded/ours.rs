//! `plexus server` as a process, as users start it.

use crate::directory;
use anyhow::{Context, Result, bail};
use plexus_testkit::{PLEXUS, bin};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A running one; it and what it wrote go with this.
pub(crate) struct Ours {
    process: Child,
    dir: PathBuf,
}

impl Ours {
    pub(crate) fn start() -> Result<Self> {
        let dir = directory("ours")?;
        let process = Command::new(bin(PLEXUS))
            .args(["server", "--listen", "127.0.0.1:0", "--dir"])
            .arg(dir.join("server"))
            .arg("--unix")
            .arg(dir.join("socket"))
            .spawn()
            .context("cannot start plexus server")?;
        let mut server = Self { process, dir };
        let end = Instant::now() + Duration::from_secs(60);
        while !std::fs::metadata(server.kubeconfig()).is_ok_and(|file| file.len() > 0) {
            if server.process.try_wait()?.is_some() || Instant::now() > end {
                bail!("plexus server does not answer; its own message is above");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Written when it answers.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("server/kubeconfig")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
