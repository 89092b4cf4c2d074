//! The CNI project's plugins after ours, as a runtime chains them, and executed by ours.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod interop;

use interop::{Cnitool, attachments, connect, links, plugins};
use plexus_testkit::{Agent, Node, Pod, config};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};

const PORTS: &str = r#"{"portMappings": [{"hostPort": 8080, "containerPort": 80,
    "protocol": "tcp"}]}"#;

fn list(plugins: &[Value]) -> Value {
    json!({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins})
}

/// Our plugin's part of a chain.
fn ours(mut config: Value) -> Value {
    for key in ["cniVersion", "name"] {
        config.as_object_mut().unwrap().remove(key);
    }
    config
}

/// Who the container sees when the outside connects to a port of the node.
fn through_host_port(node: &Node, pod: &Pod<'_>, port: u16) -> Option<IpAddr> {
    let listen = SocketAddr::from(([0, 0, 0, 0], 80));
    let dial = SocketAddr::from(([192, 0, 2, 2], port));
    connect(node.outside(), pod.ns(), listen, dial)
}

/// What is left of rules, links and files that name a container or a port.
#[track_caller]
fn assert_gone(node: &Node, agent: &Agent<'_>, before: &[String]) {
    let rules = node
        .ns()
        .sh("nft list ruleset; iptables-save; ip6tables-save");
    for text in ["8080", "cnitool-", "CNI-DN-", "CNI-SN-"] {
        assert!(!rules.contains(text), "{text} is in\n{rules}");
    }
    let left: Vec<String> = links(node.ns());
    let left: Vec<&String> = left.iter().filter(|name| !before.contains(name)).collect();
    assert!(
        left.iter().all(|name| *name == "px0" || *name == "br0"),
        "{left:?}"
    );
    assert!(!node.dump(None).has("pools "), "{}", node.dump(None));
    assert_eq!(attachments(agent), [Value::Null; 0]);
}

#[test]
fn tuning_after_ours() {
    let node = interop::node();
    let agent = Agent::start(&node);
    let before = links(node.ns());
    let tuning = json!({"type": "tuning", "mac": "02:00:00:00:00:99", "mtu": 1380, "promisc": true,
        "sysctl": {"net.core.somaxconn": "511", "net.ipv4.conf.IFNAME.arp_filter": "1"}});
    node.outside().sh("ip address add 10.10.0.1/24 dev out0");
    let reference = json!({"type": "macvlan", "master": "eth1",
        "ipam": config::host_local(&node, "10.10.0.0/24")});
    let networks = [
        (reference, "10.10.0.1"),
        (ours(config::bridge()), "192.0.2.1"),
        (ours(config::macvlan(&node)), "10.10.0.1"),
    ];
    for (mut plugin, outside) in networks {
        plugin["mtu"] = 1400.into();
        let tool = Cnitool::on(&node);
        tool.network(&list(&[plugin, tuning.clone()]));
        let pod = node.pod("c1");
        let result = tool.run("add", "pods", &pod).ok();
        let listed = pod
            .ns()
            .sh("ip -d link show eth0; sysctl net.core net.ipv4.conf.eth0");
        for text in [
            "02:00:00:00:00:99",
            "mtu 1380",
            "PROMISC",
            "net.core.somaxconn = 511",
            "net.ipv4.conf.eth0.arp_filter = 1",
        ] {
            assert!(listed.contains(text), "{text} is not in\n{listed}");
        }
        assert!(result.to_string().contains("02:00:00:00:00:99"), "{result}");
        assert!(pod.ns().pings(outside), "{outside} does not answer");
        // What a plugin after us changed is no damage: the MAC it tells, the MTU it checks itself.
        tool.run("check", "pods", &pod).done();
        pod.ns().sh("ip link set eth0 address 02:00:00:00:00:9a");
        assert!(
            !tool.run("check", "pods", &pod).success(),
            "another MAC passes CHECK"
        );
        tool.run("del", "pods", &pod).done();
        assert_eq!(links(pod.ns()), ["lo"]);
        assert_gone(&node, &agent, &before);
    }
}

#[test]
fn portmap_after_ours() {
    let node = interop::node();
    let agent = Agent::start(&node);
    let before = links(node.ns());
    let portmap = json!({"type": "portmap", "capabilities": {"portMappings": true}});
    for plugin in [config::bridge(), config::routed(), config::four(&node)] {
        let tool = Cnitool::on(&node).env("CAP_ARGS", PORTS);
        let what = plugin.to_string();
        tool.network(&list(&[ours(plugin), portmap.clone()]));
        let pod = node.pod("c1");
        assert_eq!(through_host_port(&node, &pod, 8080), None);
        tool.run("add", "pods", &pod).ok();
        let seen = through_host_port(&node, &pod, 8080);
        assert_eq!(seen, Some("192.0.2.1".parse().unwrap()), "{what}");
        assert_eq!(through_host_port(&node, &pod, 8081), None);
        tool.run("check", "pods", &pod).done();
        tool.run("del", "pods", &pod).done();
        assert_eq!(through_host_port(&node, &pod, 8080), None);
        assert_gone(&node, &agent, &before);
    }
}

#[test]
fn bandwidth_after_ours() {
    let node = interop::node();
    let agent = Agent::start(&node);
    let before = links(node.ns());
    let bandwidth = json!({"type": "bandwidth", "capabilities": {"bandwidth": true}});
    let rates = r#"{"bandwidth": {"ingressRate": 8000000, "ingressBurst": 800000,
        "egressRate": 16000000, "egressBurst": 1600000}}"#;
    let tool = Cnitool::on(&node).env("CAP_ARGS", rates);
    tool.network(&list(&[ours(config::bridge()), bandwidth]));
    let pod = node.pod("c1");
    let added = tool.run("add", "pods", &pod);
    if let Some(missing) = missing_for_bandwidth(&node) {
        println!("this kernel cannot limit bandwidth: {missing}");
        assert!(!added.success() && !added.stderr.is_empty(), "{added:?}");
    } else {
        let result = added.ok();
        let end = result["interfaces"][1]["name"].as_str().unwrap().to_owned();
        let rules = node.ns().run("tc", &["qdisc", "show"]);
        let limited = |dev: &str, rate: &str| {
            let mut lines = rules.lines();
            lines.any(|l| {
                l.contains(&format!("dev {dev} ")) && l.contains("tbf") && l.contains(rate)
            })
        };
        assert!(limited(&end, "rate 8Mbit"), "to the container:\n{rules}");
        let ifb = links(node.ns())
            .into_iter()
            .find(|name| name.starts_with("bwp"));
        assert!(
            limited(&ifb.unwrap_or_default(), "rate 16Mbit"),
            "from it:\n{rules}"
        );
        assert!(pod.ns().pings("192.0.2.1"));
        tool.run("check", "pods", &pod).done();
    }
    tool.run("del", "pods", &pod).done();
    assert_eq!(links(pod.ns()), ["lo"]);
    assert_gone(&node, &agent, &before);
}

/// What the kernel lacks: asked in a namespace that is thrown away.
fn missing_for_bandwidth(node: &Node) -> Option<&'static str> {
    let probe = node.pod("probe");
    let tries = [
        ("ip link add i0 type ifb", "no ifb device"),
        (
            "tc qdisc add dev i0 root tbf rate 1mbit latency 25ms burst 10kb",
            "no tbf queue",
        ),
        ("tc qdisc add dev i0 ingress", "no ingress queue"),
    ];
    let failed = tries
        .iter()
        .find(|(command, _)| !probe.ns().try_sh(command));
    failed.map(|(_, missing)| *missing)
}

/// All three at once, with what runtimes send, in the order that runtimes use.
#[test]
fn a_whole_chain_after_ours() {
    let node = interop::node();
    let agent = Agent::start(&node);
    let before = links(node.ns());
    let chain = [
        ours(config::bridge()),
        json!({"type": "tuning", "sysctl": {"net.core.somaxconn": "511"}}),
        json!({"type": "bandwidth", "ingressRate": 8000000, "ingressBurst": 800000}),
        json!({"type": "portmap", "capabilities": {"portMappings": true}}),
    ];
    let limits = missing_for_bandwidth(&node).is_none();
    let chain: Vec<Value> = chain
        .into_iter()
        .filter(|plugin| limits || plugin["type"] != "bandwidth")
        .collect();
    for version in ["0.4.0", "1.0.0", "1.1.0"] {
        let tool = Cnitool::on(&node).env("CAP_ARGS", PORTS);
        let mut network = list(&chain);
        network["cniVersion"] = version.into();
        tool.network(&network);
        let pod = node.pod("c1");
        tool.run("add", "pods", &pod).ok();
        assert!(through_host_port(&node, &pod, 8080).is_some(), "{version}");
        tool.run("check", "pods", &pod).done();
        tool.run("del", "pods", &pod).done();
        assert_eq!(links(pod.ns()), ["lo"], "{version}");
        assert_gone(&node, &agent, &before);
    }
    // A plugin after us that fails: the runtime sends DEL, and nothing stays.
    let tool = Cnitool::on(&node).env("CAP_ARGS", PORTS);
    let wrong = json!({"type": "tuning", "sysctl": {"net.no.such": "1"}});
    tool.network(&list(&[chain[0].clone(), wrong]));
    let pod = node.pod("c1");
    assert!(!tool.run("add", "pods", &pod).success());
    tool.run("del", "pods", &pod).done();
    assert_eq!(links(pod.ns()), ["lo"]);
    assert_gone(&node, &agent, &before);
}

fn pool(node: &Node, subnet: &str) -> Value {
    let mut ipam = config::host_local(node, subnet);
    ipam["routes"] = json!([{"dst": "192.0.2.0/24"}]);
    ipam
}

/// Ours executes theirs: a plugin whose keys we do not do, and chains, beside native networks.
#[test]
fn theirs_executed_by_ours() {
    let node = interop::node();
    let agent = Agent::start(&node);
    let before = links(node.ns());
    let tuning = json!({"type": "tuning", "sysctl": {"net.core.somaxconn": "511"}, "mtu": 1300});
    let entries = [
        json!({"name": "isolated", "type": "bridge", "bridge": "br0", "isGateway": true,
            "portIsolation": true, "ipam": pool(&node, "10.31.0.0/24")}),
        config::routed_entry(),
        json!({"name": "pointed", "interface": "ptp0", "plugins": [
            {"type": "ptp", "ipMasq": true, "ipam": pool(&node, "10.32.0.0/24")}, tuning]}),
        json!({"name": "bridged", "plugins": [
            {"type": "bridge", "bridge": "br0", "ipam": pool(&node, "10.33.0.0/24")}, tuning]}),
    ];
    let tool = Cnitool::on(&node);
    tool.network(&list(&[ours(config::standalone("pods", &entries))]));
    let pod = node.pod("c1");
    for _ in 0..2 {
        let result = tool.run("add", "pods", &pod).ok();
        assert_eq!(result["ips"][0]["gateway"], "10.31.0.1", "{result}");
        assert_eq!(links(pod.ns()), ["eth0", "lo", "net1", "net3", "ptp0"]);
        let listed = pod
            .ns()
            .sh("ip link show ptp0; ip link show net3; sysctl net.core.somaxconn");
        assert_eq!(listed.matches("mtu 1300").count(), 2, "{listed}");
        assert!(listed.contains("net.core.somaxconn = 511"), "{listed}");
        let node_links = node.ns().sh("ip -d link show master br0");
        assert!(node_links.contains("isolated on"), "{node_links}");
        // By way of the pair whose traffic is masqueraded.
        let at = SocketAddr::from(([192, 0, 2, 1], 7011));
        pod.ns().sh(
            "ip route replace 192.0.2.1 via 10.32.0.1 dev ptp0 src $(ip -o -4 address \
            show dev ptp0 | awk '{sub(\"/.*\", \"\", $4); print $4}')",
        );
        let seen = connect(pod.ns(), node.outside(), at, at);
        assert_eq!(seen, Some("192.0.2.2".parse().unwrap()));
        assert!(pod.ns().pings("10.31.0.1"));
        tool.run("check", "pods", &pod).done();
        tool.run("del", "pods", &pod).done();
        assert_eq!(links(pod.ns()), ["lo"]);
        assert_gone(&node, &agent, &before);
    }
}

/// What a runtime asks for reaches the plugin in the chain that declares it.
#[test]
fn a_port_mapped_by_a_plugin_that_ours_executes() {
    let node = interop::node();
    let agent = Agent::start(&node);
    let before = links(node.ns());
    let mut ipam = config::host_local(&node, "10.32.0.0/24");
    ipam["routes"] = json!([{"dst": "0.0.0.0/0"}]);
    let chain = json!({"type": "plexus-cni", "capabilities": {"portMappings": true}, "plugins": [
        {"type": "ptp", "ipMasq": true, "ipam": ipam},
        {"type": "portmap", "capabilities": {"portMappings": true}}]});
    let tool = Cnitool::on(&node).env("CAP_ARGS", PORTS);
    tool.network(&list(&[chain]));
    let pod = node.pod("c1");
    tool.run("add", "pods", &pod).ok();
    assert_eq!(
        through_host_port(&node, &pod, 8080),
        Some("192.0.2.1".parse().unwrap())
    );
    tool.run("check", "pods", &pod).done();
    tool.run("del", "pods", &pod).done();
    assert_gone(&node, &agent, &before);
}

/// A plugin that fails ends it all, with its own words, and nothing stays.
#[test]
fn a_delegate_that_fails_is_named_and_leaves_nothing() {
    let node = interop::node();
    let agent = Agent::start(&node);
    let before = links(node.ns());
    let good = json!({"name": "pointed", "plugins": [
        {"type": "ptp", "ipMasq": true, "ipam": pool(&node, "10.32.0.0/24")}]});
    let dummy = json!({"name": "idle", "type": "dummy",
        "ipam": pool(&node, "10.34.0.0/24")});
    let has_dummy = node.pod("probe").ns().try_sh("ip link add d0 type dummy");
    let tool = Cnitool::on(&node);
    let standalone = |last: Value| {
        let entries = [good.clone(), config::bridge_entry(), last];
        list(&[ours(config::standalone("pods", &entries))])
    };
    let pod = node.pod("c1");
    tool.network(&standalone(dummy));
    let added = tool.run("add", "pods", &pod);
    if has_dummy {
        println!("this kernel has dummy");
        added.ok();
        assert!(pod.ns().sh("ip -d link show net2").contains("dummy"));
        tool.run("del", "pods", &pod).done();
    } else {
        println!("this kernel has no dummy: {}", added.stderr.trim());
        assert!(!added.success(), "{added:?}");
        for text in ["idle", "dummy", "operation not supported"] {
            assert!(
                added.stderr.contains(text),
                "{text} is not in {}",
                added.stderr
            );
        }
    }
    assert_eq!(links(pod.ns()), ["lo"]);
    assert_gone(&node, &agent, &before);
    let missing = json!({"name": "none", "type": "no-such-plugin"});
    for (last, named) in [
        (missing, "no-such-plugin"),
        (json!({"name": "path", "type": "../bridge"}), "../bridge"),
        (json!({"name": "self", "type": "plexus-cni"}), "plexus-cni"),
        (
            json!({"name": "vlan", "type": "bridge", "bridge": "br9", "vlan": 5000}),
            "5000",
        ),
    ] {
        tool.network(&standalone(last));
        let added = tool.run("add", "pods", &pod);
        assert!(
            !added.success() && added.stderr.contains(named),
            "{named}: {added:?}"
        );
        assert_eq!(links(pod.ns()), ["lo"]);
        assert_gone(&node, &agent, &before);
    }
}

/// Theirs before ours: what came before is kept in the answer.
#[test]
fn ours_after_theirs() {
    let node = interop::node();
    let agent = Agent::start(&node);
    let before = links(node.ns());
    let tool = Cnitool::on(&node);
    assert!(plugins().join("loopback").is_file());
    tool.network(&list(&[
        json!({"type": "loopback"}),
        ours(config::bridge()),
    ]));
    let pod = node.pod("c1");
    let result = tool.run("add", "pods", &pod).ok();
    let names: Vec<&str> = result["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|i| i["name"].as_str())
        .collect();
    assert!(names.contains(&"lo") && names.contains(&"eth0"), "{result}");
    let of = result["ips"].as_array().unwrap().iter().find(|ip| {
        ip["address"]
            .as_str()
            .is_some_and(|a| a.starts_with("10.244.1."))
    });
    let index = of.unwrap()["interface"].as_u64().unwrap() as usize;
    assert_eq!(names[index], "eth0", "{result}");
    assert!(pod.ns().pings("192.0.2.1"));
    tool.run("check", "pods", &pod).done();
    tool.run("del", "pods", &pod).done();
    assert_gone(&node, &agent, &before);
}
