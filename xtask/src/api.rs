//! The embedded API beside a real one: starts `plexus server` and gives its kubeconfig to suites that take any.
//! Nothing of a cluster is needed for [`conformance`].

use crate::kube::E2E;
use crate::place::Place;
use crate::{kube_tools, run};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Of each kind, for the comparison with a real server: about a minute.
const SEQUENCES: &str = "60";
/// Longer than a start takes on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The suite that a real API server passes (`make test-kube`), on the embedded one. The programs are built.
pub(crate) fn conformance(place: &Place) -> Result<()> {
    let server = Embedded::start(place)?;
    let mut suite = run::suite(place, &[E2E], &["conformance"])?;
    suite.env("PLEXUS_CONFORMANCE_KUBECONFIG", server.kubeconfig());
    run::shout(place, &mut suite)
}

/// kubectl, command by command; `make kube-tools` has built it.
pub(crate) fn kubectl(place: &Place) -> Result<()> {
    let program = kube_tools::installed(place, "kubernetes")?.join("kubectl");
    let mut suite = run::suite(place, &["plexus-embedded/e2e"], &["kubectl"])?;
    suite.env("PLEXUS_KUBECTL", program);
    run::shout(place, &mut suite)
}

/// Random writes to the embedded API and to a real one that has our definitions.
pub(crate) fn differential(place: &Place, real: &Path) -> Result<()> {
    let server = Embedded::start(place)?;
    let mut suite = run::suite(place, &[E2E], &["apply_differential"])?;
    suite
        .args(["--", "--nocapture"])
        .env("PLEXUS_TEST_KUBECONFIG", real)
        .env("PLEXUS_OTHER_KUBECONFIG", server.kubeconfig())
        .env("PLEXUS_TEST_SEQUENCES", SEQUENCES);
    run::shout(place, &mut suite)
}

/// `plexus server` with a directory of its own; both go with this.
pub(crate) struct Embedded {
    process: Child,
    dir: PathBuf,
}

impl Embedded {
    /// The one that tests use, which must be built.
    pub(crate) fn start(place: &Place) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("plexus-api-{}", std::process::id()));
        let program = place.target.join("debug/plexus");
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
