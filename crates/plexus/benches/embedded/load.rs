//! What a server is asked to do, against the clock. Everything is ConfigMaps of about a kilobyte.

use crate::http::Client;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Where the objects are that are listed.
const MANY: &str = "many";
/// Changes whose way to all watchers is measured one by one.
const SINGLE: usize = 5;
/// Longer than any change takes to arrive.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);

/// A server, by its kubeconfig.
#[derive(Clone)]
pub(crate) struct Load {
    kubeconfig: PathBuf,
}

impl Load {
    pub(crate) fn new(kubeconfig: PathBuf) -> Self {
        Self { kubeconfig }
    }

    /// Makes the objects that are listed.
    pub(crate) fn fill(&self, objects: usize) {
        self.namespace(MANY);
        self.create(MANY, objects, 16);
    }

    /// Objects per second, made by so many clients at once in a new namespace.
    pub(crate) fn creates(&self, namespace: &str, objects: usize, clients: usize) -> f64 {
        self.namespace(namespace);
        objects as f64 / self.create(namespace, objects, clients).as_secs_f64()
    }

    /// Removes what a round has made: all rounds find as many objects.
    pub(crate) fn clear(&self, namespace: &str) {
        self.client().delete(&maps(namespace)).ok();
    }

    /// One list of all.
    pub(crate) fn list(&self, objects: usize) -> Duration {
        let mut client = self.client();
        client.get("/readyz");
        let begun = Instant::now();
        let bytes = client.bytes(&maps(MANY)).len();
        let took = begun.elapsed();
        assert!(
            bytes > objects * 700,
            "{bytes} bytes are no {objects} objects"
        );
        took
    }

    /// The same in pages of 500, as kube-rs and kubectl ask.
    pub(crate) fn pages(&self) -> Duration {
        let mut client = self.client();
        client.get("/readyz");
        let begun = Instant::now();
        let mut token = String::new();
        loop {
            let path = format!("{}?limit=500&continue={token}", maps(MANY));
            match continued(&client.bytes(&path)) {
                Some(next) => token = next,
                None => return begun.elapsed(),
            }
        }
    }

    /// How long one change takes to reach all watchers (several times), and how many events per second
    /// arrive while 16 clients make `changes`.
    pub(crate) fn fan_out(
        &self,
        namespace: &str,
        watchers: usize,
        changes: usize,
    ) -> (Vec<Duration>, f64) {
        self.namespace(namespace);
        let mut client = self.client();
        let list = client.get(&maps(namespace)).ok();
        let from = list["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .to_owned();
        let seen = Arc::new(AtomicUsize::new(0));
        let ready = Arc::new(Barrier::new(watchers + 1));
        let threads: Vec<_> = (0..watchers)
            .map(|_| {
                let (load, seen, ready) = (self.clone(), Arc::clone(&seen), Arc::clone(&ready));
                let path = format!("{}?watch=true&resourceVersion={from}", maps(namespace));
                std::thread::spawn(move || {
                    let mut lines = load.client().lines(&path);
                    ready.wait();
                    let mut left = SINGLE + changes;
                    while left > 0 {
                        let count = lines.count().expect("the watch goes on");
                        seen.fetch_add(count, Ordering::Relaxed);
                        left = left.saturating_sub(count);
                    }
                })
            })
            .collect();
        ready.wait();
        let singles = (1..=SINGLE).map(|number| {
            let begun = Instant::now();
            client
                .post(&maps(namespace), &map(&format!("one-{number}")))
                .ok();
            reach(&seen, number * watchers);
            begun.elapsed()
        });
        let singles = singles.collect();
        let begun = Instant::now();
        self.create(namespace, changes, 16);
        reach(&seen, (SINGLE + changes) * watchers);
        let seconds = begun.elapsed().as_secs_f64();
        for thread in threads {
            thread.join().unwrap();
        }
        (singles, (changes * watchers) as f64 / seconds)
    }

    fn client(&self) -> Client {
        Client::tls(&self.kubeconfig)
    }

    fn namespace(&self, name: &str) {
        let namespace = json!({"metadata": {"name": name}});
        self.client().post("/api/v1/namespaces", &namespace).ok();
    }

    /// How long it takes, without connecting.
    fn create(&self, namespace: &str, objects: usize, clients: usize) -> Duration {
        let next = Arc::new(AtomicUsize::new(0));
        let begin = Arc::new(Barrier::new(clients + 1));
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                let (load, next, begin) = (self.clone(), Arc::clone(&next), Arc::clone(&begin));
                let path = maps(namespace);
                std::thread::spawn(move || {
                    let mut client = load.client();
                    client.get("/readyz");
                    begin.wait();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= objects {
                            break;
                        }
                        client.post(&path, &map(&format!("m-{number:06}"))).ok();
                    }
                })
            })
            .collect();
        begin.wait();
        let begun = Instant::now();
        for thread in threads {
            thread.join().unwrap();
        }
        begun.elapsed()
    }
}

fn reach(seen: &AtomicUsize, wanted: usize) {
    let end = Instant::now() + CHANGE_TIMEOUT;
    while seen.load(Ordering::Relaxed) < wanted {
        assert!(Instant::now() < end, "events are missing");
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "load", "part": "one"}},
        "data": {"a": "x".repeat(400), "b": "y".repeat(200)},
    })
}

/// The token in the metadata of a list, which may be at either end.
fn continued(page: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(page);
    let (_, rest) = text.split_once("\"continue\":\"")?;
    let (token, _) = rest.split_once('"')?;
    (!token.is_empty()).then(|| token.replace('=', "%3D"))
}
