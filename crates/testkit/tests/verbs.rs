//! CNI as a runtime sees it: verbs and versions, plugin mode.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

use plexus_testkit::{Agent, Call, Dump, Node, Pod, config};
use serde_json::{Value, json};

fn version(config: &Value, version: &str) -> Value {
    let mut config = config.clone();
    config["cniVersion"] = json!(version);
    config
}

fn with(config: &Value, key: &str, value: Value) -> Value {
    let mut config = config.clone();
    config[key] = value;
    config
}

fn links(pod: &Pod<'_>) -> Vec<String> {
    let text = pod.ns().run("ip", &["-j", "link"]);
    let links: Value = serde_json::from_str(&text).unwrap();
    let name = |link: &Value| link["ifname"].as_str().unwrap_or_default().to_owned();
    links.as_array().unwrap().iter().map(name).collect()
}

fn providers(node: &Node) -> [Value; 3] {
    [config::macvlan(node), config::bridge(), config::routed()]
}

#[test]
fn every_version_has_its_result() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    for config in providers(&node) {
        for v in config::VERSIONS {
            let pod = node.pod("c1");
            let result = pod.add(&version(&config, v));
            let what = format!("{} {v}: {result}", config["provider"]);
            assert_eq!(result["cniVersion"], v, "{what}");
            let interfaces = result["interfaces"].as_array().unwrap();
            let inside: Vec<&Value> = interfaces
                .iter()
                .filter(|i| i["sandbox"] == json!(pod.netns()))
                .collect();
            assert_eq!(inside.len(), 1, "{what}");
            assert_eq!(inside[0]["name"], "eth0", "{what}");
            assert!(
                inside[0]["mac"].as_str().is_some_and(|mac| mac.len() == 17),
                "{what}"
            );
            for interface in interfaces {
                assert!(v == "1.1.0" || interface.get("mtu").is_none(), "{what}");
            }
            let ips = result["ips"].as_array().unwrap();
            assert!(!ips.is_empty(), "{what}");
            for ip in ips {
                let address = ip["address"].as_str().unwrap();
                let family = if address.contains(':') { "6" } else { "4" };
                let wanted = v.starts_with("0.").then_some(family);
                assert_eq!(ip.get("version").and_then(Value::as_str), wanted, "{what}");
                let of = ip["interface"].as_u64().unwrap() as usize;
                assert_eq!(interfaces[of]["name"], "eth0", "{what}");
            }
            pod.del(&version(&config, v));
            assert_eq!(links(&pod), ["lo"], "{what}");
        }
    }
}

#[test]
fn check_gc_and_status_belong_to_versions() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    for (index, v) in config::VERSIONS.into_iter().enumerate() {
        let pod = node.pod("c1");
        let config = version(&config::macvlan(&node), v);
        let result = pod.add(&config);
        let check = pod.cni("CHECK", &with(&config, "prevResult", result));
        let gc = Call::new(&node, "GC", &config).run();
        let status = Call::new(&node, "STATUS", &config).run();
        let since = [("CHECK", check, 2), ("GC", gc, 4), ("STATUS", status, 4)];
        for (verb, answer, first) in since {
            if index >= first {
                answer.done();
            } else {
                assert!(!answer.success(), "{verb} {v} succeeds");
                assert_eq!(answer.error().0, 1, "{verb} {v}: {answer:?}");
            }
        }
        pod.del(&config);
    }
}

#[test]
fn version_needs_no_agent_and_no_environment() {
    let node = Node::new();
    for input in ["", "{}", r#"{"cniVersion":"0.4.0"}"#] {
        let call = Call::new(&node, "VERSION", &Value::Null).stdin(input.as_bytes().to_vec());
        let answer = call.without("CNI_PATH").run().ok();
        assert_eq!(
            answer["supportedVersions"],
            json!(config::VERSIONS),
            "{answer}"
        );
        assert!(answer["cniVersion"].is_string(), "{answer}");
    }
}

#[test]
fn unknown_versions_are_refused() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    for v in ["0.2.0", "2.0.0", "1.1", ""] {
        let (code, text) = pod.cni("ADD", &version(&config::routed(), v)).error();
        assert_eq!(code, 1, "{v:?}: {text}");
        assert!(text.contains("1.1.0"), "the versions that would do: {text}");
    }
}

#[test]
fn missing_variables_are_named() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    for (verb, variable) in [
        ("ADD", "CNI_CONTAINERID"),
        ("ADD", "CNI_IFNAME"),
        ("ADD", "CNI_NETNS"),
        ("DEL", "CNI_CONTAINERID"),
        ("DEL", "CNI_IFNAME"),
        ("CHECK", "CNI_NETNS"),
        ("ADD", "CNI_COMMAND"),
    ] {
        let (code, text) = pod
            .call(verb, &config::routed())
            .env(variable, "")
            .run()
            .error();
        assert_eq!(code, 4, "{text}");
        assert!(text.contains(variable), "{text}");
    }
    let (code, text) = pod.call("HELLO", &config::routed()).run().error();
    assert!(code == 4 && text.contains("HELLO"), "{text}");
}

#[test]
fn the_same_network_twice() {
    for index in 0..3 {
        let node = Node::new();
        let _agent = Agent::start(&node);
        let config = &providers(&node)[index];
        let pod = node.pod("c1");
        pod.add(config);
        let one = node.dump(Some(&pod));
        pod.call("ADD", config).ifname("eth7").run().ok();
        assert_eq!(links(&pod), ["lo", "eth0", "eth7"]);
        pod.call("DEL", config).ifname("eth7").run().done();
        one.assert_same(&node.dump(Some(&pod)), "DEL of eth7 touches something else");
        let second = pod.call("ADD", config).ifname("eth7").run();
        let address = second.addresses()[0].clone();
        pod.del(config);
        assert_eq!(links(&pod), ["lo", "eth7"]);
        let inside = pod.ns().run("ip", &["address", "show", "dev", "eth7"]);
        assert!(inside.contains(&address), "{inside}");
        pod.call("DEL", config).ifname("eth7").run().done();
        assert_eq!(links(&pod), ["lo"]);
    }
}

#[test]
fn real_traffic_leaves_the_node() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    node.outside().sh(
        "ip address add 10.10.0.254/24 dev out0; ip route add 10.245.1.0/24 via 192.0.2.2; \
         ip route add fd00:245:1::/64 via 2001:db8::2",
    );
    let outside: [&[&str]; 3] = [
        &["10.10.0.254"],
        &["192.0.2.1", "2001:db8::1"],
        &["192.0.2.1", "2001:db8::1"],
    ];
    for (config, targets) in providers(&node).iter().zip(outside) {
        let (one, other) = (node.pod("c1"), node.pod("c2"));
        let add = |pod: &Pod<'_>| pod.cni("ADD", config).addresses();
        let (_, neighbours) = (add(&one), add(&other));
        for target in targets {
            assert!(
                one.ns().pings(target),
                "{} does not reach {target}",
                config["provider"]
            );
        }
        for neighbour in &neighbours {
            assert!(
                one.ns().pings(neighbour),
                "{} does not reach {neighbour}",
                config["provider"]
            );
        }
        if config["provider"] != "macvlan" {
            assert!(
                neighbours.iter().all(|address| node.ns().pings(address)),
                "from the node"
            );
        }
    }
}

#[test]
fn loopback_is_up_after_add() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    for config in providers(&node) {
        let pod = node.pod("c1");
        assert!(pod.ns().silent("127.0.0.1"));
        pod.add(&config);
        assert!(pod.ns().pings("127.0.0.1"));
        pod.del(&config);
    }
}

#[test]
fn a_repeated_add_gives_the_same() {
    for index in 0..3 {
        let node = Node::new();
        let _agent = Agent::start(&node);
        let config = &providers(&node)[index];
        let pod = node.pod("c1");
        let first = pod.add(config);
        let dump = Dump::steady(|| node.dump(Some(&pod)));
        assert_eq!(pod.add(config), first);
        dump.assert_same(&node.dump(Some(&pod)), "a repeated ADD changes something");
    }
}

#[test]
fn del_is_patient() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    for config in providers(&node) {
        let pod = node.pod("c1");
        pod.del(&config);
        pod.add(&config);
        pod.call("DEL", &config).without("CNI_NETNS").run().done();
        assert_eq!(links(&pod), ["lo"], "without CNI_NETNS, from the journal");
        pod.del(&config);
        pod.add(&config);
        let path = pod.netns();
        drop(pod);
        let pod = node.pod("other");
        let call = pod
            .call("DEL", &config)
            .env("CNI_CONTAINERID", "c1")
            .env("CNI_NETNS", &path);
        call.run().done();
        assert_eq!(node.journal().records(), Vec::new());
    }
    assert_eq!(node.journal().tables()["address"], Vec::new());
}

#[test]
fn what_came_before_in_the_chain_is_passed_on() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let before = json!({
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "eth9", "mac": "02:00:00:00:00:09", "sandbox": pod.netns()}],
        "ips": [{"address": "10.99.0.9/24", "interface": 0}],
        "dns": {"nameservers": ["10.99.0.1"]},
    });
    let config = with(&config::macvlan(&node), "prevResult", before);
    let result = pod.add(&config);
    let text = result.to_string();
    for kept in ["eth9", "10.99.0.9/24", "\"eth0\"", "10.10.0."] {
        assert!(text.contains(kept), "{kept} is missing: {text}");
    }
    let ips = result["ips"].as_array().unwrap();
    for ip in ips {
        let interface = &result["interfaces"][ip["interface"].as_u64().unwrap() as usize];
        let old = ip["address"] == "10.99.0.9/24";
        assert_eq!(
            interface["name"],
            if old { "eth9" } else { "eth0" },
            "{text}"
        );
    }
    pod.del(&config);
    assert_eq!(links(&pod), ["lo"]);
}

#[test]
fn check_names_what_is_missing_or_altered() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let damages: [(&str, &[&str]); 6] = [
        ("ip link set eth0 mtu 1300", &["eth0", "mtu", "1300"]),
        ("ip link set eth0 down", &["eth0", "down"]),
        (
            "ip address flush dev eth0 scope global",
            &["eth0", "10.245.1."],
        ),
        ("ip -4 route flush default", &["eth0", "route default"]),
        (
            "ip link set eth0 address 02:00:00:00:00:99",
            &["eth0", "02:00:00:00:00:99"],
        ),
        ("ip link del eth0", &["eth0"]),
    ];
    for (damage, named) in damages {
        let pod = node.pod("c1");
        let config = with(&config::routed(), "mtu", json!(1400));
        let result = pod.add(&config);
        let check = with(&config, "prevResult", result);
        pod.cni("CHECK", &check).done();
        pod.ns().sh(damage);
        let (code, text) = pod.cni("CHECK", &check).error();
        assert!(code >= 100, "{damage}: {code} {text}");
        for word in named {
            assert!(
                text.to_lowercase().contains(word),
                "{damage}: {word} is not in {text}"
            );
        }
        pod.del(&config);
    }
}

#[test]
fn check_of_a_stranger_fails() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let (code, text) = node.pod("c1").cni("CHECK", &config::routed()).error();
    assert!(code > 0 && text.contains("c1"), "{code} {text}");
}

/// What a delegating plugin sends once its configuration names the network otherwise.
#[test]
fn del_under_another_name_removes_the_interface_all_the_same() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let has = |link: &str| pod.ns().try_sh(&format!("ip link show {link}"));
    let named = |name: &str| json!({"cniVersion": "1.0.0", "name": name, "type": "plexus-cni"});
    let add = |name: &str, ifname: &str, mut config: Value| {
        config["name"] = json!(name);
        pod.call("ADD", &config).ifname(ifname).run().ok();
    };
    add("one", "net1", config::routed());
    add("two", "net2", config::macvlan(&node));
    pod.call("DEL", &named("two")).ifname("net1").run().done();
    assert!(has("net1"), "two has an interface of its own");
    pod.call("DEL", &named("renamed"))
        .ifname("net1")
        .run()
        .done();
    assert!(!has("net1") && has("net2"));
    assert_eq!(node.journal().records().len(), 1);
}

#[test]
fn gc_keeps_what_it_is_told_to() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let (one, other) = (node.pod("c1"), node.pod("c2"));
    let (config, foreign) = (config::routed(), config::macvlan(&node));
    for pod in [&one, &other] {
        pod.add(&config);
        pod.call("ADD", &foreign).ifname("net1").run().ok();
    }
    let all = node.dump(Some(&other));
    Call::new(&node, "GC", &config).run().done();
    all.assert_same(&node.dump(Some(&other)), "GC without a list");
    let valid = json!([{"containerID": "c1", "ifname": "eth0"}]);
    Call::new(
        &node,
        "GC",
        &with(&config, "cni.dev/valid-attachments", valid),
    )
    .run()
    .done();
    assert_eq!(links(&one), ["lo", "eth0", "net1"]);
    assert_eq!(links(&other), ["lo", "net1"], "the other network stays");
    Call::new(
        &node,
        "GC",
        &with(&config, "cni.dev/valid-attachments", json!([])),
    )
    .run()
    .done();
    assert_eq!(links(&one), ["lo", "net1"], "an empty list is a list");
}

#[test]
fn runtime_config_and_args_choose_address_and_mac() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let chosen = json!({"ips": ["10.10.0.77/24"], "mac": "02:11:22:33:44:55"});
    let config = with(&config::macvlan(&node), "runtimeConfig", chosen);
    let result = pod.add(&config);
    assert_eq!(result["ips"][0]["address"], "10.10.0.77/24");
    assert_eq!(result["interfaces"][0]["mac"], "02:11:22:33:44:55");
    let inside = pod.ns().run("ip", &["address", "show", "dev", "eth0"]);
    assert!(
        inside.contains("10.10.0.77/24") && inside.contains("02:11:22:33:44:55"),
        "{inside}"
    );
    let other = node.pod("c2");
    let args = "IgnoreUnknown=1;IP=10.10.0.78;MAC=02:11:22:33:44:56;K8S_POD_NAME=p";
    let result = other
        .call("ADD", &config::macvlan(&node))
        .args(args)
        .run()
        .ok();
    assert_eq!(result["ips"][0]["address"], "10.10.0.78/24");
    let (_, text) = node.pod("c3").cni("ADD", &config).error();
    assert!(text.contains("10.10.0.77"), "taken: {text}");
}
