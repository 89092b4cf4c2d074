//! The embedded API beside a real one: starts `plexus server`, whose kubeconfig goes to suites that take any.

use crate::workspace::Workspace;
use crate::{kube_tools, run};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Of each kind, for the comparison with a real server: about a minute.
const SEQUENCES: &str = "60";
/// Longer than a start takes on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// kubectl, command by command; `make kube-tools` has built it.
pub(crate) fn kubectl(workspace: &Workspace) -> Result<()> {
    let program = kube_tools::installed(workspace, "kubernetes")?.join("kubectl");
    let mut suite = run::suite(workspace, &["kubectl"])?;
    suite.env("PLEXUS_KUBECTL", program);
    run::logged(workspace, &mut suite)
}

/// Random writes to the embedded API and to a real one that has our definitions.
pub(crate) fn differential(workspace: &Workspace, real: &Path) -> Result<()> {
    let server = Embedded::start(workspace)?;
    let mut suite = run::suite(workspace, &["apply_differential"])?;
    suite
        .args(["--", "--nocapture"])
        .env("PLEXUS_TEST_KUBECONFIG", real)
        .env("PLEXUS_OTHER_KUBECONFIG", server.kubeconfig())
        .env("PLEXUS_TEST_SEQUENCES", SEQUENCES);
    run::logged(workspace, &mut suite)
}

/// `plexus server` with a directory of its own; both go with this.
pub(crate) struct Embedded {
    process: Child,
    dir: PathBuf,
}

impl Embedded {
    /// The one that tests use, which must be built.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("plexus-api-{}", std::process::id()));
        let program = workspace.target.join("debug/plexus");
        let process = Command::new(&program)
            .args(["server", "--listen", "127.0.0.1:0", "--dir"])
            .arg(dir.join("server"))
            .arg("--unix")
            .arg(dir.join("socket"))
            .spawn()
            .with_context(|| format!("cannot start {}: is it built?", program.display()))?;
        let mut server = Self { process, dir };
        server.wait()?;
        Ok(server)
    }

    /// Written when the server answers.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("server/kubeconfig")
    }

    fn wait(&mut self) -> Result<()> {
        let end = Instant::now() + START_TIMEOUT;
        while !is_written(&self.kubeconfig()) {
            if let Some(status) = self.process.try_wait()? {
                bail!("`plexus server` ended with {status}; its own message is above");
            }
            if Instant::now() > end {
                bail!("`plexus server` does not answer after {START_TIMEOUT:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn is_written(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|about| about.len() > 0)
}
