//! Watches against a server of a few lines, whose versions go back when the test says so.

use super::*;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Bytes;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use tower::service_fn;

type Answer = UnsyncBoxBody<Bytes, io::Error>;

/// How long a test waits for what must happen.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A server: what it has, and what it was asked.
struct Fake {
    state: Mutex<State>,
    /// Watches of this path end, after these events.
    ends: tokio::sync::watch::Sender<(&'static str, String)>,
}

#[derive(Default)]
struct State {
    version: u64,
    objects: Vec<Value>,
    asked: Vec<String>,
    is_away: bool,
}

impl Fake {
    fn new(version: u64, objects: &[Value]) -> Arc<Self> {
        let state = State {
            version,
            objects: objects.to_vec(),
            ..State::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
            ends: tokio::sync::watch::Sender::new(("none", String::new())),
        })
    }

    fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        let ask = service_fn(move |request| {
            let server = Arc::clone(&server);
            async move { server.answer(request).await }
        });
        Client::new(ask, "default")
    }

    /// As if it had been replaced by one with another history.
    fn become_another(&self, version: u64, objects: &[Value]) {
        let mut state = self.state.lock().unwrap();
        state.version = version;
        state.objects = objects.to_vec();
    }

    fn end_watches_of_config_maps(&self) {
        self.end_watches_of_config_maps_after(&[]);
    }

    fn end_watches_of_config_maps_after(&self, events: &[Value]) {
        let lines = events.iter().map(|event| format!("{event}\n"));
        self.ends.send_replace(("configmaps", lines.collect()));
    }

    /// What it was asked for so far, with these words in it.
    fn count_requests(&self, words: &[&str]) -> usize {
        let state = self.state.lock().unwrap();
        let asked = state.asked.iter();
        asked
            .filter(|one| words.iter().all(|word| one.contains(word)))
            .count()
    }

    /// Lists that were not comparisons.
    fn lists(&self, kind: &str) -> usize {
        self.count_requests(&[kind, "limit=200"])
    }

    fn comparisons(&self, kind: &str) -> usize {
        self.count_requests(&[kind, "limit=1"])
    }

    async fn answer(&self, request: Request<Body>) -> io::Result<Response<Answer>> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let path = request.uri().path().to_owned();
        let mut ends = self.ends.subscribe();
        if query.contains("watch=true") {
            // Silent until it ends; the answer to its request is there at once.
            self.state
                .lock()
                .unwrap()
                .asked
                .push(format!("{path}?{query}"));
            let end = futures::stream::once(async move {
                while ends.changed().await.is_ok() && !path.contains(ends.borrow().0) {}
                let said = ends.borrow().1.clone();
                Ok::<_, io::Error>(said.into_bytes())
            });
            let frames = end.map(|bytes| bytes.map(|bytes| Frame::data(bytes.into())));
            return Ok(Response::new(StreamBody::new(frames).boxed_unsync()));
        }
        let mut state = self.state.lock().unwrap();
        state.asked.push(format!("{path}?{query}"));
        if state.is_away {
            return Err(io::ErrorKind::HostUnreachable.into());
        }
        if path == "/version" {
            let text = json!({"major": "1", "minor": "1", "gitVersion": "v1.1.0", "gitCommit": "", "gitTreeState": "",
                "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
            return Ok(answer(&text));
        }
        let named = |object: &&Value| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            !query.contains("metadata.name") || query.contains(&format!("metadata.name%3D{name}"))
        };
        let items: Vec<&Value> = state.objects.iter().filter(named).collect();
        let list =
            json!({"metadata": {"resourceVersion": state.version.to_string()}, "items": items});
        Ok(answer(&list))
    }
}

fn answer(json: &Value) -> Response<Answer> {
    let bytes = Full::new(json.to_string().into_bytes().into());
    Response::new(bytes.map_err(|never| match never {}).boxed_unsync())
}

fn object(name: &str, version: u64) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": version.to_string()}})
}

fn deleted(name: &str, version: u64) -> Value {
    json!({"type": "DELETED", "object": object(name, version)})
}

/// Runs watches of ConfigMaps and Nodes until `until` holds.
async fn follow(server: &Arc<Fake>, watches: &Watches, until: impl Fn() -> bool) {
    let maps = watches.watch(
        Api::<ConfigMap>::all(server.client()),
        ListParams::default(),
    );
    let nodes = watches.watch(Api::<Node>::all(server.client()), ListParams::default());
    let (mut maps, mut nodes) = (maps.boxed(), nodes.boxed());
    let all = async {
        tokio::join!(
            async { while maps.next().await.is_some() {} },
            async { while nodes.next().await.is_some() {} },
            watches.probe(server.client()),
        )
    };
    let done = async {
        while !until() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        _ = all => panic!("a watch has ended"),
        done = timeout(TEST_TIMEOUT, done) => {
            done.unwrap_or_else(|_| panic!("it does not happen: {:#?}", server.state.lock().unwrap().asked));
        }
    }
}

/// Both kinds were listed, and their watches opened and compared.
async fn begin(server: &Arc<Fake>, then: impl FnOnce(), until: impl Fn() -> bool) {
    let watches = Watches::default();
    let then = Mutex::new(Some(then));
    let until = || {
        let begun = ["configmaps", "nodes"]
            .iter()
            .all(|kind| server.comparisons(kind) > 0);
        if begun && let Some(then) = then.lock().unwrap().take() {
            then();
            return false;
        }
        then.lock().unwrap().is_none() && until()
    };
    follow(server, &watches, until).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_back_is_listed_again_by_all() {
    let server = Fake::new(9, &[]);
    let restored = || {
        server.become_another(7, &[]);
        server.end_watches_of_config_maps();
    };
    begin(&server, restored, || {
        server.lists("configmaps") == 2 && server.lists("nodes") == 2
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_back_and_caught_up_is_listed_again() {
    let server = Fake::new(9, &[object("a", 8)]);
    let restored = || {
        server.become_another(20, &[object("a", 3)]);
        server.end_watches_of_config_maps();
    };
    begin(&server, restored, || {
        server.lists("configmaps") == 2 && server.lists("nodes") == 2
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn if_the_newest_object_is_gone_its_kind_is_listed_again() {
    let server = Fake::new(9, &[object("a", 8)]);
    let deleted = || {
        server.become_another(10, &[]);
        server.end_watches_of_config_maps();
    };
    begin(&server, deleted, || server.lists("configmaps") == 2).await;
}

/// The newest object was deleted: nothing is known that the restored server could have an older version of.
#[tokio::test(start_paused = true)]
async fn a_deleted_object_that_is_back_shows_that_the_server_went_back() {
    let server = Fake::new(9, &[object("a", 8)]);
    let restored = || {
        server.become_another(20, &[object("a", 8)]);
        server.end_watches_of_config_maps_after(&[deleted("a", 10)]);
    };
    begin(&server, restored, || {
        server.lists("configmaps") == 2 && server.lists("nodes") == 2
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_that_was_made_anew_meanwhile_has_its_kind_listed_again() {
    let server = Fake::new(9, &[object("a", 8)]);
    let remade = || {
        server.become_another(20, &[object("a", 12)]);
        server.end_watches_of_config_maps_after(&[deleted("a", 10)]);
    };
    begin(&server, remade, || server.lists("configmaps") == 2).await;
    assert_eq!(server.lists("nodes"), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_deletion_a_watch_goes_on_without_a_list() {
    let server = Fake::new(9, &[object("a", 8), object("b", 7)]);
    let went_on = || {
        server.become_another(13, &[object("c", 12)]);
        let made = |name, version| json!({"type": "ADDED", "object": object(name, version)});
        server.end_watches_of_config_maps_after(&[
            deleted("a", 10),
            made("a", 11),
            made("c", 12),
            deleted("a", 13),
        ]);
    };
    let compared =
        |name: &str| server.count_requests(&["configmaps", "limit=1", &format!("%3D{name}")]);
    begin(&server, went_on, || {
        compared("c") == 1 && compared("a") == 1
    })
    .await;
    assert_eq!(server.lists("configmaps"), 1);
    assert_eq!(
        server.count_requests(&["configmaps", "watch=true", "resourceVersion=13"]),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ended_goes_on_without_a_list() {
    let server = Fake::new(9, &[object("a", 8)]);
    let went_on = || {
        server.become_another(10, &[object("a", 8)]);
        server.end_watches_of_config_maps();
    };
    begin(&server, went_on, || {
        server.count_requests(&["configmaps", "watch=true", "resourceVersion=9"]) == 2
    })
    .await;
    assert_eq!(server.lists("configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn silent_watches_are_opened_anew_when_the_server_answers_again() {
    let server = Fake::new(9, &[]);
    let cut = || server.state.lock().unwrap().is_away = true;
    let heals = || {
        let mut state = server.state.lock().unwrap();
        let probes = state.asked.iter().filter(|one| one.starts_with("/version"));
        if probes.count() > 3 {
            state.is_away = false;
        }
        drop(state);
        server.count_requests(&["configmaps", "watch=true"]) == 2
    };
    begin(&server, cut, heals).await;
    assert_eq!(server.lists("configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_says_nothing_for_long_is_opened_anew() {
    let server = Fake::new(9, &[]);
    let maps = Api::<ConfigMap>::all(server.client());
    let mut maps = Watches::default()
        .watch(maps, ListParams::default())
        .boxed();
    let silent = timeout(IDLE_TIMEOUT + SHORT_WATCH, async {
        while maps.next().await.is_some() {}
    });
    assert!(silent.await.is_err());
    assert_eq!(server.count_requests(&["configmaps", "watch=true"]), 2);
    assert_eq!(server.lists("configmaps"), 1);
}

/// Objects may be large: whoever expects that says how many are read at once.
#[tokio::test(start_paused = true)]
async fn whoever_watches_says_how_many_are_read_at_once() {
    let server = Fake::new(9, &[object("a", 8)]);
    let watches = Watches::default();
    let select = ListParams::default().limit(10);
    let mut maps = watches
        .watch(Api::<ConfigMap>::all(server.client()), select)
        .boxed();
    let compared = async {
        while server.count_requests(&["configmaps", "limit="]) < 2 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let follow = async { while maps.next().await.is_some() {} };
    tokio::select! {
        () = follow => panic!("a watch has ended"),
        done = timeout(TEST_TIMEOUT, compared) => done.unwrap(),
    }
    assert_eq!(server.count_requests(&["configmaps", "limit=10"]), 1);
    assert_eq!(server.lists("configmaps"), 0);
}
