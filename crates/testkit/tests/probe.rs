//! What the kernel can do: the agent says the same as the kernel does, wherever one may ask.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, Call, Node, PLEXUS, Start, bin, config};
use serde_json::Value;
use std::process::Command;

/// A kind of link, and what `ip` needs to make one.
const KINDS: [(&str, &str); 7] = [
    ("veth", "type veth peer name y0"),
    ("bridge", "type bridge"),
    ("macvlan", "link eth1 type macvlan"),
    ("ipvlan", "link eth1 type ipvlan"),
    ("vlan", "link eth1 type vlan id 77"),
    ("vrf", "type vrf table 77"),
    ("dummy", "type dummy"),
];

#[test]
fn the_probe_agrees_with_the_kernel() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let probe = node
        .ns()
        .run(&bin(PLEXUS).to_string_lossy(), &["doctor", "--kernel"]);
    let ready = agent.get("/readyz").unwrap();
    let log = std::fs::read_to_string(node.log()).unwrap();
    for (kind, how) in KINDS {
        let there = node
            .ns()
            .try_sh(&format!("ip link add x0 {how}; ip link del x0"));
        let line = probe
            .lines()
            .find(|line| line.starts_with(&format!("{kind}:")));
        let line = line.unwrap_or_else(|| panic!("no line for {kind}:\n{probe}"));
        assert_eq!(line.contains(": yes"), there, "{line}");
        if !there {
            assert!(
                ready.body.contains(kind),
                "/readyz does not say it: {ready:?}"
            );
            assert!(log.contains(kind), "the log does not say it: {log}");
        }
    }
    assert_eq!(
        ready.status, 200,
        "what nobody asks for makes nobody unready"
    );
    Call::new(&node, "STATUS", &config::macvlan(&node))
        .run()
        .done();
}

/// By its socket, which its configuration file and the environment do not get in the way of.
#[test]
fn an_agent_is_asked_by_its_socket() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let socket = node.socket().display().to_string();
    let ask = |words: &[&str]| {
        let mut command = Command::new(bin(PLEXUS));
        command.arg("agent").args(words);
        command
            .env("PLEXUS_SOCKET", &socket)
            .env("PLEXUS_CONFIG", "/none");
        command.output().unwrap()
    };
    let out = |words: &[&str]| {
        let output = ask(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(out(&["status"]).starts_with("ready\n"));
    assert_eq!(
        out(&["status", "--live"]),
        agent.get("/healthz").unwrap().body
    );
    assert!(out(&["metrics"]).contains("plexus_task_stuck"));
    let pod = node.pod("c1");
    pod.add(&config::bridge());
    assert!(out(&["attachments"]).contains("\"c1\""));
    assert_eq!(out(&["attachments", "--pod", "team-a/web"]).trim(), "[]");
    drop(agent);
    let error = String::from_utf8(ask(&["status"]).stderr).unwrap();
    assert!(error.contains("does not answer"), "{error}");
}

#[test]
fn a_probe_leaves_nothing() {
    let node = Node::new();
    let before = node.dump_kernel(None);
    node.ns()
        .run(&bin(PLEXUS).to_string_lossy(), &["doctor", "--kernel"]);
    before.assert_same(&node.dump_kernel(None), "after doctor --kernel");
    let _agent = Agent::start(&node);
    before.assert_same(&node.dump_kernel(None), "after the start of an agent");
}

/// Whatever the moment of its death.
#[test]
fn a_probe_that_is_killed_leaves_nothing() {
    let node = Node::new();
    let (path, log) = (node.file("tmp"), node.file("effects"));
    std::fs::create_dir(&path).unwrap();
    let probe = |variable: &str, value: &str| {
        let mut command = Command::new(bin(PLEXUS));
        command
            .args(["doctor", "--kernel"])
            .env("TMPDIR", &path)
            .env(variable, value);
        node.ns().enter(|| command.output()).unwrap().status
    };
    let before = node.dump_kernel(None);
    assert!(probe("PLEXUS_EFFECTS_LOG", &log.display().to_string()).success());
    let passed = std::fs::read_to_string(&log).unwrap();
    let pinned = passed
        .lines()
        .position(|line| line.contains("router.mount>"));
    let pinned = pinned.unwrap_or_else(|| panic!("no mark after the mount:\n{passed}")) + 1;
    for at in 1..=passed.lines().count() {
        let ended = probe("PLEXUS_DIE_AT", &at.to_string());
        assert!(!ended.success(), "it dies at {at}");
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let path = path.display().to_string();
        let left: Vec<&str> = mounts.lines().filter(|line| line.contains(&path)).collect();
        assert_eq!(left, [""; 0], "killed at {at}, {pinned} is after the mount");
        assert!(!mounts.contains("/proc/version"), "killed at {at}");
    }
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "files");
    before.assert_same(&node.dump_kernel(None), "after all of them");
}

#[test]
fn only_what_needs_a_missing_feature_is_refused() {
    for (provider, key, value) in [
        ("macvlan", "mode", Value::from("bridge")),
        ("ipvlan", "mode", Value::from("l3")),
        ("vlan", "vlanId", Value::from(5)),
    ] {
        let node = Node::new();
        let mut config = config::macvlan(&node);
        config.as_object_mut().unwrap().remove("mode");
        config["provider"] = provider.into();
        config[key] = value;
        refused_alone(&node, provider, &config);
    }
}

fn refused_alone(node: &Node, provider: &str, config: &Value) {
    let lacks = format!("lacks-{provider}");
    let agent = Start::on(node).env("PLEXUS_MISTAKE", &lacks).ready();
    let ready = agent.get("/readyz").unwrap();
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains(provider), "{ready:?}");
    let pod = node.pod("c1");
    let before = node.dump(Some(&pod));
    let (code, text) = pod.cni("ADD", config).error();
    assert_eq!(code, 2, "{text}");
    // A kernel that lacks it says so itself.
    let why = ["switched off", "the kernel has no"];
    assert!(why.iter().any(|why| text.contains(why)), "{text}");
    for word in ["network blue", provider, "doctor --kernel"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    before.assert_same(&node.dump(Some(&pod)), "a network that cannot be made");
    let (code, text) = Call::new(node, "STATUS", config).run().error();
    assert!(code == 50 && text.contains(provider), "{code} {text}");
    Call::new(node, "STATUS", &config::bridge()).run().done();
    pod.add(&config::bridge());
}
