//! Bad input gets one error that names object, field, value and remedy, and changes nothing.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, Call, CniOutput, Node, Pod, TIMEOUT, config, exchange};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A call that must fail with all of `named` in its text, and leave no trace.
#[track_caller]
fn refused(node: &Node, pod: &Pod<'_>, call: Call<'_>, named: &[&str]) {
    let before = node.dump(Some(pod));
    let answer = call.run();
    let (code, text) = answer.error();
    assert_eq!(
        answer.stdout.trim().lines().count(),
        1,
        "one error: {}",
        answer.stdout
    );
    for word in named {
        assert!(text.contains(word), "{word:?} is not in {code}: {text}");
    }
    assert!(text.len() < 4000, "a flood of {} bytes", text.len());
    before.assert_same(&node.dump(Some(pod)), &format!("after {text}"));
}

/// A container whose `lo` is up already: what ADD does to it is not undone.
fn container<'n>(node: &'n Node, id: &str) -> Pod<'n> {
    let pod = node.pod(id);
    pod.ns().ip("link set lo up\n");
    pod
}

/// What a network keeps on the node is its own and stays: it is made beforehand.
fn warm(node: &Node, config: &Value) {
    let pod = node.pod("warm");
    pod.add(config);
    pod.del(config);
}

fn changed(config: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut config = config.clone();
    change(&mut config);
    config
}

#[test]
fn configurations() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = container(&node, "c1");
    let (macvlan, bridge) = (config::macvlan(&node), config::bridge());
    let cases: Vec<(Value, &[&str])> = vec![
        (
            changed(&macvlan, |c| c["colour"] = json!("red")),
            &["colour"],
        ),
        (
            changed(&macvlan, |c| c["ipam"]["colour"] = json!(1)),
            &["ipam", "colour"],
        ),
        (
            changed(&macvlan, |c| {
                c["ipam"]["ranges"][0][0]["subnet"] = json!("10.10.0.0/33")
            }),
            &["subnet", "10.10.0.0/33"],
        ),
        (
            changed(&macvlan, |c| {
                c["ipam"]["ranges"][0][0]["subnet"] = json!("ten")
            }),
            &["subnet", "ten"],
        ),
        (
            changed(&bridge, |c| c["ipam"]["exclude"] = json!(["10.99.0.0/28"])),
            &["exclude", "10.99.0.0/28"],
        ),
        (
            changed(&bridge, |c| c["ipam"]["exclude"] = json!(["10.244.1.0/24"])),
            &["exclude", "10.244.1.0/24"],
        ),
        (
            changed(&bridge, |c| {
                c["ipam"]["exclude"] = json!(["10.244.1.16/28", "10.244.1.20/30"])
            }),
            &["exclude", "10.244.1.20/30", "10.244.1.16/28"],
        ),
        (
            changed(&bridge, |c| c["ipam"]["gateway"] = json!(["10.9.9.9"])),
            &["gateway", "10.9.9.9"],
        ),
        (
            changed(&bridge, |c| c["bridge"] = json!("a/b")),
            &["bridge", "a/b"],
        ),
        (changed(&bridge, |c| c["mtu"] = json!(-1)), &["mtu", "-1"]),
        (
            changed(&bridge, |c| c["mtu"] = json!("big")),
            &["mtu", "big"],
        ),
        (
            changed(&macvlan, |c| c["mode"] = json!("sideways")),
            &["mode", "sideways"],
        ),
        (
            changed(&macvlan, |c| c["master"] = json!("nonesuch")),
            &["master", "nonesuch"],
        ),
        (
            changed(&macvlan, |c| c["provider"] = json!("pigeon")),
            &["provider", "pigeon"],
        ),
        (
            changed(&macvlan, |c| c["name"] = json!("../up")),
            &["name", "../up"],
        ),
        (
            changed(&macvlan, |c| c["ipam"]["type"] = json!("../../bin/sh")),
            &["../../bin/sh"],
        ),
        (
            changed(&macvlan, |c| c["runtimeConfig"] = json!({"mac": "no"})),
            &["mac", "no"],
        ),
        (
            changed(&macvlan, |c| {
                c["runtimeConfig"] = json!({"bandwidth": {"ingressRate": 1}})
            }),
            &["bandwidth"],
        ),
        (
            json!({"cniVersion": "1.1.0", "name": "x", "type": "plexus-cni"}),
            &["provider"],
        ),
        (config::standalone("all", &[]), &["networks"]),
        (json!([1]), &["JSON"]),
    ];
    for (config, named) in &cases {
        println!("{config}");
        refused(&node, &pod, pod.call("ADD", config), named);
    }
}

#[test]
fn entries() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    warm(&node, &config::standalone("all", &[config::routed_entry()]));
    let pod = container(&node, "c1");
    let good = config::macvlan_entry(&node);
    let cases: Vec<(Value, &[&str])> = vec![
        (
            changed(&good, |e| e["interface"] = json!("a/b")),
            &["interface", "a/b"],
        ),
        (
            changed(&good, |e| e["interface"] = json!("sixteen-bytes-16")),
            &["interface", "sixteen-bytes-16", "15"],
        ),
        (
            changed(&good, |e| e["interface"] = json!("eth0")),
            &["eth0"],
        ),
        (changed(&good, |e| e["interface"] = json!("lo")), &["lo"]),
        (
            changed(&good, |e| e["type"] = json!("macvlan")),
            &["provider", "type"],
        ),
        (
            json!({"name": "x", "type": "../px-fake", "dir": "/"}),
            &["type", "../px-fake"],
        ),
        (
            json!({"name": "x", "type": "/bin/sh"}),
            &["type", "/bin/sh"],
        ),
        (json!({"name": "x", "type": "nonesuch"}), &["nonesuch"]),
        (json!({"name": "x", "plugins": []}), &["plugins"]),
        (json!({"name": "x", "type": "plexus-cni"}), &["plexus-cni"]),
        (json!({"provider": "routed"}), &["name"]),
        (json!("blue"), &["networks"]),
    ];
    for (entry, named) in &cases {
        println!("{entry}");
        let config = config::standalone("all", &[config::routed_entry(), entry.clone()]);
        refused(&node, &pod, pod.call("ADD", &config), named);
    }
}

#[test]
fn environments() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = container(&node, "c1");
    let add = || pod.call("ADD", &config::macvlan(&node));
    let file = node.file("file");
    std::fs::write(&file, "").unwrap();
    let file = file.to_string_lossy().into_owned();
    refused(&node, &pod, add().ifname("a/b"), &["CNI_IFNAME", "a/b"]);
    refused(
        &node,
        &pod,
        add().ifname("sixteen-bytes-16"),
        &["sixteen-bytes-16", "15"],
    );
    refused(&node, &pod, add().ifname("lo"), &["lo"]);
    refused(
        &node,
        &pod,
        add().env("CNI_CONTAINERID", "../c"),
        &["CNI_CONTAINERID", "../c"],
    );
    refused(
        &node,
        &pod,
        add().env("CNI_NETNS", &file),
        &[&file, "namespace"],
    );
    refused(
        &node,
        &pod,
        add().env("CNI_NETNS", "/nowhere/ns"),
        &["/nowhere/ns"],
    );
    refused(
        &node,
        &pod,
        add().env("CNI_NETNS", "relative"),
        &["relative"],
    );
    refused(
        &node,
        &pod,
        add().env("CNI_NETNS", "/proc/self/ns/uts"),
        &["/proc/self/ns/uts"],
    );
    let node_ns = node.ns().path().to_string_lossy().into_owned();
    refused(
        &node,
        &pod,
        add().env("CNI_NETNS", &node_ns),
        &["namespace"],
    );
    refused(&node, &pod, add().args("MAC=zz"), &["MAC", "zz"]);
    refused(&node, &pod, add().args("SURPRISE=1"), &["SURPRISE"]);
    refused(
        &node,
        &pod,
        add().args("nonsense"),
        &["CNI_ARGS", "nonsense"],
    );
}

#[test]
fn the_interface_is_there_already() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    warm(&node, &config::standalone("all", &[config::routed_entry()]));
    let pod = container(&node, "c1");
    for config in [config::macvlan(&node), config::bridge(), config::routed()] {
        warm(&node, &config);
        pod.ns().sh("ip link add eth0 type veth peer name other");
        refused(&node, &pod, pod.call("ADD", &config), &["eth0", "exist"]);
        pod.ns()
            .sh("ip link del eth0; ip link add net1 type veth peer name other");
        let config = config::standalone(
            "all",
            &[config::routed_entry(), config::macvlan_entry(&node)],
        );
        refused(&node, &pod, pod.call("ADD", &config), &["net1", "exist"]);
        pod.ns().sh("ip link del net1");
    }
}

#[test]
fn the_subnet_is_full() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    for config in [config::macvlan(&node), config::bridge(), config::routed()] {
        let config = config::one_address(&config);
        let (first, second) = (node.pod("c1"), container(&node, "c2"));
        first.add(&config);
        let subnet = if config["provider"] == "macvlan" {
            "10.10.0."
        } else {
            "/30"
        };
        let name = config["name"].as_str().unwrap();
        refused(&node, &second, second.call("ADD", &config), &[subnet, name]);
        first.del(&config);
        second.add(&config);
        second.del(&config);
    }
}

#[test]
fn too_much_and_too_deep() {
    let node = Node::new();
    let mut agent = Agent::start(&node);
    let pod = container(&node, "c1");
    let big = changed(&config::routed(), |c| {
        c["dns"] = json!({"domain": "x".repeat(10 << 20)})
    });
    refused(&node, &pod, pod.call("ADD", &big), &["larger", "bytes"]);
    let deep = format!(
        r#"{{"cniVersion":"1.1.0","name":"d","type":"plexus-cni","x":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    refused(
        &node,
        &pod,
        pod.call("ADD", &json!({})).stdin(deep.into_bytes()),
        &["recursion"],
    );
    for garbage in [
        &b"not json"[..],
        b"",
        b"{\"cniVersion\":",
        b"\xff\xfe\x00",
        b"{}{}",
    ] {
        refused(
            &node,
            &pod,
            pod.call("ADD", &json!({})).stdin(garbage.to_vec()),
            &[],
        );
    }
    assert!(agent.alive());
    pod.add(&config::routed());
}

#[test]
fn garbage_on_the_socket() {
    let node = Node::new();
    let mut agent = Agent::start(&node);
    let pod = container(&node, "c1");
    let before = node.dump(Some(&pod));
    let socket = node.socket();
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(10_000));
    let requests: [&[u8]; 12] = [
        b"\x00\xff\x00\xff\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
        b"HELLO\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /cni/add HTTP/1.1\r\n\r\n",
        b"POST /cni/add HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /cni/add HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /cni/add HTTP/1.1\r\nContent-Length: 20000000\r\n\r\n{",
        b"POST /cni/add HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}",
        b"POST /cni/nothing HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for request in requests {
        let listed = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
        let start = Instant::now();
        if let Some(answer) = exchange(&socket, request) {
            assert!(
                (400..600).contains(&answer.status),
                "{listed:?}: {answer:?}"
            );
        }
        assert!(
            start.elapsed() < TIMEOUT,
            "{listed:?}: {:?}",
            start.elapsed()
        );
        assert!(agent.alive(), "{listed:?}");
    }
    before.assert_same(&node.dump(Some(&pod)), "after garbage");
    pod.add(&config::routed());
}

#[test]
fn stalled_clients_keep_nobody_waiting() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let stalled: Vec<UnixStream> = (0..100)
        .map(|number| {
            let mut stream = UnixStream::connect(node.socket()).unwrap();
            let begun: &[u8] = match number % 3 {
                0 => b"",
                1 => b"POST /cni/add HT",
                _ => b"POST /cni/add HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{\"conta",
            };
            stream.write_all(begun).unwrap();
            stream
        })
        .collect();
    let pods: Vec<_> = (0..5)
        .map(|number| node.pod(&format!("c{number}")))
        .collect();
    for pod in &pods {
        // The stalled have five seconds.
        let start = Instant::now();
        pod.add(&config::routed());
        let elapsed = start.elapsed();
        assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
        pod.del(&config::routed());
    }
    drop(stalled);
}

#[test]
fn parallel_calls_for_one_container_do_not_collide() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = container(&node, "c1");
    let adding: Vec<_> = (0..8)
        .map(|_| pod.call("ADD", &config::routed()).spawn())
        .collect();
    let results: Vec<Value> = adding
        .into_iter()
        .map(|one| CniOutput::new(&one.wait(TIMEOUT)).ok())
        .collect();
    assert!(
        results.iter().all(|result| *result == results[0]),
        "{results:?}"
    );
    assert_eq!(node.journal().records().len(), 1);
}
