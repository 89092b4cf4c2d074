//! A server in a process of its own, which can be killed: the test's own program, asked by a variable
//! to be a server instead. A test that uses it has a test `be_a_server` that calls [`serve_if_asked`].

use super::{Client, options, until};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const ASKED: &str = "PLEXUS_EMBEDDED_SERVE";

/// Serves until it is killed, if this process was started to do that.
pub(crate) fn serve_if_asked() {
    let Some(directory) = std::env::var_os(ASKED) else {
        return;
    };
    let directory = PathBuf::from(directory);
    let mut options = options(&directory);
    if let Some(socket) = std::env::var_os("PLEXUS_EMBEDDED_SOCKET") {
        options.unix = Some(PathBuf::from(socket));
    }
    let _server = plexus_embedded::Server::start(options).unwrap();
    loop {
        std::thread::park();
    }
}

/// A server that can be killed.
pub(crate) struct Process {
    child: Child,
    socket: PathBuf,
}

impl Process {
    /// On a directory.
    pub(crate) fn start(directory: &Path) -> Self {
        let socket = directory.join("api.sock");
        Self::start_by(Command::new(this()), directory, &socket)
    }

    /// By a command that ends in the test's own program and takes its arguments.
    pub(crate) fn start_by(mut command: Command, directory: &Path, socket: &Path) -> Self {
        let _ = std::fs::remove_file(socket);
        let child = command
            .args(["--exact", "be_a_server", "--nocapture"])
            .env(ASKED, directory)
            .env("PLEXUS_EMBEDDED_SOCKET", socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut process = Self {
            child,
            socket: socket.to_owned(),
        };
        until("the server answers", || {
            assert!(
                process.child.try_wait().unwrap().is_none(),
                "the server has ended"
            );
            let ready = process.client().send("GET", "/readyz", "", None);
            ready.is_ok_and(|answer| answer.code == 200).then_some(())
        });
        process
    }

    pub(crate) fn client(&self) -> Client {
        Client::unix(&self.socket)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it ever had, in KiB.
    pub(crate) fn peak(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.unwrap().parse().unwrap()
    }

    /// As if the power went.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that runs now.
pub(crate) fn this() -> PathBuf {
    std::env::current_exe().unwrap()
}
