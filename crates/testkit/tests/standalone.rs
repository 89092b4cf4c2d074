//! Standalone mode: one call, all interfaces of a container, or none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, Call, Dump, Node, Pod, config};
use serde_json::{Value, json};

fn names(pod: &Pod<'_>) -> Vec<String> {
    let text = pod.ns().run("ip", &["-j", "link"]);
    let links: Value = serde_json::from_str(&text).unwrap();
    let name = |link: &Value| link["ifname"].as_str().unwrap_or_default().to_owned();
    links.as_array().unwrap().iter().map(name).collect()
}

fn default_route(pod: &Pod<'_>, family: &str) -> String {
    pod.ns().run("ip", &[family, "route", "show", "default"])
}

#[test]
fn order_names_and_result() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let result = pod.add(&config::four(&node));
    let mut made = names(&pod);
    made.sort();
    assert_eq!(made, ["eth0", "lo", "net1", "net2", "storage0"]);
    let interfaces = result["interfaces"].as_array().unwrap();
    let inside: Vec<&Value> = interfaces
        .iter()
        .filter(|i| i.get("sandbox").is_some())
        .collect();
    assert_eq!(inside.len(), 1, "only the first: {result}");
    assert_eq!(inside[0]["name"], "eth0");
    assert!(
        interfaces
            .iter()
            .any(|i| i["name"].as_str().unwrap().starts_with("px")),
        "{result}"
    );
    let ips: Vec<&str> = result["ips"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ip| ip["address"].as_str().unwrap())
        .collect();
    assert_eq!(ips.len(), 2, "only the first's: {ips:?}");
    assert!(
        ips[0].starts_with("10.244.1.") && ips[1].starts_with("fd00:244:1:"),
        "{ips:?}"
    );
    for (link, address) in [
        ("net1", "10.10.0."),
        ("net2", "10.245.1."),
        ("storage0", "10.20.0.9/24"),
    ] {
        let listed = pod.ns().run("ip", &["address", "show", "dev", link]);
        assert!(
            listed.contains(address) && listed.contains("UP"),
            "{listed}"
        );
    }
    let rules = pod.ns().run("ip", &["rule"]);
    assert!(rules.contains("from 10.20.0.9"), "sourceRouting: {rules}");
    pod.del(&config::four(&node));
    assert_eq!(names(&pod), ["lo"]);
    let rules = pod.ns().run("ip", &["rule"]);
    assert!(!rules.contains("10.20.0.9"), "{rules}");
}

#[test]
fn the_default_gateway_is_chosen() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let cases = [
        (None, "eth0", "eth0"),
        (Some(json!("plain")), "net2", "net2"),
        (Some(json!("net2")), "net2", "net2"),
        (
            Some(json!({"4": "storage0", "6": "pods"})),
            "storage0",
            "eth0",
        ),
    ];
    for (choice, v4, v6) in cases {
        let pod = node.pod("c1");
        let mut config = config::four(&node);
        if let Some(choice) = &choice {
            config["default-gw"] = choice.clone();
        }
        pod.add(&config);
        for (family, dev) in [("-4", v4), ("-6", v6)] {
            let routes = default_route(&pod, family);
            assert_eq!(routes.lines().count(), 1, "{choice:?} {family}: {routes}");
            assert!(
                routes.contains(&format!("dev {dev}")),
                "{choice:?} {family}: {routes}"
            );
        }
        pod.del(&config);
    }
    let mut config = config::four(&node);
    config["default-gw"] = json!("nowhere");
    let (_, text) = node.pod("c1").cni("ADD", &config).error();
    assert!(
        text.contains("default-gw") && text.contains("nowhere"),
        "{text}"
    );
}

/// Its row stays, and it is tried again; what the others had is free at once.
#[test]
fn a_plugin_whose_del_fails_holds_nobody_elses_address() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let mut failing = config::fake_entry(&node);
    failing["fail"] = json!("DEL");
    let bridge = config::one_address(&config::bridge());
    let mut entry = bridge.clone();
    for key in ["cniVersion", "type"] {
        entry.as_object_mut().unwrap().remove(key);
    }
    let all = config::standalone("all", &[entry, failing]);
    let (pod, next) = (node.pod("c1"), node.pod("c2"));
    pod.add(&all);
    let (_, text) = next.cni("ADD", &bridge).error();
    assert!(text.contains("10.244.1."), "its address is taken: {text}");
    let (_, text) = pod.cni("DEL", &all).error();
    assert!(text.contains("px-fake"), "{text}");
    next.add(&bridge);
    assert_eq!(node.journal().records().len(), 2);
}

#[test]
fn any_failure_undoes_everything() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let warm = node.pod("warm");
    warm.add(&config::four_with_delegate(&node));
    warm.del(&config::four_with_delegate(&node));
    let pod = node.pod("c1");
    pod.ns().ip("link set lo up\n");
    let before = node.dump(Some(&pod));
    let mut failing = Vec::new();
    let mut entry = config::macvlan_entry(&node);
    entry["master"] = json!("nonesuch");
    failing.push((entry, "nonesuch"));
    let mut entry = config::fake_entry(&node);
    entry["fail"] = json!("ADD");
    failing.push((entry, "told to fail"));
    let mut entry = config::macvlan_entry(&node);
    entry["ipam"]["ranges"] = json!([[{"subnet": "10.30.0.0/30", "rangeStart": "10.30.0.1",
        "rangeEnd": "10.30.0.1"}]]);
    failing.push((entry, "10.30.0."));
    for (entry, named) in failing {
        for last in [true, false] {
            let mut config = config::four_with_delegate(&node);
            config["networks"][if last { 3 } else { 0 }] = entry.clone();
            let (_, text) = pod.cni("ADD", &config).error();
            assert!(text.contains(named), "{named} is not in {text}");
            before.assert_same(
                &node.dump(Some(&pod)),
                &format!("after the failure: {text}"),
            );
        }
    }
    let log = std::fs::read_to_string(node.file("fake.log")).unwrap();
    let (adds, dels) = (log.matches("ADD c1").count(), log.matches("DEL c1").count());
    assert!(
        adds > 0 && dels >= adds,
        "each failed or undone ADD gets its DEL:\n{log}"
    );
}

#[test]
fn a_repeated_add_gives_the_same() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = config::four_with_delegate(&node);
    let first = pod.add(&config);
    let dump = Dump::steady(|| node.dump(Some(&pod)));
    assert_eq!(pod.add(&config), first);
    dump.assert_same(&node.dump(Some(&pod)), "a repeated ADD changes something");
    let log = std::fs::read_to_string(node.file("fake.log")).unwrap();
    assert_eq!(log.matches("ADD").count(), 1, "{log}");
}

#[test]
fn check_covers_every_interface() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let config = config::four_with_delegate(&node);
    for (damage, named) in [
        ("ip link del net1", "net1"),
        ("ip link del net2", "net2"),
        ("ip address flush dev storage0", "10.20.0.9"),
        ("ip rule del from 10.20.0.9", "10.20.0.9"),
    ] {
        let pod = node.pod("c1");
        let mut check = config.clone();
        check["prevResult"] = pod.add(&config);
        pod.cni("CHECK", &check).done();
        pod.ns().sh(damage);
        let (_, text) = pod.cni("CHECK", &check).error();
        assert!(text.contains(named), "{damage}: {text}");
        pod.del(&config);
        assert_eq!(names(&pod), ["lo"]);
    }
}

#[test]
fn a_valid_container_keeps_all_of_its_interfaces() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let (one, other) = (node.pod("c1"), node.pod("c2"));
    let mut config = config::four(&node);
    config["networks"].as_array_mut().unwrap().truncate(3);
    one.add(&config);
    other.add(&config);
    let all = node.dump(Some(&one));
    Call::new(&node, "GC", &config).run().done();
    all.assert_same(&node.dump(Some(&one)), "GC without a list");
    let mut gc = config.clone();
    gc["cni.dev/valid-attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
    Call::new(&node, "GC", &gc).run().done();
    assert_eq!(names(&one).len(), 4);
    assert_eq!(names(&other), ["lo"]);
}

#[test]
fn delegates_are_executed_in_order_and_undone_in_reverse() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let plugin = json!({"type": plexus_testkit::FAKE, "dir": node.fake_dir()});
    let chain = json!({"name": "chain", "plugins": [plugin]});
    let config = config::standalone("all", &[config::routed_entry(), chain]);
    pod.add(&config);
    assert!(names(&pod).contains(&"net1".to_owned()));
    pod.del(&config);
    assert_eq!(names(&pod), ["lo"]);
    let log = std::fs::read_to_string(node.file("fake.log")).unwrap();
    assert_eq!(log, "ADD c1 net1 1.1.0\nDEL c1 net1 1.1.0\n");
}
