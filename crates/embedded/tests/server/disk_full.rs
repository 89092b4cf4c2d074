//! A disk with no room: writes are refused with a clear word, reads go on, nothing is half there, and
//! with room again everything is as before. The disk is a small one of its own, in a mount namespace.

use crate::common::{Client, MAPS, Place, Process, map, this, version};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// Mounts a disk of 6 MB with a filler of 2 MB on the directory, then becomes the command.
const ON_A_SMALL_DISK: &str = r#"
    mount -t tmpfs -o size=6m none "$1" && head -c 2097152 /dev/zero > "$1/filler" && shift &&
    exec "$@"
"#;

struct Small {
    server: Process,
    /// The disk, as seen from here.
    disk: PathBuf,
}

fn start(place: &Place) -> Small {
    let disk = place.path().join("disk");
    std::fs::create_dir_all(&disk).unwrap();
    let mut command = Command::new("unshare");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| {
        use std::os::unix::fs::MetadataExt;
        me.uid() == 0
    });
    command.args(["--mount"]);
    if !is_root {
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args(["sh", "-c", ON_A_SMALL_DISK, "sh"])
        .arg(&disk)
        .arg(this());
    let server = Process::start_by(command, &disk, &place.path().join("api.sock"));
    let inside = disk.strip_prefix("/").unwrap();
    let disk = PathBuf::from(format!("/proc/{}/root", server.id())).join(inside);
    Small { server, disk }
}

/// Writes until there is no room; what was taken, and the refusal.
fn fill(client: &mut Client, taken: &mut BTreeMap<String, u64>) -> String {
    for count in 0..1000 {
        let name = format!("full-{count}");
        let answer = client.post(MAPS, &map(&name, &"x".repeat(100_000)));
        if answer.code == 201 {
            taken.insert(name, version(&answer.body));
            continue;
        }
        let before = version(&client.get(MAPS).ok());
        let again = client.post(MAPS, &map(&name, &"x".repeat(100_000)));
        assert_eq!(again.body["reason"], "InsufficientStorage");
        assert_eq!(
            version(&client.get(MAPS).ok()),
            before,
            "a refused write has no version"
        );
        return answer.refused(507);
    }
    panic!("the disk is never full");
}

fn names(client: &mut Client) -> BTreeMap<String, u64> {
    let list = client.get(MAPS).ok();
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| {
            (
                item["metadata"]["name"].as_str().unwrap().to_owned(),
                version(item),
            )
        })
        .collect()
}

#[test]
fn writes_are_refused_and_nothing_is_lost() {
    let place = Place::new("full");
    let small = start(&place);
    let mut client = small.server.client();
    let mut watch = client.lines(&format!("{MAPS}?watch=true"));
    let mut taken = BTreeMap::new();
    let message = fill(&mut client, &mut taken);
    assert!(
        message.contains("is full: nothing was written"),
        "{message}"
    );
    assert!(taken.len() > 5, "{}", taken.len());
    assert_eq!(
        names(&mut client),
        taken,
        "what was answered, and nothing else"
    );
    let patch = json!({"data": {"b": "x".repeat(200_000)}});
    client.merge(&format!("{MAPS}/full-0"), &patch).refused(507);
    assert_eq!(names(&mut client), taken);

    std::fs::remove_file(small.disk.join("filler")).unwrap();
    let newest = taken.values().max().copied().unwrap();
    let made = client.post(MAPS, &map("after", "1")).ok();
    assert_eq!(version(&made), newest + 1, "no version was wasted");
    let changed = client
        .merge(&format!("{MAPS}/full-0"), &json!({"data": {"b": "2"}}))
        .ok();
    client.delete(&format!("{MAPS}/full-1")).ok();
    for _ in 0..taken.len() {
        assert_eq!(watch.what().0, "ADDED");
    }
    for expected in [
        ("ADDED", "after"),
        ("MODIFIED", "full-0"),
        ("DELETED", "full-1"),
    ] {
        let (kind, name) = watch.what();
        assert_eq!((kind.as_str(), name.as_str()), expected);
    }

    // The file as it is now, for another server.
    let copy = Place::new("full-copy");
    for file in ["store.db", "store.db-wal"] {
        let _ = std::fs::copy(small.disk.join(file), copy.path().join(file));
    }
    small.server.kill();
    let _server = copy.start();
    taken.insert("after".to_owned(), version(&made));
    taken.insert("full-0".to_owned(), version(&changed));
    taken.remove("full-1");
    assert_eq!(names(&mut copy.client()), taken);
}
