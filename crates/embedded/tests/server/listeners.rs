//! The ways into a server, and its files: what another server, a crowd, or somebody who was careless
//! before can do.

use crate::common::{Client, MAPS, Process, TIMEOUT, TestServer, map, this, until};
use plexus_embedded::Server;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::time::Duration;

#[test]
fn a_socket_that_somebody_answers_on_is_left_alone() {
    let (first, second) = (TestServer::new("socket-1"), TestServer::new("socket-2"));
    let socket = first.path().join("api.sock");
    let running = Process::start(first.path());
    let contend = || {
        let mut options = second.options();
        options.unix = Some(socket.clone());
        Server::start(options)
    };
    let error = contend().err().expect("the socket is in use");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("another server answers there"), "{source}");
    running.client().get("/api/v1/namespaces").ok();
    running.kill();
    let after = contend().unwrap();
    first.client().get("/api/v1/namespaces").ok();
    // Somebody has put another one there meanwhile: it is not ours to remove.
    let beside = first.path().join("other.sock");
    let other = UnixListener::bind(&beside).unwrap();
    std::fs::rename(&beside, &socket).unwrap();
    after.stop();
    assert!(socket.exists());
    drop(other);
}

/// Its own parts come that way too: whoever removes the file does not cut them off.
#[test]
fn a_socket_that_is_removed_is_there_again() {
    let test = TestServer::new("socket-removed");
    let server = test.start();
    let socket = test.path().join("api.sock");
    let mut connected = test.client();
    connected.get(MAPS).ok();
    for replaced in [false, true] {
        if replaced {
            let beside = test.path().join("beside");
            std::fs::write(&beside, "dear").unwrap();
            std::fs::rename(&beside, &socket).unwrap();
            std::thread::sleep(Duration::from_secs(3));
            let left = std::fs::read_to_string(&socket).unwrap();
            assert_eq!(left, "dear", "what is no socket is not ours to remove");
        }
        std::fs::remove_file(&socket).unwrap();
        until("it is there again", || {
            UnixStream::connect(&socket).ok().map(drop)
        });
        test.client().get(MAPS).ok();
        let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    connected.get(MAPS).ok();
    server.stop();
    assert!(!socket.exists());
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let test = TestServer::new("no-socket");
    let path = test.path().join("api.sock");
    std::fs::write(&path, "dear").unwrap();
    let error = place_error(&test);
    assert!(error.contains("no socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear");
}

fn place_error(test: &TestServer) -> String {
    let error = Server::start(test.options()).err().unwrap();
    std::error::Error::source(&error).unwrap().to_string()
}

#[test]
fn what_others_could_read_is_closed_to_them() {
    let test = TestServer::new("modes");
    test.start().stop();
    let set = |name: &str, mode: u32| {
        let path = test.path().join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set("ca.key", 0o644);
    set("store.db", 0o664);
    test.start().stop();
    for name in ["ca.key", "store.db"] {
        let found = std::fs::metadata(test.path().join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name:?}");
    }
    set("", 0o1777);
    let error = place_error(&test);
    assert!(error.contains("everybody can put files"), "{error}");
}

/// In a process of its own, that may have few files open.
fn start_with_few_descriptors(test: &TestServer) -> Process {
    let mut command = Command::new("sh");
    let program = r#"ulimit -n 256 && exec "$0" "$@""#;
    command.args(["-c", program]).arg(this());
    Process::start_by(command, test.path(), &test.path().join("api.sock"))
}

#[test]
fn a_crowd_of_strangers_keeps_nobody_out() {
    let test = TestServer::new("crowd");
    let server = start_with_few_descriptors(&test);
    // It is written when the server answers already.
    let config = until("there is a kubeconfig", || {
        std::fs::read(test.path().join("kubeconfig")).ok()
    });
    let config: Value = serde_json::from_slice(&config).unwrap();
    let url = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let address = url.strip_prefix("https://").unwrap();
    let mut connections = Vec::new();
    let mut unnamed = config.clone();
    unnamed["users"][0]["user"] = json!({});
    for count in 0..400 {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        connections.push(stream);
        if count % 100 == 0 {
            let mut unauthenticated = Client::of_config(&unnamed);
            assert_eq!(
                unauthenticated.get("/readyz").header("connection"),
                Some("close")
            );
        }
    }
    server.client().get("/api/v1/namespaces").ok();
    let mut known = Client::of_config(&config);
    known.get("/api/v1/namespaces").ok();
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id()));
    let open = open.unwrap().count();
    assert!(open < 128, "{open} files are open");
    // Whoever came first had to leave first.
    assert!(matches!(connections[0].read(&mut [0]), Ok(0) | Err(_)));
    known.get("/api/v1/namespaces").ok();
}

#[test]
fn a_watch_that_is_read_too_slowly_ends() {
    let test = TestServer::new("slow-watch");
    let mut options = test.options();
    options.limits.stalled = Duration::from_secs(2);
    let _server = Server::start(options).unwrap();
    let mut client = test.client();
    for count in 0..8 {
        let large = map(&format!("m-{count}"), &"x".repeat(900_000));
        client.post(MAPS, &large).ok();
    }
    let mut slow = client.connect().unwrap();
    let request = format!("GET {MAPS}?watch=true HTTP/1.1\r\nhost: x\r\n\r\n");
    slow.write_all(request.as_bytes()).unwrap();
    // A little at a time, so that there is always some progress, but ever more is waiting.
    let mut came = Vec::new();
    let mut piece = vec![0; 16 << 10];
    let end = b"\r\n0\r\n\r\n";
    for count in 0..1000 {
        if count < 120 {
            std::thread::sleep(Duration::from_millis(50));
        }
        let read = slow.read(&mut piece).expect("the watch has ended");
        came.extend_from_slice(&piece[..read]);
        if read == 0 || came.ends_with(end) {
            break;
        }
    }
    assert!(came.ends_with(end), "{} bytes, and no end", came.len());
    assert!(came.len() < 8 * 900_000, "all of it came");
}
