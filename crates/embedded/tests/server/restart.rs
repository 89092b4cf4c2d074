//! A server that is stopped and started again.

use crate::common::{Client, MAPS, Place, map, version};
use serde_json::json;

#[test]
fn everything_stays_and_versions_go_on() {
    let place = Place::new("restart");
    let server = place.start();
    let mut client = place.client();
    let made = client.post(MAPS, &map("a", "1")).ok();
    let changed = client
        .merge(&format!("{MAPS}/a"), &json!({"data": {"b": "2"}}))
        .ok();
    client.post(MAPS, &map("gone", "1")).ok();
    client.delete(&format!("{MAPS}/gone")).ok();
    let before = client.get("/api/v1/configmaps").ok();
    let newest = server.version();
    server.stop();

    let server = place.start();
    let mut client = place.client();
    assert!(server.version() >= newest, "{} {newest}", server.version());
    let again = client.get(&format!("{MAPS}/a")).ok();
    assert_eq!(again, changed);
    let after = client.get("/api/v1/configmaps").ok();
    assert_eq!(after["items"], before["items"]);
    assert!(version(&after) >= version(&before));
    let next = client.post(MAPS, &map("b", "1")).ok();
    assert!(version(&next) > newest && version(&next) > version(&made));
}

#[test]
fn a_watch_goes_on_where_it_was() {
    let place = Place::new("resume");
    let server = place.start();
    let mut client = place.client();
    let from = version(&client.post(MAPS, &map("a", "1")).ok());
    client
        .merge(&format!("{MAPS}/a"), &json!({"data": {"a": "2"}}))
        .ok();
    client.delete(&format!("{MAPS}/a")).ok();
    server.stop();

    let _server = place.start();
    let mut client = place.client();
    let mut events = client.lines(&format!("{MAPS}?watch=true&resourceVersion={from}"));
    assert_eq!(events.what(), ("MODIFIED".to_owned(), "a".to_owned()));
    let end = events.next().unwrap();
    assert_eq!(end["type"], "DELETED");
    assert!(version(&end["object"]) > from + 1, "{end}");
    client.post(MAPS, &map("b", "1")).ok();
    assert_eq!(events.what(), ("ADDED".to_owned(), "b".to_owned()));
}

#[test]
fn who_had_a_certificate_still_has_one() {
    let place = Place::new("certificates");
    let server = place.start();
    let port = server.address();
    let kept = place.path().join("kept");
    std::fs::copy(server.kubeconfig(), &kept).unwrap();
    server.stop();
    let mut options = place.options();
    options.listen = port;
    let _server = plexus_embedded::Server::start(options).unwrap();
    let namespaces = Client::tls(&kept).get("/api/v1/namespaces").ok();
    assert_eq!(namespaces["items"].as_array().unwrap().len(), 4);
}

#[test]
fn one_server_per_directory() {
    let place = Place::new("one");
    let _server = place.start();
    let second = plexus_embedded::Server::start(place.options())
        .err()
        .unwrap();
    assert!(second.to_string().contains("is in use"), "{second}");
    place.client().get("/api/v1/namespaces").ok();
}

#[test]
fn a_server_can_be_started_inside_another_runtime() {
    let place = Place::new("inside");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = place.start();
        place.client().get("/api/v1/namespaces").ok();
        drop(server);
    });
    assert!(!place.path().join("api.sock").exists());
}
