//! DELs that have neither a journal nor, sometimes, a valid configuration; subnets that are full.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, Node, Pod, Start, TIMEOUT, config, within};
use serde_json::{Value, json};

/// Every kind of network, none of them where the first is: natively understood under a plugin's
/// name (and that plugin is not installed), executed, and with a name of its own.
fn all_kinds(node: &Node) -> Value {
    let mut old = config::macvlan_entry(node);
    let entry = old.as_object_mut().unwrap();
    entry.remove("provider");
    entry.insert("type".to_owned(), json!("macvlan"));
    entry.insert("name".to_owned(), json!("old"));
    let mut named = config::macvlan_entry(node);
    named["interface"] = json!("storage0");
    let entries = [config::bridge_entry(), old, config::fake_entry(node), named];
    config::standalone("all", &entries)
}

fn damage_journal(node: &Node) {
    let file = node.journal().file().to_owned();
    for suffix in ["db-wal", "db-shm"] {
        let _ = std::fs::remove_file(file.with_extension(suffix));
    }
    std::fs::write(&file, "this is no database ".repeat(500)).unwrap();
}

/// Attaches, loses the journal, and gives an agent that answers without one.
fn attached_without_journal<'n>(node: &'n Node, pod: &Pod<'_>, config: &Value) -> Agent<'n> {
    let agent = Agent::start(node);
    pod.add(config);
    let dump = node.dump_kernel(None);
    assert!(dump.has("pools old/") && dump.has("pools blue/"), "{dump}");
    agent.kill();
    damage_journal(node);
    let agent = Start::on(node).spawn();
    let up = within(TIMEOUT, || agent.get("/healthz").is_some());
    assert!(up, "an agent without a journal must still serve DEL");
    agent
}

fn nothing_is_left(node: &Node, pod: &Pod<'_>) {
    let links = pod.ns().run("ip", &["-o", "link"]);
    assert_eq!(links.lines().count(), 1, "only lo: {links}");
    let dump = node.dump_kernel(None);
    assert!(!dump.has("pools "), "host-local's files are left:\n{dump}");
    let log = std::fs::read_to_string(node.file("fake.log")).unwrap();
    assert_eq!(log, "ADD c1 net2 1.1.0\nDEL c1 net2 1.1.0\n");
}

#[test]
fn del_without_a_journal_knows_every_interface() {
    let node = Node::new();
    let pod = node.pod("c1");
    let config = all_kinds(&node);
    let _agent = attached_without_journal(&node, &pod, &config);
    pod.del(&config);
    nothing_is_left(&node, &pod);
}

#[test]
fn del_without_a_journal_and_with_a_broken_configuration() {
    let node = Node::new();
    let pod = node.pod("c1");
    let mut config = all_kinds(&node);
    let _agent = attached_without_journal(&node, &pod, &config);
    config["networks"][0]["no-such-key"] = json!(1);
    assert!(!pod.cni("ADD", &config).success());
    pod.del(&config);
    nothing_is_left(&node, &pod);
    let log = std::fs::read_to_string(node.log()).unwrap();
    assert!(
        log.contains("left out") && log.contains("macvlan"),
        "what was not run is said: {log}"
    );
}

#[test]
fn del_without_a_journal_fails_while_a_plugin_that_ran_is_missing() {
    let node = Node::new();
    let pod = node.pod("c1");
    let config = all_kinds(&node);
    let _agent = attached_without_journal(&node, &pod, &config);
    let plugin = node.delegate_bin().join(plexus_testkit::FAKE);
    let aside = node.file("aside");
    std::fs::rename(&plugin, &aside).unwrap();
    let (_, text) = pod.cni("DEL", &config).error();
    assert!(text.contains(plexus_testkit::FAKE), "{text}");
    std::fs::rename(&aside, &plugin).unwrap();
    pod.del(&config);
    nothing_is_left(&node, &pod);
}

#[test]
fn a_full_subnet_gives_way_to_the_next() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let mut config = config::bridge();
    config["ipam"]["subnets"] = json!(["10.244.1.0/30", "10.244.2.0/24"]);
    let (one, two, three) = (node.pod("c1"), node.pod("c2"), node.pod("c3"));
    let address = |result: &Value| result["ips"][0]["address"].as_str().unwrap().to_owned();
    assert_eq!(address(&one.add(&config)), "10.244.1.2/30");
    let before = node.dump_kernel(None);
    assert_eq!(address(&two.add(&config)), "10.244.2.2/24");
    let kept = |what: &str| before.has(what) && node.dump_kernel(None).has(what);
    assert!(kept("10.244.1.1/30") && kept("10.244.2.1/24"), "{before}");
    agent.kill();
    let _agent = Agent::start(&node);
    assert_eq!(address(&three.add(&config)), "10.244.2.3/24");
    for pod in [&one, &two, &three] {
        pod.cni("CHECK", &config).done();
        assert!(pod.ns().pings("192.0.2.1"));
    }
}

/// As NADs of two namespaces may be.
#[test]
fn two_networks_of_one_name_both_get_their_bridge_back() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let (one, two) = (config::bridge(), {
        let mut config = config::bridge();
        config["bridge"] = json!("px1");
        config["ipam"]["subnets"] = json!(["10.244.9.0/24"]);
        config
    });
    node.pod("c1").add(&one);
    node.pod("c2").add(&two);
    agent.kill();
    for bridge in ["px0", "px1"] {
        node.ns().run("ip", &["link", "del", bridge]);
    }
    let _agent = Agent::start(&node);
    for (bridge, gateway) in [("px0", "10.244.1.1/24"), ("px1", "10.244.9.1/24")] {
        let found = node.ns().run("ip", &["-o", "addr", "show", bridge]);
        assert!(found.contains(gateway), "{bridge}: {found}");
    }
}
