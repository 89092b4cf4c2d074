//! `cnitool`, the CNI project's own runtime, against ours: every verb, in the versions that have
//! it, in plugin mode and in standalone mode.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod interop;

use interop::{Cnitool, attachments, connect, links};
use plexus_testkit::{Agent, Node, Pod, config};
use serde_json::{Value, json};
use std::net::SocketAddr;

const VERSIONS: [&str; 3] = ["0.4.0", "1.0.0", "1.1.0"];

/// The three kinds of configuration, in one version.
fn networks(node: &Node, version: &str) -> [Value; 3] {
    let list = |name: &str, mut plugin: Value| {
        for key in ["cniVersion", "name"] {
            plugin.as_object_mut().unwrap().remove(key);
        }
        json!({"cniVersion": version, "name": name, "plugins": [plugin]})
    };
    [
        list("pods", config::bridge()),
        list("blue", config::macvlan(node)),
        list("all", config::four(node)),
    ]
}

/// The interfaces that each makes, and something that answers through each of them.
fn expected(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "pods" => (
            &["eth0", "lo"],
            &["10.244.1.1", "fd00:244:1::1", "192.0.2.1"],
        ),
        "blue" => (&["eth0", "lo"], &["10.10.0.1"]),
        _ => (
            &["eth0", "lo", "net1", "net2", "storage0"],
            &[
                "10.244.1.1",
                "10.10.0.1",
                "-I net2 192.0.2.2",
                "10.20.0.1",
                "192.0.2.1",
            ],
        ),
    }
}

fn node() -> Node {
    let node = interop::node();
    node.outside()
        .sh("ip address add 10.10.0.1/24 dev out0; ip address add 10.20.0.1/24 dev out0");
    node
}

#[test]
fn add_check_and_del_in_every_version() {
    let node = node();
    let agent = Agent::start(&node);
    let tool = Cnitool::on(&node);
    for version in VERSIONS {
        for network in networks(&node, version) {
            let name = network["name"].as_str().unwrap();
            let what = format!("{name} {version}");
            tool.network(&network);
            let pod = node.pod("c1");
            let result = tool.run("add", name, &pod).ok();
            assert_eq!(result["cniVersion"], version, "{what}: {result}");
            let (interfaces, answering) = expected(name);
            assert_eq!(links(pod.ns()), interfaces, "{what}");
            for address in answering {
                assert!(pod.ns().pings(address), "{what}: {address} does not answer");
            }
            tool.run("check", name, &pod).done();
            tool.run("del", name, &pod).done();
            assert_eq!(links(pod.ns()), ["lo"], "{what}");
            tool.run("del", name, &pod).done();
            assert_eq!(attachments(&agent).len(), 0, "{what}");
            assert_eq!(tool.cached(), [""; 0], "{what}");
        }
    }
    assert!(!node.dump(None).has("pools "), "{}", node.dump(None));
}

#[test]
fn check_tells_what_is_wrong() {
    let node = node();
    let _agent = Agent::start(&node);
    let tool = Cnitool::on(&node);
    let damages = [
        (
            "pods",
            "ip address flush dev eth0 scope global",
            "10.244.1.",
        ),
        ("blue", "ip link del eth0", "eth0"),
        ("all", "ip link del storage0", "storage0"),
    ];
    for version in VERSIONS {
        for (network, (name, damage, named)) in networks(&node, version).iter().zip(damages) {
            tool.network(network);
            let pod = node.pod("c1");
            tool.run("add", name, &pod).ok();
            pod.ns().sh(damage);
            let checked = tool.run("check", name, &pod);
            assert!(!checked.success(), "{damage}: {checked:?}");
            assert!(checked.stderr.contains(named), "{damage}: {checked:?}");
            tool.run("del", name, &pod).done();
            assert_eq!(links(pod.ns()), ["lo"], "{damage}");
        }
    }
}

/// `cnitool` knows no list of what is valid: it removes what it has cached, by DEL, and then sends
/// a GC without a list, which must not remove what others made.
#[test]
fn gc_removes_what_the_tool_made_and_nothing_else() {
    let node = node();
    let agent = Agent::start(&node);
    let tool = Cnitool::on(&node);
    for version in VERSIONS {
        for network in networks(&node, version) {
            let name = network["name"].as_str().unwrap();
            tool.network(&network);
            let (pod, other) = (node.pod("c1"), node.pod("other"));
            tool.run("add", name, &pod).ok();
            // Of the same network, but by another runtime.
            let mut config = network["plugins"][0].clone();
            config["name"] = name.into();
            config["cniVersion"] = version.into();
            remove_static(&mut config);
            other.add(&config);
            let made = links(other.ns());
            tool.run("gc", name, &pod).done();
            assert_eq!(links(pod.ns()), ["lo"], "{name} {version}");
            assert_eq!(links(other.ns()), made, "{name} {version}");
            other.del(&config);
            assert_eq!(attachments(&agent).len(), 0, "{name} {version}");
        }
    }
}

/// An address that is written down can be had once.
fn remove_static(config: &mut Value) {
    if let Some(networks) = config["networks"].as_array_mut() {
        networks.retain(|network| network["ipam"]["type"] != "static");
    }
}

#[test]
fn status_needs_an_agent_and_a_usable_configuration() {
    let node = node();
    let tool = Cnitool::on(&node);
    let pod = node.pod("c1");
    {
        let _agent = Agent::start(&node);
        for version in VERSIONS {
            for network in networks(&node, version) {
                tool.network(&network);
                let name = network["name"].as_str().unwrap();
                tool.run("status", name, &pod).done();
            }
        }
        let mut wrong = networks(&node, "1.1.0")[1].clone();
        wrong["name"] = "wrong".into();
        wrong["plugins"][0]["mode"] = "sideways".into();
        tool.network(&wrong);
        let answer = tool.run("status", "wrong", &pod);
        assert!(
            !answer.success() && answer.stderr.contains("sideways"),
            "{answer:?}"
        );
    }
    for version in VERSIONS {
        tool.network(&networks(&node, version)[0]);
        let answer = tool.run("status", "pods", &pod);
        // Before 1.1.0 there is no STATUS to ask.
        assert_eq!(
            answer.success(),
            version != "1.1.0",
            "{version}: {answer:?}"
        );
    }
    let answer = tool.run("status", "pods", &pod);
    assert!(answer.stderr.contains("agent"), "{answer:?}");
}

/// A list may offer versions; the tool takes the newest that it speaks.
#[test]
fn a_choice_of_versions() {
    let node = node();
    let _agent = Agent::start(&node);
    let tool = Cnitool::on(&node);
    let mut network = networks(&node, "1.0.0")[0].clone();
    network["cniVersions"] = json!(["0.4.0", "1.0.0", "1.1.0"]);
    tool.network(&network);
    let pod = node.pod("c1");
    assert_eq!(tool.run("add", "pods", &pod).ok()["cniVersion"], "1.1.0");
    tool.run("check", "pods", &pod).done();
    tool.run("del", "pods", &pod).done();
}

/// Several networks of one container, with what a runtime asks for: addresses, MAC, CNI_ARGS.
#[test]
fn several_calls_for_one_container() {
    let node = node();
    let agent = Agent::start(&node);
    let mut blue = networks(&node, "1.1.0")[1].clone();
    blue["plugins"][0]["capabilities"] = json!({"ips": true, "mac": true});
    let pods = networks(&node, "1.0.0")[0].clone();
    let pod = node.pod("c1");
    let first = Cnitool::on(&node);
    first.network(&pods);
    first.network(&blue);
    let cap_args = json!({"ips": ["10.10.0.77/24"], "mac": "02:00:00:00:00:77"}).to_string();
    let second = Cnitool::on(&node)
        .env("CNI_IFNAME", "net1")
        .env("CAP_ARGS", &cap_args);
    let args = "IgnoreUnknown=1;IP=10.10.0.78;MAC=02:00:00:00:00:78;K8S_POD_NAME=x";
    let third = Cnitool::on(&node)
        .env("CNI_IFNAME", "net2")
        .env("CNI_ARGS", args);
    first.run("add", "pods", &pod).ok();
    let got = [
        second.run("add", "blue", &pod).ok(),
        third.run("add", "blue", &pod).ok(),
    ];
    for (result, end) in got.iter().zip(["77", "78"]) {
        assert_eq!(
            result["ips"][0]["address"],
            format!("10.10.0.{end}/24"),
            "{result}"
        );
        assert_eq!(
            result["interfaces"][0]["mac"],
            format!("02:00:00:00:00:{end}"),
            "{result}"
        );
    }
    for (tool, network) in [(&first, "pods"), (&second, "blue"), (&third, "blue")] {
        tool.run("check", network, &pod).done();
    }
    assert_eq!(
        seen_from(&node, &pod, "10.10.0.1"),
        Some("10.10.0.77".parse().unwrap())
    );
    second.run("del", "blue", &pod).done();
    assert_eq!(links(pod.ns()), ["eth0", "lo", "net2"]);
    assert_eq!(
        seen_from(&node, &pod, "10.10.0.1"),
        Some("10.10.0.78".parse().unwrap())
    );
    third.run("del", "blue", &pod).done();
    first.run("del", "pods", &pod).done();
    assert_eq!(
        (links(pod.ns()), attachments(&agent).len()),
        (vec!["lo".to_owned()], 0)
    );
}

fn seen_from(node: &Node, pod: &Pod<'_>, outside: &str) -> Option<std::net::IpAddr> {
    let at = SocketAddr::new(outside.parse().unwrap(), 7010);
    connect(pod.ns(), node.outside(), at, at)
}
