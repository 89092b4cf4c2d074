//! What one object or one request may cost: how deep, how large, how much is said about it. Whatever is
//! taken can be read, changed and removed again, also by the next server.

use crate::common::{Answer, Client, MAPS, Process, TestServer, map};
use k8s_openapi::api::core::v1::Pod;
use plexus_embedded::Server;
use serde_json::{Value, json};

const NETWORKS: &str = "/apis/plexus.dev/v1alpha1/namespaces/default/networks";
const PODS: &str = "/api/v1/namespaces/default/pods";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn network(name: &str, config: Value) -> Value {
    json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "Network", "metadata": {"name": name},
        "spec": {"provider": "delegate", "config": config},
    })
}

fn maps_in_maps(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({"a": inner}))
}

fn lists_in_lists(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

/// How many maps and lists are around the innermost value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn send(client: &mut Client, method: &str, path: &str, media: &str, body: &Value) -> Answer {
    client.send(method, path, media, Some(body)).unwrap()
}

#[test]
fn whatever_depth_is_taken_can_be_read_changed_and_removed() {
    let test = TestServer::new("depth");
    let server = test.start();
    let mut client = test.client();
    let mut taken = Vec::new();
    for count in [1, 20, 50].into_iter().chain(80..=127) {
        for (form, config) in [
            ("maps", maps_in_maps(count)),
            ("lists", json!({"a": lists_in_lists(count)})),
        ] {
            let name = format!("{form}-{count}");
            let answer = client.post(NETWORKS, &network(&name, config));
            match answer.code {
                201 => taken.push(name),
                400 => {}
                _ => assert!(answer.refused(422).contains("nested"), "{name}"),
            }
        }
    }
    assert!(taken.contains(&"maps-80".to_owned()), "{taken:?}");
    assert!(!taken.contains(&"maps-120".to_owned()), "{taken:?}");
    let list = client.get(NETWORKS).ok();
    assert_eq!(list["items"].as_array().unwrap().len(), taken.len());
    assert!(depth(&list) <= 110, "{}", depth(&list));
    for name in &taken {
        let path = format!("{NETWORKS}/{name}");
        let label = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]}});
        client.merge(&path, &label).ok();
        client
            .merge(&format!("{path}/status"), &json!({"status": {}}))
            .ok();
        let applied = json!({
            "apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": name, "labels": {"c": "d"}},
        });
        let applying = format!("{path}?fieldManager=x");
        send(&mut client, "PATCH", &applying, APPLY, &applied).ok();
        client.delete(&path).ok();
    }
    server.stop();
    let _server = test.start();
    let mut client = test.client();
    for name in &taken {
        let path = format!("{NETWORKS}/{name}");
        let found = client.get(&path).ok();
        assert!(found["metadata"]["deletionTimestamp"].is_string());
        let free = json!({"metadata": {"finalizers": null}});
        client.merge(&path, &free).ok();
        client.get(&path).refused(404);
    }
}

#[test]
fn no_way_leads_around_the_depth() {
    let test = TestServer::new("depth-ways");
    let server = test.start();
    let mut client = test.client();
    client.post(MAPS, &map("a", "1")).ok();
    client.post(NETWORKS, &network("n", maps_in_maps(3))).ok();
    let owned = "/metadata/managedFields/0/fieldsV1";
    let fields = (0..110).fold(json!({}), |inner, _| json!({"f:a": inner}));
    for (path, at, value) in [
        (format!("{MAPS}/a"), owned, fields),
        (
            format!("{NETWORKS}/n"),
            "/spec/config/a/a",
            maps_in_maps(110),
        ),
    ] {
        let deep = json!([{"op": "add", "path": format!("{at}/x"), "value": value}]);
        send(&mut client, "PATCH", &path, JSON_PATCH, &deep).refused(422);
    }
    server.stop();
    let _server = test.start();
    test.client().get(&format!("{MAPS}/a")).ok();
}

#[test]
fn a_patch_that_copies_itself_deeper_and_deeper_is_refused() {
    let test = TestServer::new("copies");
    let server = Process::start(test.path());
    let mut client = server.client();
    client.post(MAPS, &map("a", "1")).ok();
    let empty = |depth: usize| (1..depth).fold(json!([]), |inner, _| json!([inner]));
    let mut copies = vec![json!({"op": "add", "path": "/x", "value": empty(99)})];
    let mut deep = 99;
    for _ in 0..12 {
        let to = format!("/x{}/-", "/0".repeat(deep - 1));
        copies.push(json!({"op": "copy", "from": "/x", "path": to}));
        deep *= 2;
    }
    let mut adds = vec![json!({"op": "add", "path": "/x", "value": empty(1)})];
    adds.extend((0..150).map(|count| {
        let path = format!("/x{}/-", "/0".repeat(90 * count));
        json!({"op": "add", "path": path, "value": empty(90)})
    }));
    let moves = json!([
        {"op": "add", "path": "/x", "value": lists_in_lists(90)},
        {"op": "add", "path": "/y", "value": lists_in_lists(90)},
        {"op": "move", "from": "/x", "path": format!("/y{}/-", "/0".repeat(89))},
    ]);
    for patch in [Value::Array(copies), Value::Array(adds), moves] {
        let path = format!("{MAPS}/a?dryRun=All");
        let message = send(&mut client, "PATCH", &path, JSON_PATCH, &patch).refused(422);
        assert!(message.contains("nested"), "{message}");
    }
    let left = client.get(&format!("{MAPS}/a")).ok();
    assert_eq!(left["data"], json!({"a": "1"}));
}

#[test]
fn a_long_grace_period_is_a_time_that_everybody_can_read() {
    let test = TestServer::new("long-grace");
    let _server = test.start();
    let mut client = test.client();
    let asked: [Option<i64>; 3] = [Some(1_000_000_000_000), Some(i64::MAX), None];
    for (count, grace) in asked.into_iter().enumerate() {
        let pod = json!({
            "metadata": {"name": format!("p{count}"), "finalizers": ["x/y"]},
            "spec": {
                "nodeName": "n", "containers": [{"name": "a", "image": "x"}],
                "terminationGracePeriodSeconds": i64::MAX,
            },
        });
        client.post(PODS, &pod).ok();
        let path = format!("{PODS}/p{count}");
        let options = json!({"gracePeriodSeconds": grace});
        let dying = send(&mut client, "DELETE", &path, "application/json", &options).ok();
        let typed: Pod = serde_json::from_value(dying).unwrap();
        assert!(typed.metadata.deletion_timestamp.is_some());
        client
            .merge(&path, &json!({"metadata": {"finalizers": null}}))
            .ok();
    }
    let list = client.get(PODS).ok();
    for item in list["items"].as_array().unwrap() {
        let _: Pod = serde_json::from_value(item.clone()).unwrap();
    }
}

#[test]
fn a_refusal_of_a_thousand_faults_is_short() {
    let test = TestServer::new("faults");
    let server = Process::start(test.path());
    let mut client = server.client();
    client.post(MAPS, &map("a", "1")).ok();
    let before = server.peak();
    let labels: serde_json::Map<String, Value> = (0..200_000)
        .map(|count| (format!("?{count}"), json!("")))
        .collect();
    let mut bad = map("b", "1");
    bad["metadata"]["labels"] = Value::Object(labels);
    let routes = vec![json!(1); 500_000];
    let mut items = network("n", json!({}));
    items["spec"]["routes"] = Value::Array(routes);
    let mut unknown = map("c", "1");
    for count in 0..100_000 {
        unknown[format!("x{count}")] = json!(1);
    }
    let strict = "fieldValidation=Strict&dryRun=All";
    for (path, object, code) in [
        (format!("{MAPS}?dryRun=All"), &bad, 422),
        (format!("{NETWORKS}?dryRun=All"), &items, 422),
        (format!("{MAPS}?{strict}"), &unknown, 400),
    ] {
        let answer = client.post(&path, object);
        assert_eq!(answer.code, code);
        let length = answer.body.to_string().len();
        assert!(length < 64 << 10, "{path}: {length} bytes");
        assert!(answer.body["message"].as_str().unwrap().contains("more"));
    }
    let grown = server.peak().saturating_sub(before);
    assert!(grown < 300 << 10, "{grown} KiB");
}

#[test]
fn an_object_cannot_grow_without_end() {
    let test = TestServer::new("large");
    let _server = test.start();
    let mut client = test.client();
    client.post(NETWORKS, &network("n", json!({}))).ok();
    let path = format!("{NETWORKS}/n");
    let more = |key: &str| json!({"metadata": {"finalizers": ["x/y"]}, "spec": {"config": {key: "x".repeat(2 << 20)}}});
    let large = client.merge(&path, &more("a")).ok();
    let message = client.merge(&path, &more("b")).refused(413);
    assert!(message.contains("networks.plexus.dev \"n\""), "{message}");
    assert_eq!(client.get(&path).ok(), large, "nothing was written");
    let fill = "x".repeat((1 << 20) - 1500);
    let full = json!({"spec": {"config": {"c": fill}}});
    client.merge(&path, &full).ok();
    // It can still be removed: what that takes is not counted against it.
    client.delete(&path).ok();
    client
        .merge(&path, &json!({"metadata": {"finalizers": null}}))
        .ok();
    client.get(&path).refused(404);
    let message = client
        .post(MAPS, &map("a", &"x".repeat((1 << 20) + 1)))
        .refused(422);
    assert!(message.contains("1048576"), "{message}");
    client.post(MAPS, &map("b", &"x".repeat(1 << 20))).ok();
}

#[test]
fn many_finalizers_do_not_stop_the_others() {
    let test = TestServer::new("finalizers");
    let _server = test.start();
    let mut client = test.client();
    let mut object = map("a", "1");
    let finalizers: Vec<Value> = (0..60_000)
        .map(|count| json!(format!("a/{count}")))
        .collect();
    object["metadata"]["finalizers"] = Value::Array(finalizers);
    client.post(MAPS, &object).ok();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    client.merge(&format!("{MAPS}/a"), &label).ok();
    client.delete(&format!("{MAPS}/a")).ok();
    let more = json!({"metadata": {"finalizers": ["b/c"]}});
    let message = client.merge(&format!("{MAPS}/a"), &more).refused(422);
    assert!(message.contains("no new finalizers"), "{message}");
}

#[test]
fn nothing_is_deleted_in_all_namespaces_at_once() {
    let test = TestServer::new("everywhere");
    let mut options = test.options();
    options.namespaces = vec!["other".to_owned()];
    let _server = Server::start(options).unwrap();
    let mut client = test.client();
    client.post(MAPS, &map("a", "1")).ok();
    for path in [
        "/api/v1/configmaps",
        "/api/v1/configmaps?labelSelector=a%3Db",
        "/api/v1/namespaces",
        "/apis/plexus.dev/v1alpha1/networks",
    ] {
        client.delete(path).refused(405);
    }
    client.get(&format!("{MAPS}/a")).ok();
    client.get("/api/v1/namespaces/other").ok();
    client.delete(MAPS).ok();
    client.get(&format!("{MAPS}/a")).refused(404);
    let resources = client.get("/api/v1").ok();
    let namespaces = resources["resources"].as_array().unwrap().iter();
    let mut namespaces = namespaces.filter(|one| one["name"] == "namespaces");
    let verbs = namespaces.next().unwrap()["verbs"].clone();
    assert!(
        !verbs
            .as_array()
            .unwrap()
            .contains(&json!("deletecollection"))
    );
}
