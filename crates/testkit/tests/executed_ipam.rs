//! An IPAM plugin that is executed below our links: every verb reaches it, and whatever fails leaves nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use plexus_testkit::{Agent, Call, FAKE_IPAM, Node, Pod, config, eventually, fake_ipam};
use serde_json::{Value, json};

/// Plugin mode, in the reference plugin's own words as far as ours have them.
fn macvlan(node: &Node) -> Value {
    json!({"cniVersion": "1.1.0", "name": "wide", "type": "plexus-cni", "provider": "macvlan",
        "master": "eth1", "ipam": fake_ipam(node)})
}

fn ip(pod: &Pod<'_>, arguments: &str) -> String {
    pod.ns().sh(&format!("ip {arguments}"))
}

/// The addresses that the plugin holds.
fn held(node: &Node) -> Vec<String> {
    let files = std::fs::read_dir(node.fake_dir()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("10.")).collect();
    names.sort();
    names
}

#[test]
fn every_verb_reaches_it() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let (pod, other) = (node.pod("c1"), node.pod("c2"));
    let config = macvlan(&node);
    Call::new(&node, "STATUS", &config).run().done();
    let result = pod.add(&config);
    assert_eq!(result["ips"][0]["address"], "10.40.0.2/24");
    assert_eq!(result["ips"][0]["gateway"], "10.40.0.1");
    assert_eq!(result["ips"][0]["interface"], 0);
    assert_eq!(result["interfaces"][0]["name"], "eth0");
    let link = ip(&pod, "-d link show eth0");
    assert!(
        link.contains("macvlan") && link.contains("plexus"),
        "ours: {link}"
    );
    assert!(ip(&pod, "-4 -o address").contains("10.40.0.2/24"));
    let input = node.ipam_input("ADD");
    assert_eq!(
        (&input["name"], &input["master"], &input["ipam"]),
        (&json!("wide"), &json!("eth1"), &config["ipam"])
    );
    assert_eq!(pod.add(&config), result, "a repeated ADD");

    let mut check = config.clone();
    check["prevResult"] = result;
    pod.cni("CHECK", &check).done();
    assert_eq!(
        node.ipam_input("CHECK")["prevResult"]["ips"][0]["address"],
        "10.40.0.2/24"
    );
    let file = node.fake_dir().join("10.40.0.2");
    let owner = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let (code, text) = pod.cni("CHECK", &check).error();
    assert_eq!(code, 101, "{text}");
    assert!(
        text.contains("IPAM plugin") && text.contains(FAKE_IPAM),
        "{text}"
    );
    std::fs::write(&file, owner).unwrap();

    other.add(&config);
    let mut gc = config.clone();
    gc["cni.dev/valid-attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
    Call::new(&node, "GC", &gc).run().done();
    assert_eq!(held(&node), ["10.40.0.2"]);
    assert_eq!(
        node.ipam_input("GC")["cni.dev/valid-attachments"],
        gc["cni.dev/valid-attachments"]
    );
    pod.del(&config);
    assert_eq!(held(&node), [""; 0]);
    assert!(!ip(&pod, "link").contains("eth0"));
    assert!(node.journal().records().is_empty());
    let expected = [
        "STATUS   1.1.0",
        "ADD c1 eth0 1.1.0",
        "CHECK c1 eth0 1.1.0",
        "CHECK c1 eth0 1.1.0",
        "ADD c2 eth0 1.1.0",
        "DEL c2 eth0 1.1.0",
        "GC   1.1.0",
        "DEL c1 eth0 1.1.0",
    ];
    assert_eq!(node.ipam_calls(), expected);
}

#[test]
fn every_provider_takes_what_it_gives() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let own =
        json!({"provider": "bridge", "bridge": "px0", "isDefaultGateway": true, "ipMasq": true});
    let routed = json!({"provider": "routed"});
    let reference = json!({"provider": null, "type": "bridge", "bridge": "px1", "isGateway": true});
    for (options, version, address) in [
        (own, "1.0.0", "10.40.0.2/24"),
        (routed, "0.4.0", "10.40.0.2/32"),
        (reference, "0.3.1", "10.40.0.2/24"),
    ] {
        let pod = node.pod("c1");
        let mut config = macvlan(&node);
        config["cniVersion"] = json!(version);
        config.as_object_mut().unwrap().remove("master");
        for (key, value) in options.as_object().unwrap() {
            config[key] = value.clone();
        }
        if config["type"] == "bridge" {
            // As an entry, where a reference plugin's configuration may stand.
            for key in ["cniVersion", "provider"] {
                config.as_object_mut().unwrap().remove(key);
            }
            config = config::standalone("all", &[config]);
        }
        let result = pod.add(&config);
        assert_eq!(result["dns"]["nameservers"], json!(["10.40.0.53"]));
        let addresses = ip(&pod, "-4 -o address show eth0");
        assert!(addresses.contains(address), "{options}: {addresses}");
        if let Some(bridge) = options["bridge"].as_str() {
            let gateway = node.ns().sh(&format!("ip -4 -o address show {bridge}"));
            assert!(gateway.contains("10.40.0.1/24"), "{gateway}");
        }
        if options["isDefaultGateway"] == true {
            let routes = ip(&pod, "route");
            assert!(routes.contains("default via 10.40.0.1"), "{routes}");
        }
        pod.del(&config);
        assert_eq!(held(&node), [""; 0], "{options}");
    }
}

#[test]
fn the_default_route_is_chosen_when_its_gateway_is_known() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let entries = [config::bridge_entry(), config::executed_ipam_entry(&node)];
    for (choice, wanted) in [
        (json!(null), "default via 10.244.1.1 dev eth0"),
        (json!({"4": "wide"}), "default via 10.40.0.1 dev net1"),
        (json!("wide"), "default via 10.40.0.1 dev net1"),
    ] {
        let pod = node.pod("c1");
        let mut config = config::standalone("all", &entries);
        config["default-gw"] = choice;
        pod.add(&config);
        let routes = ip(&pod, "-4 route");
        assert!(routes.contains(wanted), "{wanted}: {routes}");
        assert_eq!(routes.matches("default").count(), 1, "{routes}");
        pod.del(&config);
    }
    let mut without = config::executed_ipam_entry(&node);
    without["ipam"]["gateway"] = json!("");
    let mut config = config::standalone("all", &[config::bridge_entry(), without]);
    config["default-gw"] = json!("wide");
    let pod = node.pod("c2");
    let (_, text) = pod.cni("ADD", &config).error();
    assert!(text.contains("brings no IPv4 gateway"), "{text}");
    assert_eq!(held(&node), [""; 0]);
}

#[test]
fn an_add_that_fails_leaves_nothing() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    pod.ns().ip("link set lo up\n");
    let never = node.dump(Some(&pod));
    let all = |last: Value| {
        let entries = [
            config::macvlan_entry(&node),
            config::executed_ipam_entry(&node),
            last,
        ];
        config::standalone("all", &entries)
    };
    node.refuse_ipam(Some("ADD"));
    let (code, text) = pod.cni("ADD", &all(config::fake_entry(&node))).error();
    assert_eq!(code, 142, "its own code: {text}");
    for part in [
        "network wide, interface net1",
        "IPAM plugin",
        "told to fail",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    never.assert_same(&node.dump(Some(&pod)), "its ADD failed");
    assert_eq!(
        node.ipam_calls(),
        ["ADD c1 net1 1.1.0", "DEL c1 net1 1.1.0"]
    );

    node.refuse_ipam(None);
    let mut failing = config::fake_entry(&node);
    failing["fail"] = json!("ADD");
    let mut nowhere = config::macvlan_entry(&node);
    nowhere["name"] = json!("nowhere");
    nowhere["ipam"] = json!({"type": "static", "addresses": [{"address": "10.40.0.2/24"}],
        "routes": [{"dst": "10.99.0.0/16", "gw": "10.98.0.1"}]});
    for last in [failing, nowhere] {
        pod.cni("ADD", &all(last)).error();
        never.assert_same(&node.dump(Some(&pod)), "a later step failed");
    }
    let calls = node.ipam_calls();
    assert_eq!(calls.last().map(String::as_str), Some("DEL c1 net1 1.1.0"));
}

#[test]
fn a_del_that_fails_holds_only_its_own() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let (first, second) = (node.pod("c1"), node.pod("c2"));
    let entries = [
        config::macvlan_entry(&node),
        config::executed_ipam_entry(&node),
    ];
    let both = config::one_address(&config::standalone("all", &entries));
    let alone = config::one_address(&config::standalone("all", &entries[..1]));
    first.add(&both);
    node.refuse_ipam(Some("DEL"));
    let (_, text) = first.cni("DEL", &both).error();
    for part in ["network wide, interface net1", "told to fail"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!ip(&first, "link").contains("net1"), "its link is gone");
    assert_eq!(held(&node), ["10.40.0.5"]);
    let tables = node.journal().tables();
    assert_eq!(tables["attachment"].len(), 1, "{tables:?}");
    second.add(&alone);
    second.del(&alone);
    node.refuse_ipam(None);
    eventually("the agent repeats it by itself", || {
        held(&node).is_empty() && node.journal().records().is_empty()
    });
    second.add(&both);
    second.del(&both);
}

#[test]
fn an_answer_without_addresses_is_refused() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let plugin = node.delegate_bin().join(FAKE_IPAM);
    let script = std::fs::read_to_string(&plugin).unwrap();
    let pod = node.pod("c1");
    pod.ns().ip("link set lo up\n");
    let never = node.dump(Some(&pod));
    for (answer, cause) in [
        ("{}", "no addresses"),
        (r#"{"cniVersion":"1.1.0","ips":[]}"#, "no addresses"),
        (
            r#"{"cniVersion":"1.1.0","ips":[{"address":"x"}]}"#,
            "ips[0].address",
        ),
        ("junk", "not a CNI result"),
    ] {
        let silent = format!("ADD)\n    take 10.40.0.9; echo '{answer}'; exit 0\n");
        std::fs::write(&plugin, script.replacen("ADD)\n", &silent, 1)).unwrap();
        let (_, text) = pod.cni("ADD", &macvlan(&node)).error();
        assert!(text.contains(cause) && text.contains(FAKE_IPAM), "{text}");
        never.assert_same(&node.dump(Some(&pod)), answer);
    }
}

#[test]
fn a_plugin_that_cannot_be_executed_is_one_error() {
    let node = Node::new();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let never = node.dump(Some(&pod));
    for (name, cause) in [
        ("px-nowhere", "no executable file \"px-nowhere\""),
        ("../px-ipam", "not a path"),
        ("plexus-cni", "Plexus itself"),
        ("hostlocal", "did you mean \"host-local\"?"),
        ("dhcp", "\"dhcp\" is not native"),
    ] {
        let mut config = macvlan(&node);
        config["ipam"]["type"] = json!(name);
        for verb in ["ADD", "STATUS"] {
            let output = match verb {
                "ADD" => pod.cni(verb, &config),
                _ => Call::new(&node, verb, &config).run(),
            };
            let (_, text) = output.error();
            assert!(text.contains(cause), "{verb} {name}: {text}");
            assert_eq!(text.matches(cause).count(), 1, "once: {text}");
        }
        never.assert_same(&node.dump(Some(&pod)), name);
    }
    assert_eq!(node.ipam_calls(), [""; 0]);
}

/// Without its row, the request tells which plugin gave the address.
#[test]
fn a_lost_journal_does_not_lose_the_address() {
    let node = Node::new();
    let pod = node.pod("c1");
    let config = macvlan(&node);
    let agent = Agent::start(&node);
    let result = pod.add(&config);
    agent.kill();
    std::fs::remove_dir_all(node.state_dir()).unwrap();
    std::fs::create_dir_all(node.state_dir()).unwrap();
    let _agent = Agent::start(&node);
    let mut del = config.clone();
    del["prevResult"] = result;
    pod.del(&del);
    assert_eq!(held(&node), [""; 0]);
    assert!(!ip(&pod, "link").contains("eth0"));
    assert_eq!(
        node.ipam_input("DEL")["prevResult"]["ips"][0]["address"],
        "10.40.0.2/24"
    );
}
