//! A disk with no room: writes are refused with a clear word, reads go on, nothing is half there, and
//! with room again everything is as before. The disk is a small one of its own, in a mount namespace.

use crate::common::{Client, MAPS, Process, TestServer, map, this, until, version};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};

/// Mounts a disk of 6 MB on the directory, and keeps it until it is killed.
const A_SMALL_DISK: &str =
    r#"mount -t tmpfs -o size=6m,mode=700 none "$1" && touch "$1/mounted" && exec sleep 600"#;

/// A small disk, and servers on it.
struct Small {
    holder: Child,
    test: TestServer,
    /// As the servers see it.
    disk: PathBuf,
    as_root: bool,
}

impl Small {
    fn new(name: &str) -> Self {
        let test = TestServer::new(name);
        let disk = test.path().join("disk");
        std::fs::create_dir_all(&disk).unwrap();
        let as_root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !as_root {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["sh", "-c", A_SMALL_DISK, "sh"]).arg(&disk);
        let small = Self {
            holder: command.spawn().unwrap(),
            test,
            disk,
            as_root,
        };
        until("the disk is mounted", || {
            small.file("mounted").exists().then_some(())
        });
        small
    }

    fn start(&self) -> Process {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string(), "--mount"]);
        if !self.as_root {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg(this());
        Process::start_by(command, &self.disk, &self.test.path().join("api.sock"))
    }

    /// A file on the disk, as seen from here.
    fn file(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.disk.strip_prefix("/").unwrap()).join(name)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
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

/// What the server says of itself to whoever asks.
fn health(small: &Small, path: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(small.test.path().join("api.sock")).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap();
    (code.parse().unwrap(), body.to_owned())
}

#[test]
fn writes_are_refused_and_nothing_is_lost() {
    let small = Small::new("full");
    std::fs::write(small.file("filler"), vec![0; 2 << 20]).unwrap();
    let server = small.start();
    let mut client = server.client();
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
    assert_eq!(health(&small, "/readyz"), (503, format!("{message}\n")));
    for path in ["/livez", "/healthz", "/readyz/ping"] {
        assert_eq!(health(&small, path), (200, "ok".to_owned()), "{path}");
    }
    let patch = json!({"data": {"b": "x".repeat(200_000)}});
    client.merge(&format!("{MAPS}/full-0"), &patch).refused(507);
    assert_eq!(names(&mut client), taken);

    std::fs::remove_file(small.file("filler")).unwrap();
    let newest = taken.values().max().copied().unwrap();
    assert_eq!(
        health(&small, "/readyz").0,
        503,
        "that there is room is known once something was written"
    );
    let made = client.post(MAPS, &map("after", "1")).ok();
    assert_eq!(version(&made), newest + 1, "no version was wasted");
    assert_eq!(health(&small, "/readyz"), (200, "ok".to_owned()));
    let patch = json!({"data": {"b": "2"}});
    let changed = client.merge(&format!("{MAPS}/full-0"), &patch).ok();
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
    server.kill();
    let server = small.start();
    taken.insert("after".to_owned(), version(&made));
    taken.insert("full-0".to_owned(), version(&changed));
    taken.remove("full-1");
    assert_eq!(names(&mut server.client()), taken);
}

#[test]
fn a_server_that_is_killed_on_a_full_disk_starts_again_and_can_be_read() {
    let small = Small::new("full-restart");
    std::fs::write(small.file("filler"), vec![0; 2 << 20]).unwrap();
    let server = small.start();
    let mut taken = BTreeMap::new();
    fill(&mut server.client(), &mut taken);
    server.kill();
    // Not a byte is left, not even for the server's own small files.
    let mut last = std::fs::File::create(small.file("last")).unwrap();
    while last.write_all(&[0; 4096]).is_ok() {}
    let server = small.start();
    let mut client = server.client();
    assert_eq!(names(&mut client), taken);
    let newest = taken.values().max().copied().unwrap();
    assert!(version(&client.get(MAPS).ok()) >= newest);
    client
        .post(MAPS, &map("more", &"x".repeat(100_000)))
        .refused(507);
    std::fs::remove_file(small.file("filler")).unwrap();
    client.delete(&format!("{MAPS}/full-0")).ok();
}
