//! What the tests of this room share: a directory that goes away, an agent that says what it is
//! told, and a way to run the shim.

#![allow(dead_code, missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::panic)]

pub mod bench;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// Removed with everything in it, also when the test fails.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("px-cni-{}-{count}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the shim said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
}

impl Said {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// It failed with that code; gives msg and details.
    pub fn error(&self, code: u64) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        let json = self.json();
        assert_eq!(json["code"], code, "{self:?}");
        format!("{} / {}", json["msg"], json["details"])
    }
}

/// A call of the shim, with an environment that a test can change.
pub struct Shim {
    binary: PathBuf,
    env: Vec<(String, String)>,
}

impl Shim {
    pub fn new(verb: &str) -> Self {
        let mut shim = Self {
            binary: env!("CARGO_BIN_EXE_plexus-cni").into(),
            env: vec![],
        };
        for (name, value) in [
            ("CNI_COMMAND", verb),
            ("CNI_CONTAINERID", "c1"),
            ("CNI_NETNS", "/run/netns/c1"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAME=p"),
            ("CNI_PATH", "/opt/cni/bin"),
        ] {
            shim = shim.env(name, value);
        }
        shim
    }

    pub fn binary(mut self, path: &Path) -> Self {
        self.binary = path.to_owned();
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    pub fn socket(self, path: &Path) -> Self {
        self.env("PLEXUS_AGENT_SOCKET", path.to_str().unwrap())
    }

    pub fn wait_ms(self, ms: u32) -> Self {
        self.env("PLEXUS_CNI_WAIT_MS", &ms.to_string())
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear().envs(self.env.iter().cloned());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        command
    }

    pub fn run(&self, stdin: &[u8]) -> Said {
        let mut child = self.command().spawn().unwrap();
        // Whoever refuses early does not read to the end.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        let output = child.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            stdout,
        }
    }
}

/// An agent that gives one answer per connection, in order, and then goes away. An empty answer
/// closes the connection. Joining gives the requests that it read.
pub struct Agent {
    thread: JoinHandle<Vec<String>>,
}

impl Agent {
    pub fn start(socket: &Path, answers: Vec<Vec<u8>>) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let socket = socket.to_owned();
        let thread = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                requests.push(read_request(&mut stream));
                let _ = stream.write_all(&answer);
            }
            std::fs::remove_file(&socket).unwrap();
            requests
        });
        Self { thread }
    }

    pub fn requests(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

pub fn answer(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} Whatever\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn read_request(stream: &mut UnixStream) -> String {
    let mut text = Vec::new();
    let mut chunk = [0; 65536];
    loop {
        let read = stream.read(&mut chunk).unwrap();
        text.extend_from_slice(&chunk[..read]);
        let so_far = String::from_utf8_lossy(&text);
        if let Some((head, body)) = so_far.split_once("\r\n\r\n") {
            let length = head
                .split("\r\n")
                .find_map(|l| l.strip_prefix("Content-Length: "))
                .unwrap();
            if body.len() >= length.parse().unwrap() {
                return so_far.into_owned();
            }
        }
        assert_ne!(read, 0, "the request ended early: {so_far}");
    }
}
