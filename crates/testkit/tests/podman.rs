//! Podman with its CNI backend: containers on two networks of ours, stopped, started again and
//! removed while the agent comes and goes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod interop;

use interop::podman::{COMMAND_TIMEOUT, IMAGE, Podman};
use interop::{attachments, links};
use plexus_testkit::{Agent, Node, config, eventually};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Podman 4.3 knows nothing newer than 1.0.0, and ignores a list that begins with 1.1.0.
fn networks(node: &Node) {
    let write = |name: &str, version: &str, plugin: Value| {
        let list = json!({"cniVersion": version, "cniVersions": [version, "1.1.0"], "name": name,
            "plugins": [plugin]});
        std::fs::write(
            node.cni_conf().join(format!("{name}.conflist")),
            list.to_string(),
        )
        .unwrap();
    };
    let capable = json!({"ips": true, "mac": true});
    write(
        "a",
        "1.0.0",
        json!({"type": "plexus-cni", "provider": "bridge", "bridge": "pxa", "capabilities": capable,
            "isDefaultGateway": true, "ipMasq": true, "ipam": config::host_local(node, "10.51.0.0/24")}),
    );
    write(
        "b",
        "0.4.0",
        json!({"type": "plexus-cni", "provider": "macvlan", "master": "eth1",
            "ipam": config::host_local(node, "10.52.0.0/24")}),
    );
}

fn reserved(node: &Node) -> Vec<String> {
    let dump = node.dump(None);
    let lines = dump.lines().filter(|line| line.starts_with("pools "));
    lines.map(str::to_owned).collect()
}

/// Every container reaches the other on each network, and the outside.
#[track_caller]
fn assert_connected(podman: &Podman<'_>) {
    for (from, to) in [("one", "two"), ("two", "one")] {
        for network in ["a", "b"] {
            let address = podman.address(to, network);
            assert!(
                podman.pings(from, &address),
                "{from} to {to} on {network}: {address}"
            );
        }
    }
    assert!(podman.pings("one", "192.0.2.1"), "the outside");
}

#[test]
fn containers_on_two_networks_while_the_agent_comes_and_goes() {
    let node = interop::node();
    networks(&node);
    let before = links(node.ns());
    let agent = Agent::start(&node);
    let podman = Podman::on(&node);
    for name in ["one", "two"] {
        podman.container(name, "a,b");
        let listed = podman.run(&["exec", name, "/bin/ip", "-o", "-4", "address"]);
        // Podman goes through the networks in no particular order.
        for text in [" eth0 ", " eth1 ", " 10.51.0.", " 10.52.0."] {
            assert!(listed.contains(text), "{listed}");
        }
    }
    assert_eq!((attachments(&agent).len(), reserved(&node).len()), (4, 4));
    assert_connected(&podman);

    // Stopped with an agent, started again by another.
    podman.run(&["stop", "--time", "0", "one"]);
    eventually("stop frees what one had", || attachments(&agent).len() == 2);
    assert_eq!(reserved(&node).len(), 2);
    agent.stop();
    let agent = Agent::start(&node);
    assert!(
        podman.pings("two", "192.0.2.1"),
        "two has lost its networks"
    );
    podman.run(&["start", "one"]);
    assert_connected(&podman);

    // Stopped without an agent: the next one does what was left undone.
    agent.kill();
    assert!(
        podman.pings("two", &podman.address("one", "a")),
        "pods need no agent to talk"
    );
    podman.run(&["stop", "--time", "0", "two"]);
    let agent = Agent::start(&node);
    eventually("the queue is worked off", || attachments(&agent).len() == 2);
    assert_eq!(reserved(&node).len(), 2);
    podman.run(&["start", "two"]);
    assert_connected(&podman);

    let namespaces: Vec<String> = attachments(&agent)
        .iter()
        .filter_map(|one| Some(one["netns"].as_str()?.to_owned()))
        .collect();
    podman.run(&["rm", "--force", "--time", "0", "one", "two"]);
    eventually("rm frees everything", || attachments(&agent).is_empty());
    assert_eq!(reserved(&node), [""; 0]);
    for path in namespaces {
        assert!(!PathBuf::from(&path).exists(), "{path} is left");
    }
    let left: Vec<String> = links(node.ns());
    let left: Vec<&String> = left.iter().filter(|name| !before.contains(name)).collect();
    assert_eq!(
        left,
        ["pxa"],
        "a network keeps its bridge, and nothing else"
    );
}

/// What a user asks for one container: an address and a MAC.
#[test]
fn an_address_and_a_mac_are_asked_for() {
    let node = interop::node();
    networks(&node);
    let agent = Agent::start(&node);
    let podman = Podman::on(&node);
    podman.container("one", "a:ip=10.51.0.77,mac=02:00:00:00:00:77");
    assert_eq!(podman.address("one", "a"), "10.51.0.77");
    let listed = podman.run(&["exec", "one", "/bin/ip", "address", "show", "dev", "eth0"]);
    assert!(
        listed.contains("10.51.0.77/24") && listed.contains("02:00:00:00:00:77"),
        "{listed}"
    );
    assert!(podman.pings("one", "192.0.2.1"));
    // Whoever wants the same address is told so, and gets nothing.
    let second = [
        "run",
        "--name",
        "two",
        "--network",
        "a:ip=10.51.0.77",
        IMAGE,
        "/bin/sleep",
        "9",
    ];
    let refused = podman.start(&second).wait(COMMAND_TIMEOUT);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && text.contains("10.51.0.77"),
        "{text}"
    );
    assert_eq!(attachments(&agent).len(), 1);
    podman.run(&["rm", "--force", "--time", "0", "one"]);
    eventually("rm frees everything", || attachments(&agent).is_empty());
    assert_eq!(reserved(&node), [""; 0]);
}
