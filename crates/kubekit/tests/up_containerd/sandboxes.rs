//! Pod sandboxes, made with `crictl`.

use super::containerd::Containerd;
use super::{eventually, networks};
use plexus_testkit::{Node, Up};
use serde_json::{Value, json};

/// A sandbox on two networks; its id.
#[track_caller]
fn sandbox(containerd: &Containerd<'_>, name: &str) -> String {
    let node = containerd.node;
    let config = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "attempt": 1},
        "log_directory": node.file("logs"),
        "annotations": {"plexus.dev/networks": "fabric,blue"},
        "linux": {"cgroup_parent": format!("/{}", node.name())},
    });
    let file = node.file(&format!("sandbox-{name}.json"));
    std::fs::write(&file, config.to_string()).unwrap();
    containerd.ok(
        containerd.crictl(&["runp", &file.display().to_string()]),
        name,
    )
}

/// Address and namespace of a sandbox's interface, as the agent has it.
#[track_caller]
fn address(up: &Up<'_>, sandbox: &str, interface: &str) -> (String, String) {
    let all = up.attachments();
    let is_it = |one: &&Value| one["container"] == sandbox && one["interface"] == interface;
    let found = all
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {interface}: {all:?}"));
    let ip = found["ips"][0].as_str().unwrap().split('/').next().unwrap();
    (ip.to_owned(), found["netns"].as_str().unwrap().to_owned())
}

#[track_caller]
fn assert_connected(node: &Node, up: &Up<'_>, one: &str, two: &str) {
    for interface in ["eth0", "net1", "net2"] {
        let (_, netns) = address(up, one, interface);
        let (there, _) = address(up, two, interface);
        let ping = format!("nsenter --net={netns} ping -c 1 -W 2 {there}");
        assert!(
            node.ns().try_sh(&format!("{ping} || {ping}")),
            "{one} to {two} on {interface}: {there}"
        );
    }
}

fn record(name: &str) -> String {
    format!("default/{name}: 0/3 eth0 cluster-default, 1/3 net1 fabric, 2/3 net2 blue")
}

#[test]
fn sandboxes_on_two_networks_while_everything_comes_and_goes() {
    let node = Node::new();
    let up = Up::start(&node);
    networks(&up);
    let mut containerd = Containerd::start(&node);
    let (one, two) = (sandbox(&containerd, "one"), sandbox(&containerd, "two"));
    assert_connected(&node, &up, &one, &two);
    eventually("each sandbox has its record", || {
        up.records() == [record("one"), record("two")]
    });

    // Everything killed; one sandbox goes while nobody serves it.
    up.kill();
    containerd.restart();
    containerd.ok(
        containerd.crictl(&["stopp", &two]),
        "stopped without an agent",
    );
    let up = Up::start(&node);
    eventually("what went meanwhile is released", || {
        up.records() == [record("one")]
    });
    containerd.ok(containerd.crictl(&["rmp", &two]), "removed");
    let two = sandbox(&containerd, "two");
    assert_connected(&node, &up, &one, &two);
    assert_connected(&node, &up, &two, &one);

    // Stopped in order, and the sandboxes with it.
    assert!(up.stop().success());
    let up = Up::start(&node);
    assert_connected(&node, &up, &one, &two);
    eventually("records are as before", || {
        up.records() == [record("one"), record("two")]
    });
    containerd.ok(
        containerd.crictl(&["rmp", "--force", "--all"]),
        "all removed",
    );
    eventually("nothing is left", || {
        up.records().is_empty() && up.attachments().is_empty()
    });
}
