//! Watches that are quiet, slow, too old or too new.

use crate::common::{MAPS, TestServer, map, version};
use plexus_embedded::Server;
use serde_json::json;
use std::time::Duration;

#[test]
fn a_quiet_watch_stays_new_while_others_are_busy() {
    let test = TestServer::new("quiet");
    let mut options = test.options();
    options.bookmarks = Duration::from_millis(200);
    let server = Server::start(options).unwrap();
    let mut client = test.client();
    let nodes = "/api/v1/nodes";
    let from = version(&client.get(nodes).ok());
    let path = format!("{nodes}?watch=true&resourceVersion={from}&allowWatchBookmarks=true");
    let mut events = client.lines(&path);
    for count in 0..20 {
        client.post(MAPS, &map(&format!("m-{count}"), "1")).ok();
    }
    let newest = server.version();
    loop {
        let mark = events.next().unwrap();
        assert_eq!(mark["type"], "BOOKMARK");
        assert_eq!(mark["object"]["kind"], "Node");
        if version(&mark["object"]) >= newest {
            break;
        }
    }
    let mut plain = client.lines(&format!("{nodes}?watch=true&timeoutSeconds=1"));
    assert!(plain.next().is_none(), "nobody asked for bookmarks here");
}

#[test]
fn versions_that_are_not_known_are_an_event_not_an_answer() {
    let test = TestServer::new("unknown");
    let server = test.start();
    let client = test.client();
    for unknown in [1, server.version() + 1000] {
        let mut events = client.lines(&format!("{MAPS}?watch=true&resourceVersion={unknown}"));
        let error = events.next().unwrap();
        assert_eq!(error["type"], "ERROR");
        assert_eq!(error["object"]["code"], 410);
        assert_eq!(error["object"]["reason"], "Expired");
        assert!(events.next().is_none(), "it ends");
    }
}

#[test]
fn the_list_of_a_version_that_is_not_there_yet_is_waited_for() {
    let test = TestServer::new("later");
    let server = test.start();
    let mut client = test.client();
    let later = server.version() + 1;
    let mut other = test.client();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        other.post(MAPS, &map("a", "1")).ok();
    });
    let list = client.get(&format!("{MAPS}?resourceVersion={later}")).ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    writer.join().unwrap();
    let never = client.get(&format!("{MAPS}?resourceVersion={}", later + 1000));
    assert_eq!(
        never.body["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
    assert!(never.refused(504).contains("Too large resource version"));
}

#[test]
fn a_watcher_that_is_too_slow_is_told_to_begin_again() {
    let test = TestServer::new("too-slow");
    let _server = test.start();
    let mut client = test.client();
    let from = version(&client.get(MAPS).ok());
    let mut slow = client.lines(&format!("{MAPS}?watch=true&resourceVersion={from}"));
    client.post(MAPS, &map("a", "1")).ok();
    // More than the log keeps, and more than fits into the pipes in between.
    for count in 0..120 {
        let content = format!("{count}-{}", "x".repeat(100_000));
        client
            .merge(&format!("{MAPS}/a"), &json!({"data": {"a": content}}))
            .ok();
    }
    let mut seen = 0;
    let mut last = from;
    let end = loop {
        let event = slow.next().unwrap();
        if event["type"] == "ERROR" {
            break event;
        }
        assert!(version(&event["object"]) > last, "in order");
        last = version(&event["object"]);
        seen += 1;
        assert!(seen < 121, "nothing was forgotten");
    };
    assert_eq!(end["object"]["code"], 410);
}

#[test]
fn a_watch_in_one_namespace_tells_of_no_other() {
    let test = TestServer::new("elsewhere");
    let _server = test.start();
    let mut client = test.client();
    let from = version(&client.get(MAPS).ok());
    let mut events = client.lines(&format!("{MAPS}?watch=true&resourceVersion={from}"));
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
    client.post(elsewhere, &map("other", "1")).ok();
    client.post(MAPS, &map("mine", "1")).ok();
    assert_eq!(events.what(), ("ADDED".to_owned(), "mine".to_owned()));
}

#[test]
fn everyone_is_told_the_same_in_the_same_order() {
    let test = TestServer::new("everyone");
    let server = test.start();
    let mut client = test.client();
    let from = server.version();
    let watchers: Vec<_> = (0..20)
        .map(|_| client.lines(&format!("{MAPS}?watch=true&resourceVersion={from}")))
        .collect();
    for count in 0..50 {
        client.post(MAPS, &map(&format!("m-{count:02}"), "1")).ok();
    }
    for mut watcher in watchers {
        let names: Vec<String> = (0..50).map(|_| watcher.what().1).collect();
        let expected: Vec<String> = (0..50).map(|count| format!("m-{count:02}")).collect();
        assert_eq!(names, expected);
    }
}
