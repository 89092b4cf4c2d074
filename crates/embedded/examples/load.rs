//! Load on an API server, any that is given by a kubeconfig (in JSON, certificates in it): creates per
//! second, lists of many objects, changes to many watchers. Prints one JSON object.
//!
//! ```sh
//! cargo run --release -p plexus-embedded --example load -- KUBECONFIG [OBJECTS] [WATCHERS]
//! ```
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a measurement that cannot go on ends; its result is what it prints"
)]

#[path = "../tests/server/common/http.rs"]
mod http;

use http::Client;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "load";
/// How long creates are counted for, at each number of clients.
const CREATING: Duration = Duration::from_secs(5);
/// Changes that every watcher must see.
const CHANGES: usize = 1000;
const LISTS: usize = 15;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kubeconfig = PathBuf::from(arguments.next().expect("a kubeconfig"));
    let mut number = |usual: usize| {
        arguments
            .next()
            .map_or(usual, |text| text.parse().expect("a number"))
    };
    let (objects, watchers) = (number(10_000), number(100));
    let load = Load { kubeconfig };
    load.prepare();
    let creates: Vec<Value> = [1, 16, 64]
        .into_iter()
        .map(|clients| {
            let (rate, p50, p99) = load.create(clients);
            json!({"clients": clients, "perSecond": rate, "p50Ms": p50, "p99Ms": p99})
        })
        .collect();
    load.prepare();
    load.fill(objects);
    let list = load.list();
    let fan_out = load.fan_out(watchers);
    let result = json!({
        "creates": creates,
        "list": {"objects": objects, "bytes": list.0, "medianMs": list.1, "pagesOf500Ms": list.2},
        "fanOut": {
            "watchers": watchers, "changes": CHANGES, "seconds": fan_out.0,
            "eventsPerSecond": fan_out.1, "oneChangeToAllMedianMs": fan_out.2,
        },
    });
    println!("{result}");
}

#[derive(Clone)]
struct Load {
    kubeconfig: PathBuf,
}

impl Load {
    fn client(&self) -> Client {
        Client::tls(&self.kubeconfig)
    }

    fn maps(&self) -> String {
        format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
    }

    /// An empty namespace.
    fn prepare(&self) {
        let mut client = self.client();
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        let _ = client.post("/api/v1/namespaces", &namespace);
        while client.delete(&self.maps()).code != 200 {}
    }

    /// Creates per second by so many clients at once, and how long one takes.
    fn create(&self, clients: usize) -> (f64, f64, f64) {
        let (begin, count) = (
            Arc::new(Barrier::new(clients + 1)),
            Arc::new(AtomicU64::new(0)),
        );
        let threads: Vec<_> = (0..clients)
            .map(|client| {
                let (load, begin, count) = (self.clone(), Arc::clone(&begin), Arc::clone(&count));
                std::thread::spawn(move || {
                    let mut connection = load.client();
                    connection.get("/readyz");
                    let mut took = Vec::new();
                    begin.wait();
                    let end = Instant::now() + CREATING;
                    for number in 0.. {
                        let begun = Instant::now();
                        if begun >= end {
                            break;
                        }
                        let map = map(&format!("c{clients}-{client}-{number}"));
                        assert_eq!(connection.post(&load.maps(), &map).code, 201);
                        took.push(begun.elapsed());
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    took
                })
            })
            .collect();
        begin.wait();
        let mut took: Vec<Duration> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        took.sort();
        let rate = count.load(Ordering::Relaxed) as f64 / CREATING.as_secs_f64();
        (rate, at(&took, 50), at(&took, 99))
    }

    fn fill(&self, objects: usize) {
        let next = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..32)
            .map(|_| {
                let (load, next) = (self.clone(), Arc::clone(&next));
                std::thread::spawn(move || {
                    let mut client = load.client();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= objects {
                            break;
                        }
                        let made = client.post(&load.maps(), &map(&format!("m-{number:06}")));
                        assert_eq!(made.code, 201);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }

    /// Bytes and median time of a whole list; the median of one in pages.
    fn list(&self) -> (usize, f64, f64) {
        let mut client = self.client();
        let mut bytes = 0;
        let mut whole = Vec::new();
        for _ in 0..LISTS {
            let begun = Instant::now();
            bytes = client.bytes(&self.maps()).len();
            whole.push(begun.elapsed());
        }
        let mut pages = Vec::new();
        for _ in 0..5 {
            let begun = Instant::now();
            let mut token = String::new();
            loop {
                let page = client.bytes(&format!("{}?limit=500&continue={token}", self.maps()));
                match continued(&page) {
                    Some(next) => token = next,
                    None => break,
                }
            }
            pages.push(begun.elapsed());
        }
        whole.sort();
        pages.sort();
        (bytes, at(&whole, 50), at(&pages, 50))
    }

    /// How long until all watchers have seen all changes, events per second, and how long one change
    /// takes to reach all.
    fn fan_out(&self, watchers: usize) -> (f64, f64, f64) {
        let mut client = self.client();
        let list = client.get(&format!("{}?limit=1", self.maps())).ok();
        let from = list["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .to_owned();
        let seen = Arc::new(AtomicUsize::new(0));
        let ready = Arc::new(Barrier::new(watchers + 1));
        for _ in 0..watchers {
            let (load, seen, ready) = (self.clone(), Arc::clone(&seen), Arc::clone(&ready));
            let path = format!("{}?watch=true&resourceVersion={from}", self.maps());
            std::thread::spawn(move || {
                let mut lines = load.client().lines(&path);
                ready.wait();
                while let Some(count) = lines.count() {
                    seen.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
        ready.wait();
        let reach = |wanted: usize| {
            while seen.load(Ordering::Relaxed) < wanted {
                std::thread::sleep(Duration::from_micros(200));
            }
        };
        let mut single = Vec::new();
        for number in 0..20 {
            let begun = Instant::now();
            client
                .post(&self.maps(), &map(&format!("one-{number}")))
                .ok();
            reach((number + 1) * watchers);
            single.push(begun.elapsed());
        }
        let begun = Instant::now();
        let next = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let (load, next) = (self.clone(), Arc::clone(&next));
                std::thread::spawn(move || {
                    let mut client = load.client();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= CHANGES {
                            break;
                        }
                        client.post(&load.maps(), &map(&format!("f-{number}"))).ok();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        reach((20 + CHANGES) * watchers);
        let seconds = begun.elapsed().as_secs_f64();
        single.sort();
        (
            seconds,
            (CHANGES * watchers) as f64 / seconds,
            at(&single, 50),
        )
    }
}

/// About a kilobyte, as a small object has.
fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"app": "load", "part": "one"}},
        "data": {"a": "x".repeat(400), "b": "y".repeat(200)},
    })
}

fn at(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    let value = sorted.get(place).copied().unwrap_or_default();
    (value.as_secs_f64() * 1e5).round() / 100.0
}

/// The token in the metadata of a list, which may be at either end.
fn continued(page: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(page);
    let (_, rest) = text.split_once("\"continue\":\"")?;
    let (token, _) = rest.split_once('"')?;
    (!token.is_empty()).then(|| token.replace('=', "%3D"))
}
