//! Requests that mean far more than they say: what they cost is bounded all the same, in memory, in the
//! length of the answer, and in the time for which nobody else can write.

use crate::common::{Answer, Client, MAPS, Process, TestServer, map, read};
use serde_json::{Map, Value, json};
use std::io::{BufReader, Write};

const NETWORKS: &str = "/apis/plexus.dev/v1alpha1/namespaces/default/networks";
const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
/// As long as a name may be.
const LONG: usize = 16 << 10;
/// KiB that a server may grow by, whatever it is asked: some copies of a request as values.
const GROWN: usize = 400 << 10;

fn network(spec: Value) -> Value {
    json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "Network", "metadata": {"name": "n"}, "spec": spec,
    })
}

fn leaves(count: usize, value: &Value) -> Value {
    let all = (0..count).map(|number| (format!("{number:06}"), value.clone()));
    Value::Object(all.collect::<Map<_, _>>())
}

/// Maps with long names around it.
fn wrapped(depth: usize, inner: Value) -> Value {
    let name = "n".repeat(LONG - 1);
    (0..depth).fold(inner, |inner, _| json!({&name: inner}))
}

fn apply(client: &mut Client, manager: &str, object: &Value) -> Answer {
    let path = format!("{NETWORKS}/n?fieldManager={manager}");
    client.send("PATCH", &path, APPLY, Some(object)).unwrap()
}

#[track_caller]
fn assert_cheap(server: &Process, before: usize, answer: &Answer) {
    let length = answer.body.to_string().len();
    let is_short = answer.code < 300 || length < 512 << 10;
    assert!(is_short, "a refusal of {length} bytes");
    let grown = server.peak().saturating_sub(before);
    assert!(grown < GROWN, "grown by {grown} KiB");
    let label = json!({"metadata": {"labels": {"still": "writes"}}});
    server.client().merge(&format!("{MAPS}/a"), &label).ok();
}

#[test]
fn what_is_wrong_with_what_is_applied_is_not_said_a_hundred_thousand_times() {
    let test = TestServer::new("apply-faults");
    let server = Process::start(test.path());
    let mut client = server.client();
    client.post(MAPS, &map("a", "1")).ok();
    let before = server.peak();
    // Fields that the kind does not have, each with a long place.
    let subnets = json!({"subnets": wrapped(1, leaves(60_000, &json!(1)))});
    let answer = apply(&mut client, "x", &network(subnets));
    assert_eq!(answer.code, 500);
    let message = answer.body["message"].as_str().unwrap();
    assert!(message.contains("field not declared in schema"));
    assert!(message.ends_with("and more"), "{}", message.len());
    assert_cheap(&server, before, &answer);
    // All are legal here, and far from the top.
    let config = wrapped(60, leaves(20_000, &json!(1)));
    let spec = json!({"provider": "delegate", "config": config});
    let answer = apply(&mut client, "x", &network(spec));
    assert_cheap(&server, before, &answer);
    // The record of who owns what is as open as that.
    let mut object = map("b", "1");
    let fields = wrapped(60, leaves(20_000, &json!({})));
    object["metadata"]["managedFields"] = json!([{"manager": "x", "fieldsV1": fields}]);
    let answer = client.post(&format!("{MAPS}?dryRun=All"), &object);
    assert_cheap(&server, before, &answer);
}

#[test]
fn many_conflicts_far_from_the_top_are_a_short_answer() {
    let test = TestServer::new("apply-conflicts");
    let server = Process::start(test.path());
    let mut client = server.client();
    client.post(MAPS, &map("a", "1")).ok();
    let of = |value: &Value| {
        let config = wrapped(50, leaves(10_000, value));
        network(json!({"provider": "delegate", "config": config}))
    };
    apply(&mut client, "one", &of(&json!(1))).ok();
    let before = server.peak();
    let answer = apply(&mut client, "two", &of(&json!(2)));
    assert_eq!(answer.code, 409);
    let causes = answer.body["details"]["causes"].as_array().unwrap();
    assert_eq!(causes[0]["reason"], "FieldManagerConflict");
    assert_cheap(&server, before, &answer);
}

#[test]
fn a_json_patch_cannot_move_the_world_again_and_again() {
    let test = TestServer::new("patch-work");
    let server = Process::start(test.path());
    let mut client = server.client();
    client.post(MAPS, &map("a", "1")).ok();
    let config = json!({"list": vec![1; 200_000], "map": leaves(20_000, &json!(1))});
    let path = format!("{NETWORKS}/n");
    client
        .post(
            NETWORKS,
            &network(json!({"provider": "delegate", "config": config})),
        )
        .ok();
    let before = server.peak();
    let first = json!({"op": "add", "path": "/spec/config/list/0", "value": 1});
    let adds = vec![first; 10_000];
    let there_and_back = |count: usize| {
        let (one, other) = match count % 2 {
            0 => ("/spec/config/map", "/spec/config/moved"),
            _ => ("/spec/config/moved", "/spec/config/map"),
        };
        json!({"op": "move", "from": one, "path": other})
    };
    let moves: Vec<Value> = (0..10_000).map(there_and_back).collect();
    for patch in [adds, moves] {
        let patch = Value::Array(patch);
        let answer = client
            .send("PATCH", &path, JSON_PATCH, Some(&patch))
            .unwrap();
        assert_cheap(&server, before, &answer);
        let message = answer.refused(413);
        assert!(message.contains("send fewer at a time"), "{message}");
    }
    let last = json!({"op": "add", "path": "/spec/config/list/-", "value": 1});
    let test_op = json!({"op": "test", "path": "/spec/config/map", "value": {}});
    let patch = Value::Array(vec![last; 5000]);
    client
        .send("PATCH", &path, JSON_PATCH, Some(&patch))
        .unwrap()
        .ok();
    let patch = Value::Array(vec![test_op; 10_000]);
    client
        .send("PATCH", &path, JSON_PATCH, Some(&patch))
        .unwrap()
        .refused(422);
}

/// A body as it is.
fn raw(client: &Client, method: &str, path: &str, media: &str, body: &str) -> Answer {
    let mut wire = client.connect().unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    wire.write_all(head.as_bytes()).unwrap();
    wire.write_all(body.as_bytes()).unwrap();
    read(&mut BufReader::new(wire)).unwrap()
}

#[test]
fn yaml_that_stands_for_gigabytes_is_refused() {
    let test = TestServer::new("aliases");
    let server = Process::start(test.path());
    let mut client = server.client();
    client.post(MAPS, &map("a", "1")).ok();
    let before = server.peak();
    let body = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        "*a,".repeat(500_000)
    );
    let one = format!("{MAPS}/a?fieldManager=x");
    for (method, path, media) in [("POST", MAPS, "application/yaml"), ("PATCH", &one, APPLY)] {
        let answer = raw(&client, method, path, media, &body);
        assert_cheap(&server, before, &answer);
        let message = answer.refused(400);
        assert!(message.contains("aliases"), "{message}");
    }
}

#[test]
fn a_field_that_is_there_twice_in_yaml_is_said_or_refused() {
    let test = TestServer::new("twice");
    let _server = test.start();
    let client = test.client();
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: '1'\n  b: '2'\n";
    let apply = format!("{MAPS}/a?fieldManager=x");
    for (method, path, media) in [
        ("POST", format!("{MAPS}?dryRun=All"), "application/yaml"),
        ("PATCH", format!("{apply}&dryRun=All"), APPLY),
    ] {
        let strict = format!("{path}&fieldValidation=Strict");
        let message = raw(&client, method, &strict, media, body).refused(400);
        assert!(message.contains("duplicate field \"data.b\""), "{message}");
        let warned = raw(&client, method, &path, media, body);
        let warning = warned.header("warning").unwrap_or_default().to_owned();
        assert!(warning.contains("data.b"), "{warning}");
        assert_eq!(warned.ok()["data"]["b"], "2");
        let ignored = format!("{path}&fieldValidation=Ignore");
        let ignored = raw(&client, method, &ignored, media, body);
        assert_eq!(ignored.header("warning"), None);
    }
}

#[test]
fn a_watcher_that_takes_nothing_is_overtaken() {
    const OBJECTS: usize = 40;
    let test = TestServer::new("slow-watcher");
    let _server = test.start();
    let mut client = test.client();
    for name in 0..OBJECTS {
        let large = map(&format!("m{name}"), &"x".repeat(100_000));
        client.post(MAPS, &large).ok();
    }
    let mut events = client.lines(&format!("{MAPS}?watch=true"));
    assert_eq!(events.next().unwrap()["type"], "ADDED");
    // More than the log remembers, while it takes nothing of the rest.
    for letter in ["a", "b", "c"] {
        for name in 0..OBJECTS {
            let change = json!({"data": {"a": letter.repeat(100_000)}});
            client.merge(&format!("{MAPS}/m{name}"), &change).ok();
        }
    }
    let rest: Vec<Value> = std::iter::from_fn(|| events.next()).collect();
    let last = rest.last().unwrap();
    assert_eq!(
        (&last["type"], &last["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    assert!(rest.len() < OBJECTS - 1, "the past is not kept for it");
}
