//! A server that is killed in the middle of writes: what was answered is there, and no version is
//! given out twice.

use crate::common::{Client, MAPS, Process, TestServer, map, version};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const WRITERS: usize = 8;
const ROUNDS: u64 = 4;

/// What one writer knows: the last state of each of its objects that it was told of (`None`: it is
/// gone), and the one whose fate it does not know.
#[derive(Default)]
struct Known {
    objects: BTreeMap<String, Option<u64>>,
    unknown: Option<String>,
}

#[test]
fn nothing_that_was_answered_is_lost() {
    let test = TestServer::new("crash");
    let mut newest = 0;
    let mut all: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        let server = Process::start(test.path());
        let mut client = server.client();
        check(&mut client, &all, newest);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let client = server.client();
                std::thread::spawn(move || write(client, &format!("r{round}-w{writer}")))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300 + 150 * round));
        server.kill();
        for writer in writers {
            let known = writer.join().unwrap();
            assert!(
                known.unknown.is_some(),
                "it was killed while something was being written"
            );
            newest = newest.max(known.objects.values().flatten().copied().max().unwrap_or(0));
            let acknowledged = known.objects.into_iter();
            all.extend(acknowledged.filter(|(name, _)| Some(name) != known.unknown.as_ref()));
        }
    }
    assert!(
        all.len() > 50,
        "too few writes to show anything: {}",
        all.len()
    );
    let server = Process::start(test.path());
    check(&mut server.client(), &all, newest);
    let next = server.client().post(MAPS, &map("next", "1")).ok();
    assert!(version(&next) > newest);
}

/// Makes, changes and removes objects until the server is gone.
fn write(mut client: Client, prefix: &str) -> Known {
    let mut known = Known::default();
    let end = Instant::now() + Duration::from_secs(30);
    for count in 0.. {
        assert!(Instant::now() < end, "the server was not killed");
        let name = format!("{prefix}-{count}");
        let path = format!("{MAPS}/{name}");
        known.unknown = Some(name.clone());
        let Ok(made) = client.send("POST", MAPS, "application/json", Some(&map(&name, "1"))) else {
            break;
        };
        known
            .objects
            .insert(name.clone(), Some(version(&made.ok())));
        if count % 3 == 1 {
            let patch = json!({"data": {"b": "2"}});
            let media = "application/merge-patch+json";
            let Ok(changed) = client.send("PATCH", &path, media, Some(&patch)) else {
                break;
            };
            known
                .objects
                .insert(name.clone(), Some(version(&changed.ok())));
        }
        if count % 3 == 2 {
            let Ok(gone) = client.send("DELETE", &path, "application/json", Some(&json!({})))
            else {
                break;
            };
            gone.ok();
            known.objects.insert(name, None);
        }
    }
    known
}

fn check(client: &mut Client, all: &BTreeMap<String, Option<u64>>, newest: u64) {
    let list = client.get(MAPS).ok();
    assert!(version(&list) >= newest, "{} {newest}", version(&list));
    let found: BTreeMap<&str, u64> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["metadata"]["name"].as_str().unwrap(), version(item)))
        .collect();
    for (name, acknowledged) in all {
        assert_eq!(found.get(name.as_str()), acknowledged.as_ref(), "{name}");
    }
    let mut versions: Vec<u64> = found.into_values().collect();
    let count = versions.len();
    versions.sort_unstable();
    versions.dedup();
    assert_eq!(versions.len(), count, "a version was given out twice");
    let half = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| half_written(item));
    assert_eq!(half, None);
}

/// No write leaves less than this.
fn half_written(item: &Value) -> bool {
    item["data"]["a"] != "1" || item["metadata"]["uid"].is_null()
}
