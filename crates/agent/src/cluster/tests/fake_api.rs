//! An API server of a few lines, for tests: keeps objects by their path, answers create, get, list, merge
//! patch and delete as the real one does, with UIDs as preconditions. Can be told to swallow requests.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The server; ends with the process.
pub(super) struct FakeApi {
    pub(super) address: SocketAddr,
    pub(super) store: Arc<Store>,
}

#[derive(Default)]
pub(super) struct Store {
    objects: Mutex<BTreeMap<String, Value>>,
    uids: Mutex<u32>,
    /// Methods and paths that were asked for.
    pub(super) calls: Mutex<Vec<String>>,
    /// How many of the next requests with that method are never answered.
    pub(super) swallow: Mutex<Option<(String, u32)>>,
}

impl FakeApi {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let store = Arc::new(Store::default());
        let cached = Arc::clone(&store);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = Arc::clone(&cached);
                // A client that goes away in the middle is no failure of the test.
                std::thread::spawn(move || store.serve(stream).ok());
            }
        });
        Self { address, store }
    }
}

impl Store {
    /// As an administrator would.
    pub(super) fn put(&self, path: &str, mut object: Value) -> String {
        let uid = self.uid();
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["resourceVersion"] = json!(uid.trim_start_matches('u'));
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{path}/{name}");
        self.objects.lock().unwrap().insert(path, object);
        uid
    }

    pub(super) fn get(&self, path: &str) -> Option<Value> {
        self.objects.lock().unwrap().get(path).cloned()
    }

    pub(super) fn remove(&self, path: &str) {
        self.objects.lock().unwrap().remove(path);
    }

    pub(super) fn all(&self, path: &str) -> Vec<Value> {
        let objects = self.objects.lock().unwrap();
        let under = objects.iter().filter(|(one, _)| one.starts_with(path));
        under.map(|(_, object)| object.clone()).collect()
    }

    fn uid(&self) -> String {
        let mut uids = self.uids.lock().unwrap();
        *uids += 1;
        format!("u{uids}")
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut out = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        loop {
            let mut first = String::new();
            if reader.read_line(&mut first)? == 0 {
                return Ok(());
            }
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let line = line.trim().to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let mut words = first.split_whitespace();
            let (method, target) = (words.next().unwrap(), words.next().unwrap());
            let path = target.split('?').next().unwrap();
            self.calls.lock().unwrap().push(format!("{method} {path}"));
            if self.swallows(method) {
                continue;
            }
            let (code, answer) = self.answer(method, path, body);
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 {code} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                answer.len()
            );
            out.write_all(head.as_bytes())?;
            out.write_all(answer.as_bytes())?;
        }
    }

    fn swallows(&self, method: &str) -> bool {
        let mut swallow = self.swallow.lock().unwrap();
        match &mut *swallow {
            Some((which, left)) if which == method && *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    fn answer(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let object = path.trim_end_matches("/status");
        match method {
            "POST" => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{path}/{name}");
                if self.get(&path).is_some() {
                    return failure(409, "AlreadyExists");
                }
                self.put(path.rsplit_once('/').unwrap().0, body.clone());
                (201, self.get(&path).unwrap())
            }
            "GET" => match self.get(object) {
                Some(found) => (200, found),
                None if object
                    .rsplit('/')
                    .next()
                    .is_some_and(|last| last.starts_with("block")) =>
                {
                    let list = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "List",
                        "metadata": {}, "items": self.all(&format!("{object}/"))});
                    (200, list)
                }
                None => failure(404, "NotFound"),
            },
            "PATCH" | "DELETE" => {
                let Some(mut found) = self.get(object) else {
                    return failure(404, "NotFound");
                };
                let wanted = match method {
                    "PATCH" => &body["metadata"]["uid"],
                    _ => &body["preconditions"]["uid"],
                };
                if !wanted.is_null() && *wanted != found["metadata"]["uid"] {
                    return failure(409, "Conflict");
                }
                if method == "DELETE" {
                    self.remove(object);
                    return (200, found);
                }
                merge(&mut found, &body);
                let mut objects = self.objects.lock().unwrap();
                objects.insert(object.to_owned(), found.clone());
                (200, found)
            }
            _ => failure(405, "MethodNotAllowed"),
        }
    }
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code});
    (code, status)
}
