//! The agent's log: each line says whose it is, so that one ADD can be followed among others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use plexus_testkit::{Agent, FAKE, Node, Start, config};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The name of a reference plugin: it is executed, with a warning, for a key that we do not know.
const PLUGIN: &str = "bridge";

/// Two networks whose plugins are executed with a warning each. The first takes a while; the second fails.
fn failing(node: &Node, names: [&str; 2]) -> Value {
    let entry = |name: &str, key: &str, value: &str| json!({"name": name, "type": PLUGIN, "dir": node.fake_dir(), key: value});
    let entries = [
        entry(names[0], "sleep", "0.5"),
        entry(names[1], "fail", "ADD"),
    ];
    config::standalone("all", &entries)
}

/// Two ADDs at the same time, until both have failed.
fn two_fail(node: &Node, pods: [(&str, [&str; 2]); 2]) {
    let fake = node.delegate_bin().join(FAKE);
    std::fs::copy(fake, node.delegate_bin().join(PLUGIN)).unwrap();
    let pods = pods.map(|(name, networks)| (node.pod(name), name, networks));
    let started = pods.each_ref().map(|(pod, name, networks)| {
        let args = format!("K8S_POD_NAMESPACE=shop;K8S_POD_NAME={name}-pod");
        let call = pod.call("ADD", &failing(node, *networks)).args(&args);
        call.spawn()
    });
    for call in started {
        let answer = plexus_testkit::CniOutput::new(&call.wait(plexus_testkit::TIMEOUT));
        let (_, text) = answer.error();
        assert!(text.contains("told to fail"), "{text}");
    }
}

/// What one line of JSON says: the fields of its spans, the innermost last, and its own.
fn fields(line: &str) -> Map<String, Value> {
    let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let spans = line["spans"].as_array().cloned().unwrap_or_default();
    let objects = spans.iter().chain([&line["fields"]]);
    let each = objects.filter_map(Value::as_object).cloned();
    each.flatten().collect()
}

fn lines(log: &Path, container: &str) -> Vec<String> {
    let log = std::fs::read_to_string(log).unwrap();
    let ours = log.lines().filter(|line| line.contains(container));
    ours.map(str::to_owned).collect()
}

const PODS: [(&str, [&str; 2]); 2] = [("c-one", ["red", "green"]), ("c-two", ["amber", "violet"])];

#[test]
fn each_line_of_an_add_says_whose_it_is() {
    let node = Node::new();
    let agent = Start::on(&node).args(&["--log-json"]).ready();
    two_fail(&node, PODS);
    agent.stop();
    for (name, [first, second]) in PODS {
        let lines = lines(&node.log(), name);
        let said: Vec<_> = lines.iter().map(|line| fields(line)).collect();
        for one in &said {
            assert_eq!(one["verb"], "add", "{one:?}");
            assert_eq!(one["container"], name, "{one:?}");
            assert_eq!(one["ifname"], "eth0", "{one:?}");
            assert_eq!(one["pod"], format!("shop/{name}-pod"), "{one:?}");
        }
        let places: Vec<[&str; 3]> = said
            .iter()
            .map(|one| ["message", "network", "attachment"].map(|key| one[key].as_str().unwrap()))
            .collect();
        let warning =
            "a key is not understood: the plugin is executed, and handed its keys as they are";
        let expected = [
            [warning, first, "0.0"],
            [warning, second, "1.0"],
            ["refused", second, "1.0"],
        ];
        assert_eq!(places, expected, "{lines:#?}");
        assert_eq!(said[1]["interface"], "net1", "{lines:#?}");
        assert_eq!(said[1]["kind"], "plugin", "{lines:#?}");
    }
}

#[test]
fn one_grep_finds_an_add_in_the_text() {
    let node = Node::new();
    // Lines of a level have the fields also where those of lower levels are not logged.
    let agent = Start::on(&node).args(&["--log=warn"]).ready();
    two_fail(&node, PODS);
    let pod = node.pod("c-three");
    pod.add(&config::one_address(&config::bridge()));
    agent.stop();
    for (name, networks) in PODS {
        let lines = lines(&node.log(), name);
        assert_eq!(lines.len(), 3, "{lines:#?}");
        for (line, network) in lines.iter().zip([networks[0], networks[1], networks[1]]) {
            for field in [
                "verb=add",
                &format!("container={name}"),
                &format!("pod=\"shop/{name}-pod\""),
                &format!("network={network}"),
                "attachment=",
            ] {
                assert!(line.contains(field), "{field}: {line}");
            }
            assert_eq!(line.matches("container").count(), 1, "said twice: {line}");
        }
    }
    assert!(lines(&node.log(), "c-three").is_empty());
}

#[test]
fn what_the_agent_does_by_itself_says_whose_it_is() {
    let node = Node::new();
    let agent = Agent::start(&node);
    let config = config::one_address(&config::bridge());
    let pod = node.pod("c-gone");
    let args = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web";
    pod.call("ADD", &config).args(args).run().ok();
    agent.kill();
    drop(pod);
    let agent = Start::on(&node).args(&["--log-json"]).ready();
    agent.stop();
    let lines = lines(&node.log(), "\"c-gone\"");
    let said: Vec<_> = lines.iter().map(|line| fields(line)).collect();
    // Whether the kernel has taken the namespace away yet or not, something is said of it.
    assert_eq!(said[0]["verb"], "replay", "{lines:#?}");
    for one in said {
        assert_eq!(
            (&one["ifname"], &one["pod"]),
            (&json!("eth0"), &json!("shop/web")),
            "{lines:#?}"
        );
    }
}

/// What a configuration says in vain is said once it is used: here for the plugin that Contrail had.
#[test]
fn what_a_configuration_says_in_vain_is_said() {
    let node = Node::new();
    let agent = Start::on(&node).args(&["--log-json"]).ready();
    let pod = node.pod("c-vain");
    let config = json!({"cniVersion": "1.0.0", "name": "blue", "type": "contrail-k8s-cni",
        "contrail": {"vrouter-ip": "127.0.0.1"}});
    // There is no cluster that would know the network.
    pod.call("ADD", &config).run().error();
    agent.stop();
    let lines = lines(&node.log(), "c-vain");
    let said: Vec<_> = lines.iter().map(|line| fields(line)).collect();
    let warned = |one: &&Map<String, Value>| {
        let warning = one.get("warning").and_then(Value::as_str);
        warning.is_some_and(|warning| warning.contains("contrail"))
    };
    assert_eq!(said.iter().filter(warned).count(), 1, "{lines:#?}");
}
