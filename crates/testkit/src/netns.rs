//! Named network namespaces that are gone when the test is, and work inside them.

use crate::process::{checked, run};
use plexus_kernel::residents::residents;
use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Once};

const RUN_DIR: &str = "/run/netns";
/// What all names begin with; the process id follows.
pub(crate) const PREFIX: &str = "px-test-";

/// A namespace with a name that `ip netns` knows.
#[derive(Debug)]
pub struct NetNs {
    name: String,
    file: Arc<File>,
}

impl NetNs {
    /// Makes one, empty but for `lo` (down). What crashed test runs left behind is removed first.
    pub fn create(name: &str) -> Self {
        static SWEEP: Once = Once::new();
        SWEEP.call_once(sweep);
        run("ip", &["netns", "add", name]);
        let file = File::open(Path::new(RUN_DIR).join(name)).expect("the namespace is there");
        Self {
            name: name.to_owned(),
            file: Arc::new(file),
        }
    }

    /// Gives the namespace of the machine a name, for a machine that is thrown away after the test.
    pub fn of_machine(name: &str) -> Self {
        run("ip", &["netns", "attach", name, "1"]);
        let file = File::open(Path::new(RUN_DIR).join(name)).expect("the namespace is there");
        Self {
            name: name.to_owned(),
            file: Arc::new(file),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its path: what CNI_NETNS says.
    pub fn path(&self) -> PathBuf {
        Path::new(RUN_DIR).join(&self.name)
    }

    /// Removes the name now; the namespace dies when its last user is gone.
    pub fn remove(self) {}

    /// Puts a new, empty namespace under the same name.
    pub fn replace(&mut self) {
        run("ip", &["netns", "del", &self.name]);
        run("ip", &["netns", "add", &self.name]);
        self.file = Arc::new(File::open(self.path()).expect("the namespace is there"));
    }

    /// Runs `work` on a thread of its own inside the namespace.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            Self::set(&self.file);
            work()
        };
        let result = std::thread::scope(|scope| scope.spawn(inside).join());
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs a program inside, and gives what it printed; panics if it fails.
    pub fn run(&self, program: &str, arguments: &[&str]) -> String {
        self.enter(|| run(program, arguments))
    }

    /// Runs a shell script inside, and gives what it printed; panics if it fails.
    pub fn sh(&self, script: &str) -> String {
        self.run("sh", &["-ec", script])
    }

    /// Runs a shell script inside, and says whether it succeeded.
    pub fn try_sh(&self, script: &str) -> bool {
        self.enter(|| {
            let status = Command::new("sh")
                .args(["-ec", script])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            status.is_ok_and(|status| status.success())
        })
    }

    /// Whether `address` answers a ping from inside within some seconds: a neighbour may have to be found first.
    pub fn pings(&self, address: &str) -> bool {
        self.try_sh(&format!(
            "for i in 1 2 3 4 5 6 7 8; do ping -c 1 -W 1 {address} && exit; sleep 0.2; done; exit 1"
        ))
    }

    /// Whether `address` answers none of two pings from inside.
    pub fn silent(&self, address: &str) -> bool {
        !self.try_sh(&format!(
            "ping -c 1 -W 1 {address} || ping -c 1 -W 1 {address}"
        ))
    }

    /// `ip -batch` inside.
    pub fn ip(&self, lines: &str) {
        let output = self.enter(|| {
            let mut child = Command::new("ip")
                .args(["-batch", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("ip runs");
            use std::io::Write;
            let _ = child
                .stdin
                .take()
                .map(|mut pipe| pipe.write_all(lines.as_bytes()));
            child.wait_with_output().expect("ip ends")
        });
        checked(lines, output);
    }

    pub(crate) fn handle(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Moves the calling thread, for good.
    pub(crate) fn set(file: &File) {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("enters the namespace: the tests need root");
    }
}

impl Drop for NetNs {
    fn drop(&mut self) {
        if !keep_requested() {
            delete(&self.name);
        }
    }
}

fn delete(name: &str) {
    let _ = Command::new("ip")
        .args(["netns", "del", name])
        .stderr(Stdio::null())
        .status();
}

/// Whether a failing test's things are to be kept for looking at.
pub(crate) fn keep_requested() -> bool {
    std::thread::panicking() && std::env::var_os("PLEXUS_TEST_KEEP").is_some()
}

/// Removes namespaces, with their processes, and directories of test runs that are no more.
fn sweep() {
    let stale = |name: &str| {
        let rest = name.strip_prefix(PREFIX)?;
        let pid = rest.split('-').next()?.parse::<u32>().ok()?;
        (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    };
    for entry in std::fs::read_dir(RUN_DIR).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if stale(&name).is_some() {
            for process in residents(std::slice::from_ref(&name)) {
                process.kill();
            }
            delete(&name);
        }
    }
    for entry in std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        if stale(&entry.file_name().to_string_lossy()).is_some() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
