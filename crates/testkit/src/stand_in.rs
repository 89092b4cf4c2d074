//! Somebody outside, for networks of the provider `stand-in`: serves `/setup` and `/teardown` on a socket of the node's
//! directory. For each interface it makes a link on the node, a little after it has answered with the link's MAC; the
//! dumps of a node show a link that is left behind.

use crate::Node;
use crate::process::{TIMEOUT, try_run, within};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long after its answer a link appears.
const DELAY: Duration = Duration::from_millis(30);
/// How often it looks for a caller.
const PAUSE: Duration = Duration::from_millis(2);

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub struct StandIn {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    namespace: String,
    outside: String,
    stopping: AtomicBool,
    links: Mutex<BTreeMap<String, String>>,
    requests: Mutex<Vec<(String, Value)>>,
    refused: Mutex<BTreeMap<String, u16>>,
    withheld: AtomicBool,
}

impl StandIn {
    /// Serves a node's networks that have [`StandIn::entry`].
    pub fn serve(node: &Node) -> Self {
        let socket = Self::socket(node);
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).expect("the socket can be bound");
        let shared = Arc::new(Shared {
            namespace: node.ns().name().to_owned(),
            outside: node.outside().name().to_owned(),
            stopping: AtomicBool::new(false),
            links: Mutex::default(),
            requests: Mutex::default(),
            refused: Mutex::default(),
            withheld: AtomicBool::new(false),
        });
        listener.set_nonblocking(true).expect("it need not block");
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while !serving.stopping.load(SeqCst) {
                match listener.accept() {
                    Ok((stream, _)) => serving.answer(stream),
                    Err(_) => std::thread::sleep(PAUSE),
                }
            }
        });
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// An entry of `networks` that it serves, with an IPAM.
    pub fn entry(node: &Node, name: &str, ipam: Value) -> Value {
        json!({"name": name, "type": "stand-in", "socket": Self::socket(node), "ipam": ipam})
    }

    /// What it was asked, in order: path and body.
    pub fn requests(&self) -> Vec<(String, Value)> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// From now on it answers `path` with that status; 200: as usual.
    pub fn answer_with(&self, path: &str, status: u16) {
        let mut refused = self.shared.refused.lock().unwrap();
        refused.insert(path.to_owned(), status);
    }

    /// From now on links do not appear, or do again.
    pub fn withhold(&self, withheld: bool) {
        self.shared.withheld.store(withheld, SeqCst);
    }

    /// How many links there should be.
    pub fn links(&self) -> usize {
        self.shared.links.lock().unwrap().len()
    }

    fn socket(node: &Node) -> PathBuf {
        node.file("stand-in.sock")
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.shared.stopping.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn answer(self: &Arc<Self>, mut stream: UnixStream) {
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
        let Some((path, body)) = read(&mut stream) else {
            return;
        };
        self.requests
            .lock()
            .unwrap()
            .push((path.clone(), body.clone()));
        let refused = self.refused.lock().unwrap().get(&path).copied();
        let (status, answer) = match refused.filter(|status| *status != 200) {
            Some(status) => (status, "not now".to_owned()),
            None => (200, self.act(&path, body["id"].as_str().unwrap())),
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        let _ = stream.write_all(format!("{head}{answer}").as_bytes());
    }

    fn act(self: &Arc<Self>, path: &str, id: &str) -> String {
        // Never more than 15 characters, and the same for the same interface.
        let number = id
            .bytes()
            .fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte));
        let (name, number) = (format!("out{number:08x}"), number.to_be_bytes());
        let [a, b, c, d] = number;
        let mac = format!("02:0d:{a:02x}:{b:02x}:{c:02x}:{d:02x}");
        let mut links = self.links.lock().unwrap();
        if path == "/teardown" {
            links.remove(id);
            try_run("ip", &["-n", &self.namespace, "link", "del", &name]);
            return String::new();
        }
        if links.insert(id.to_owned(), name.clone()).is_none() {
            let (shared, id, mac) = (Arc::clone(self), id.to_owned(), mac.clone());
            std::thread::spawn(move || shared.make_link(&id, &name, &mac));
        }
        json!({ "mac": mac }).to_string()
    }

    fn make_link(&self, id: &str, name: &str, mac: &str) {
        std::thread::sleep(DELAY);
        let is_wanted = || self.links.lock().unwrap().contains_key(id);
        within(TIMEOUT, || !self.withheld.load(SeqCst) || !is_wanted());
        let links = self.links.lock().unwrap();
        if !links.contains_key(id) {
            return;
        }
        let (ns, outside) = (&self.namespace, &self.outside);
        let add = [
            "-n", ns, "link", "add", name, "address", mac, "type", "veth",
        ];
        let peer = ["peer", "name", name, "netns", outside];
        try_run("ip", &[&add[..], &peer].concat());
        try_run("ip", &["-n", ns, "link", "set", name, "up"]);
    }
}

fn read(stream: &mut UnixStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() >= length?.trim().parse().ok()? {
                let path = head.split(' ').nth(1)?.to_owned();
                return Some((path, serde_json::from_str(body).ok()?));
            }
        }
        match stream.read(&mut chunk).ok()? {
            0 => return None,
            read => bytes.extend_from_slice(chunk.get(..read)?),
        }
    }
}
