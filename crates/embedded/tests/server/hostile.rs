//! Peers that mean no good, or cannot help it: whatever they send, they get an answer or are cut off,
//! and others do not notice.

use crate::common::{Answer, Client, MAPS, TIMEOUT, TestServer, Wire, map, read, until};
use plexus_embedded::Server;
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::time::{Duration, Instant};

/// Sends bytes, and gives what comes back until the end.
fn raw(client: &Client, bytes: &[u8]) -> Option<Answer> {
    let mut wire = client.connect().unwrap();
    let _ = wire.write_all(bytes);
    let _ = wire.flush();
    read(&mut BufReader::new(wire)).ok()
}

/// Whether a peer is cut off within reason.
fn is_cut_off(mut wire: Box<dyn Wire>) -> bool {
    let begun = Instant::now();
    let _ = wire.read_to_end(&mut Vec::new());
    begun.elapsed() < TIMEOUT
}

#[test]
fn what_is_no_http_is_answered_or_cut_off() {
    let test = TestServer::new("raw");
    let server = test.start();
    let (unix, tls) = (test.client(), Client::tls(server.kubeconfig()));
    for client in [&unix, &tls] {
        let mut answered = 0;
        for bytes in [
            &b"\x00\x01\x02\xff\xfe\r\n\r\n"[..],
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /api/v1/../../etc HTTP/1.1\r\nhost: x\r\n\r\n",
            b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
            b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n",
            b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
            b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n",
        ] {
            if let Some(answer) = raw(client, bytes) {
                assert!(answer.code >= 400, "{bytes:?}: {answer:?}");
                answered += 1;
            }
        }
        assert!(
            answered >= 5,
            "only {answered} of ten are told what is wrong"
        );
        let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(1 << 20));
        assert!(raw(client, long.as_bytes()).is_none_or(|answer| answer.code >= 400));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(10_000));
        assert!(raw(client, many.as_bytes()).is_none_or(|answer| answer.code >= 400));
    }
    test.client().get("/api/v1/namespaces").ok();
}

#[test]
fn bodies_that_are_too_much_are_refused() {
    let test = TestServer::new("bodies");
    let _server = test.start();
    let mut client = test.client();
    let large = client.post(MAPS, &map("a", &"x".repeat(4 << 20)));
    assert!(large.refused(413).contains("too large"));
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    for (method, path, media) in [
        ("POST", MAPS.to_owned(), "application/json"),
        ("PATCH", format!("{MAPS}/a"), "application/merge-patch+json"),
        (
            "PATCH",
            format!("{MAPS}/a?fieldManager=x"),
            "application/apply-patch+yaml",
        ),
        ("DELETE", format!("{MAPS}/a"), "application/json"),
    ] {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {media}\r\n\
             content-length: {}\r\n\r\n{deep}",
            deep.len()
        );
        let answer = raw(&client, request.as_bytes()).unwrap();
        assert_eq!(answer.code, 400, "{method} {media}: {}", answer.body);
    }
}

#[test]
fn nonsense_in_every_place_is_refused_and_never_an_error_of_ours() {
    let test = TestServer::new("nonsense");
    let _server = test.start();
    let mut client = test.client();
    client.post(MAPS, &map("a", "1")).ok();
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}"),
        json!([]),
        json!([null]),
        json!({}),
        json!({"": null}),
        json!([[{"a": {}}]]),
    ];
    let places = [
        "/apiVersion",
        "/kind",
        "/metadata",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/labels",
        "/metadata/annotations",
        "/metadata/finalizers",
        "/metadata/ownerReferences",
        "/metadata/managedFields",
        "/metadata/resourceVersion",
        "/metadata/uid",
        "/metadata/generation",
        "/metadata/creationTimestamp",
        "/metadata/deletionTimestamp",
        "/data",
        "/data/a",
        "/spec",
        "/spec/subnets",
        "/spec/subnets/a",
        "/status",
    ];
    let networks = "/apis/plexus.dev/v1alpha1/namespaces/default/networks";
    let network = json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "Network", "metadata": {"name": "n"},
        "spec": {"subnets": {"a": {"cidr": "10.0.0.0/24"}}}, "status": {},
    });
    client.post(networks, &network).ok();
    for (path, object) in [(MAPS, map("a", "1")), (networks, network)] {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        for spot in places {
            for value in &values {
                let mut bent = object.clone();
                let Some(field) = bent.pointer_mut(spot).map(|field| *field = value.clone()) else {
                    continue;
                };
                let () = field;
                for how in ["?dryRun=All", "?dryRun=All&fieldValidation=Strict"] {
                    let one = format!("{path}/{name}{how}");
                    let applied = format!("{one}&fieldManager=x&force=true");
                    for (method, path, media) in [
                        ("POST", format!("{path}{how}"), "application/json"),
                        ("PUT", one.clone(), "application/json"),
                        ("PATCH", one.clone(), "application/merge-patch+json"),
                        ("PATCH", one.clone(), "application/json-patch+json"),
                        (
                            "PATCH",
                            one.clone(),
                            "application/strategic-merge-patch+json",
                        ),
                        ("PATCH", applied, "application/apply-patch+yaml"),
                        ("DELETE", one.clone(), "application/json"),
                    ] {
                        let answer = client.send(method, &path, media, Some(&bent)).unwrap();
                        let message = answer.body["message"].as_str().unwrap_or("");
                        let typed = message.contains("typed patch");
                        assert!(
                            answer.code < 500 || typed,
                            "{method} {path} {bent}: {message}"
                        );
                    }
                }
            }
        }
    }
    let left = client.get(&format!("{MAPS}/a")).ok();
    assert_eq!(left["data"], json!({"a": "1"}));
}

#[test]
fn queries_that_make_no_sense_are_refused() {
    let test = TestServer::new("queries");
    let _server = test.start();
    let mut client = test.client();
    for query in [
        "limit=x",
        "limit=99999999999999999999999",
        "continue=%00",
        "resourceVersion=abc",
        "resourceVersion=-1",
        "resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Sometimes",
        "watch=perhaps",
        "watch=true&resourceVersion=x",
        "watch=true&sendInitialEvents=true",
        "watch=true&resourceVersionMatch=NotOlderThan",
        "labelSelector=x%20in",
        "labelSelector=%21%21",
        "fieldSelector=data.a%3D1",
        "timeoutSeconds=x&watch=true",
        "%zz",
    ] {
        let answer = client.get(&format!("{MAPS}?{query}"));
        assert!(
            [400, 422].contains(&answer.code),
            "{query}: {} {}",
            answer.code,
            answer.body
        );
        assert_eq!(answer.body["kind"], "Status", "{query}");
    }
}

#[test]
fn slow_peers_are_cut_off() {
    let test = TestServer::new("slow");
    let mut options = test.options();
    let short = Duration::from_millis(300);
    options.limits.idle = short;
    options.limits.idle_stranger = short;
    options.limits.handshake = short;
    options.limits.receive = short;
    let server = Server::start(options).unwrap();
    let client = test.client();
    let silent = std::net::TcpStream::connect(server.address()).unwrap();
    silent.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert!(
        is_cut_off(Box::new(silent)),
        "a handshake that never begins"
    );
    let mut half = client.connect().unwrap();
    half.write_all(b"GET /api/v1/na").unwrap();
    assert!(is_cut_off(half), "a request that never ends");
    let mut body = client.connect().unwrap();
    let head = format!("POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{");
    body.write_all(head.as_bytes()).unwrap();
    let answer = read(&mut BufReader::new(body)).unwrap();
    assert_eq!(answer.code, 408);
}

#[test]
fn a_peer_that_reads_nothing_is_cut_off() {
    let test = TestServer::new("reads-nothing");
    let mut options = test.options();
    options.limits.stalled = Duration::from_millis(500);
    options.limits.connections = 2;
    let _server = Server::start(options).unwrap();
    let mut client = test.client();
    for count in 0..40 {
        client
            .post(MAPS, &map(&format!("big-{count}"), &"x".repeat(100_000)))
            .ok();
    }
    let mut deaf = client.connect().unwrap();
    deaf.write_all(format!("GET {MAPS} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes())
        .unwrap();
    // Its place is free again when it has been given up.
    until("another can connect", || {
        let mut other = test.client();
        other
            .send("GET", "/readyz", "", None)
            .ok()
            .filter(|answer| answer.code == 200)
    });
    drop(deaf);
}

#[test]
fn there_is_a_limit_to_connections() {
    let test = TestServer::new("many");
    let mut options = test.options();
    options.limits.connections = 8;
    let _server = Server::start(options).unwrap();
    let client = test.client();
    let held: Vec<_> = (0..8).map(|_| client.connect().unwrap()).collect();
    until("one too many is closed", || {
        let mut one = client.connect().ok()?;
        let _ = one.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n");
        matches!(one.read(&mut [0; 1]), Ok(0) | Err(_)).then_some(())
    });
    drop(held);
    until("there is room again", || {
        let answer = test.client().send("GET", "/readyz", "", None).ok()?;
        (answer.code == 200 && answer.body == Value::String("ok".to_owned())).then_some(())
    });
}
