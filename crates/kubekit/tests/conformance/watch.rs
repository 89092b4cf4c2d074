//! Watches: from a version on, with what exists first, by selector; how they end.

use crate::test_namespace::{TIMEOUT, TestNamespace, test, version};
use futures::{Stream, StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Event};
use serde_json::json;
use std::collections::BTreeSet;
use tokio::time::timeout;

/// What kind of event, about whom; the object's version.
type WatchedChange = (&'static str, String, u64);

#[test]
fn from_a_version_on_everything_comes_once_and_in_order() {
    test("order", |ns| async move {
        let before = ns.map("before").await;
        let events = follow(
            &ns,
            WatchParams::default(),
            &before.resource_version().unwrap(),
        )
        .await;
        pin_mut!(events);
        ns.map("a").await;
        label(&ns, "a", "x", Some("1")).await;
        ns.map("b").await;
        let last = ns.maps().get("a").await.unwrap();
        ns.maps()
            .delete("a", &DeleteParams::default())
            .await
            .unwrap();
        let mut seen = Vec::new();
        while seen.len() < 4 {
            seen.push(next(&mut events).await);
        }
        let what: Vec<_> = seen
            .iter()
            .map(|(kind, name, _)| (*kind, name.as_str()))
            .collect();
        assert_eq!(
            what,
            [
                ("added", "a"),
                ("modified", "a"),
                ("added", "b"),
                ("deleted", "a")
            ]
        );
        assert!(
            seen.windows(2).all(|pair| pair[0].2 < pair[1].2),
            "{seen:?}"
        );
        assert!(
            seen[3].2 > version(&last),
            "a deletion has a version of its own"
        );
    });
}

#[test]
fn entering_and_leaving_a_selector_is_coming_and_going() {
    test("select", |ns| async move {
        let before = ns.map("a").await;
        let wanted = WatchParams::default().labels("x=1");
        let events = follow(&ns, wanted, &before.resource_version().unwrap()).await;
        pin_mut!(events);
        label(&ns, "a", "x", Some("1")).await;
        label(&ns, "a", "y", Some("2")).await;
        label(&ns, "a", "x", Some("3")).await;
        let left = ns.maps().get("a").await.unwrap();
        for expected in ["added", "modified", "deleted"] {
            let (kind, name, at) = next(&mut events).await;
            assert_eq!((kind, name.as_str()), (expected, "a"));
            if kind == "deleted" {
                assert_eq!(at, version(&left));
            }
        }
    });
}

#[test]
fn what_exists_comes_first_and_its_end_is_marked() {
    test("initial", |ns| async move {
        ns.map("a").await;
        ns.map("b").await;
        let params = WatchParams::default().initial_events();
        let stream = ns.maps().watch(&params, "").await.unwrap();
        pin_mut!(stream);
        let mut names = Vec::new();
        let mark = loop {
            match timeout(TIMEOUT, stream.try_next())
                .await
                .unwrap()
                .unwrap()
                .unwrap()
            {
                WatchEvent::Added(map) => names.push(map.name_any()),
                WatchEvent::Bookmark(mark) => break mark,
                other => panic!("{other:?}"),
            }
        };
        names.retain(|name| name != "kube-root-ca.crt");
        names.sort();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            mark.metadata.annotations["k8s.io/initial-events-end"],
            "true"
        );
        assert!(mark.metadata.resource_version.parse::<u64>().unwrap() > 0);
        ns.map("c").await;
        let (kind, name, _) = next(&mut stream).await;
        assert_eq!((kind, name.as_str()), ("added", "c"));
    });
}

/// Of a kind of ours: a server that has just begun may still know everything since the first version
/// of its own kinds, but ours were defined later.
#[test]
fn a_version_that_is_too_old_is_an_event_not_an_answer() {
    test("expired", |ns| async move {
        let networks = ns.networks();
        let stream = networks.watch(&WatchParams::default(), "1").await.unwrap();
        pin_mut!(stream);
        let event = timeout(TIMEOUT, stream.try_next()).await.unwrap();
        match event.unwrap().unwrap() {
            WatchEvent::Error(status) => {
                assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_watch_ends_when_its_time_is_up() {
    test("timeout", |ns| async move {
        let made = ns.map("a").await;
        let params = WatchParams::default().timeout(1).disable_bookmarks();
        let params = params.fields("metadata.name=a");
        let events = ns
            .maps()
            .watch(&params, &made.resource_version().unwrap())
            .await
            .unwrap();
        let all: Vec<_> = timeout(TIMEOUT, events.try_collect())
            .await
            .unwrap()
            .unwrap();
        assert!(all.is_empty(), "{all:?}");
    });
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "it is what other people's programs use"
)]
fn the_watcher_of_kube_works_in_both_ways() {
    test("watcher", |ns| async move {
        let ways = [
            ("list", watcher::Config::default()),
            ("stream", watcher::Config::default().streaming_lists()),
        ];
        for (way, config) in ways {
            ns.map(way).await;
            let later = format!("{way}-later");
            let events = watcher::watcher(ns.maps(), config);
            pin_mut!(events);
            // A stream may begin a little in the past: then what is new comes after its beginning.
            let mut missing = BTreeSet::from([way.to_owned(), later.clone()]);
            while !missing.is_empty() {
                let event = timeout(TIMEOUT, events.next()).await.unwrap().unwrap();
                match event.unwrap() {
                    Event::InitApply(map) | Event::Apply(map) => {
                        let _ = missing.remove(&map.name_any());
                    }
                    Event::InitDone => {
                        ns.map(&later).await;
                    }
                    Event::Init => {}
                    Event::Delete(map) => panic!("{} was not deleted", map.name_any()),
                }
            }
        }
    });
}

async fn label(ns: &TestNamespace, name: &str, key: &str, value: Option<&str>) {
    let patch = json!({"metadata": {"labels": {key: value}}});
    ns.maps()
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

async fn follow(
    ns: &TestNamespace,
    params: WatchParams,
    from: &str,
) -> impl Stream<Item = Result<WatchEvent<ConfigMap>, kube::Error>> + use<> {
    ns.maps().watch(&params, from).await.unwrap()
}

/// The next one that is about an object of ours.
async fn next(
    events: &mut (impl Stream<Item = Result<WatchEvent<ConfigMap>, kube::Error>> + Unpin),
) -> WatchedChange {
    loop {
        let event = timeout(TIMEOUT, events.try_next()).await.expect("an event");
        let (kind, map) = match event.unwrap().expect("the watch goes on") {
            WatchEvent::Added(map) => ("added", map),
            WatchEvent::Modified(map) => ("modified", map),
            WatchEvent::Deleted(map) => ("deleted", map),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => panic!("{status:?}"),
        };
        // The cluster puts one of its own into every namespace.
        if map.name_any() != "kube-root-ca.crt" {
            return (kind, map.name_any(), version(&map));
        }
    }
}
