//! A server for a test, in this process or in one of its own, and a client that knows nothing but
//! HTTP: what is sent and what comes back can be anything.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "shared by tests; a test that cannot go on ends"
)]

mod http;
mod process;

pub(crate) use http::{Answer, Client, Wire, read};
pub(crate) use process::{Process, serve_if_asked, this};

use plexus_embedded::kinds::Kinds;
use plexus_embedded::{Options, Server};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than anything healthy takes on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// A directory that goes with the test.
pub(crate) struct TestServer(PathBuf);

impl TestServer {
    pub(crate) fn new(name: &str) -> Self {
        let directory = format!("plexus-embedded-{name}-{}", std::process::id());
        let test = std::env::temp_dir().join(directory);
        let _ = std::fs::remove_dir_all(&test);
        std::fs::create_dir_all(&test).unwrap();
        Self(test)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn options(&self) -> Options {
        options(&self.0)
    }

    pub(crate) fn start(&self) -> Server {
        Server::start(self.options()).unwrap()
    }

    /// A client on the socket.
    pub(crate) fn client(&self) -> Client {
        Client::unix(&self.0.join("api.sock"))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// With the project's own definitions, and a socket.
pub(crate) fn options(directory: &Path) -> Options {
    let room = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the room is");
    let crds = Path::new(&room).join("../../deploy/crds");
    let mut kinds = Kinds::builtin().unwrap();
    for entry in std::fs::read_dir(crds).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let definition: Value = serde_yaml_ng::from_str(&text).unwrap();
        kinds = kinds.with_crd(&definition).unwrap();
    }
    let kinds = kinds
        .with_alias(plexus_embedded::alias::CORE_NETWORK)
        .unwrap();
    let mut options = Options::new(directory, kinds);
    options.unix = Some(directory.join("api.sock"));
    options
}

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn map(name: &str, content: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": content}})
}

/// The version of an object or a list.
pub(crate) fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version
        .and_then(|version| version.parse().ok())
        .unwrap_or_else(|| panic!("{object}"))
}

/// Asks until it holds.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = ask() {
            return value;
        }
        assert!(Instant::now() < end, "{what}: not within {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
