//! Lists as servers give them: in part, in pages, without an end.

use super::*;
use crate::client::ChosenServer;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

/// A server that answers each request, by its path and query, once per connection.
pub(in crate::client) fn serve(
    socket: &std::path::Path,
    mut answer: impl FnMut(&str) -> (u16, Value) + Send + 'static,
) {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).unwrap();
    let mut serve = move |stream: std::io::Result<std::os::unix::net::UnixStream>| {
        let mut stream = stream.unwrap();
        let mut request = [0; 4096];
        let length = stream.read(&mut request).unwrap();
        let request = String::from_utf8_lossy(&request[..length]).into_owned();
        let (status, body) = answer(request.split(' ').nth(1).unwrap());
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream);
        }
    });
}

pub(in crate::client) fn refused(code: u16, reason: &str, message: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}),
    )
}

/// A server that shows namespace team-a alone.
fn server(socket: &std::path::Path) {
    serve(socket, |path| {
        let path = path.split('?').next().unwrap();
        match path {
            "/api/v1/namespaces/team-a" => (200, json!({"metadata": {"name": "team-a"}})),
            path if path.contains("/namespaces/team-a/") => (
                200,
                json!({"metadata": {}, "items": [{"metadata": {"name": "x", "namespace": "team-a"}}]}),
            ),
            path => refused(403, "Forbidden", &format!("you may not list {path}")),
        }
    });
}

#[test]
fn who_may_see_one_namespace_sees_that() {
    let socket = std::env::temp_dir().join(format!("px-one-namespace-{}", std::process::id()));
    server(&socket);
    let session = Session::open(&ChosenServer::Socket(socket.clone()), None).unwrap();
    let snapshot = session.snapshot(&Need::ALL, Some("team-a"), 0).unwrap();
    let nobody = session.snapshot(&[Need::Records], None, 0).unwrap();
    let _ = std::fs::remove_file(&socket);
    for (list, found) in [
        ("attachments", &snapshot.records),
        ("networks", &snapshot.networks),
        ("nads", &snapshot.nads),
        ("namespaces", &snapshot.namespaces),
    ] {
        assert_eq!(found.len(), 1, "{list}");
        assert_eq!(snapshot.hidden(list, Some("team-a")), None);
        let why = snapshot.hidden(list, Some("team-b")).unwrap();
        assert!(
            why.contains("you may not list") && why.contains("only namespace team-a"),
            "{why}"
        );
    }
    // Claims are seen, their classes are not.
    assert!(!snapshot.waiting.is_empty());
    assert_eq!(snapshot.hidden("waiting", Some("team-a")), None);
    assert!(snapshot.hidden("waiting", None).is_some());
    assert!(snapshot.hidden("blocks", Some("team-a")).is_some());
    assert!(nobody.hidden("attachments", Some("team-a")).is_some());
}

pub(in crate::client) fn socket(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("px-{name}-{}", std::process::id()))
}

fn page(names: &[&str], next: &str) -> (u16, Value) {
    let items: Vec<Value> = names
        .iter()
        .map(|name| json!({"metadata": {"name": name}}))
        .collect();
    (200, json!({"metadata": {"continue": next}, "items": items}))
}

#[test]
fn a_list_that_was_forgotten_half_way_is_made_anew() {
    let socket = socket("expired");
    serve(&socket, |path| match path {
        path if path.contains("continue=") => refused(410, "Expired", "it is too old"),
        path if path.contains("limit=") => page(&["a", "b"], "more"),
        _ => page(&["a", "c", "d"], ""),
    });
    let session = Session::open(&ChosenServer::Socket(socket.clone()), None).unwrap();
    let listed = session.list(&kind("nodes").unwrap(), None, None).unwrap();
    let _ = std::fs::remove_file(&socket);
    let names: Vec<&str> = listed.iter().map(crate::snapshot::name).collect();
    assert_eq!(names, ["a", "c", "d"], "each once, as it is now");
}

#[test]
fn a_list_without_an_end_is_an_error_and_not_cut() {
    let socket = socket("endless");
    serve(&socket, |_| page(&["a"], "more"));
    let session = Session::open(&ChosenServer::Socket(socket.clone()), None).unwrap();
    let error = session.list(&kind("nodes").unwrap(), None, None);
    let _ = std::fs::remove_file(&socket);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("after 2000 objects"), "{error}");
}
