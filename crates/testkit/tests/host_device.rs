//! Devices of the node that pods get (`host-device`): given as the reference plugin gives them, and given back as they
//! were, whatever the pod did to them and however it ended. With real cards in a virtual machine; elsewhere with a veth,
//! which the kernel deletes with the namespace of its pod: then there is nothing to give back, and no error.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

#[path = "interop/mod.rs"]
mod interop;

use plexus_testkit::nic::{has_nics, link};
use plexus_testkit::{Agent, Node, Pod, Start, TIMEOUT, config, eventually, run, within};
use serde_json::{Value, json};

/// What must be as it was when a device is back.
const STATE: [&str; 7] = [
    "address",
    "mtu",
    "ifalias",
    "altnames",
    "group",
    "promiscuity",
    "parentdev",
];

fn by(node: &Node, options: Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.1.0", "name": "red", "type": "plexus-cni", "provider": "host-device",
        "ipam": config::host_local(node, "10.77.0.0/24"),
    });
    for (key, value) in options.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn named(node: &Node, device: &str) -> Value {
    by(node, json!({ "device": device }))
}

/// Cards with a history: further names, an MTU, an alias; `nic1` is up.
fn node() -> Node {
    let node = interop::node();
    prepared(node)
}

fn prepared(node: Node) -> Node {
    node.take_nics();
    node.ns().ip(
        "link property add dev nic1 altname nic1-further altname the-first-card-of-this-machine\n\
         link set nic1 mtu 1400 alias uplink-of-rack-7 up\n\
         address add 198.51.100.9/24 dev nic1\n",
    );
    node
}

fn state(node: &Node, name: &str) -> Option<Vec<Value>> {
    let link = link(node.ns(), name)?;
    let up = link["flags"].as_array().unwrap().contains(&json!("UP"));
    let mut state: Vec<Value> = STATE.iter().map(|key| link[key].clone()).collect();
    if let Some(names) = state[3].as_array_mut() {
        names.sort_by_key(Value::to_string);
    }
    state.push(json!(up));
    Some(state)
}

#[track_caller]
fn is_back(node: &Node, before: &Option<Vec<Value>>) {
    let back = within(TIMEOUT, || state(node, "nic1") == *before);
    let links = node.ns().sh("ip -d link");
    assert!(
        back,
        "wanted {before:?}, found {:?} in\n{links}",
        state(node, "nic1")
    );
}

/// What a pod with the capability may do to its link.
fn vandalise(pod: &Pod<'_>) {
    pod.ns().sh("ip link set eth0 down
         ip link set eth0 name lost address 02:00:00:00:00:99 mtu 1300 promisc on
         ip link property del dev lost altname nic1-further
         ip link property add dev lost altname nic2
         ip link property add dev lost altname eth1
         ip link set lost up");
}

#[test]
fn a_device_is_given_and_given_back() {
    let node = node();
    let _agent = Agent::start(&node);
    let before = state(&node, "nic1");
    for device in [
        json!({"device": "nic1"}),
        json!({"device": "nic1-further"}),
        json!({"hwaddr": "52:54:00:50:58:01"}),
    ] {
        let pod = node.pod("c1");
        let config = by(&node, device);
        let result = pod.add(&config);
        assert_eq!(
            result["interfaces"].as_array().unwrap().len(),
            1,
            "{result}"
        );
        let inside = link(pod.ns(), "eth0").unwrap();
        assert_eq!(inside["address"], "52:54:00:50:58:01");
        assert_eq!(result["interfaces"][0]["mac"], inside["address"]);
        assert_eq!(inside["mtu"], 1400);
        assert!(state(&node, "nic1").is_none());
        assert_eq!(pod.add(&config), result, "a repeated ADD");
        let mut check = config.clone();
        check["prevResult"] = result;
        pod.cni("CHECK", &check).done();
        pod.del(&config);
        is_back(&node, &before);
        pod.del(&config);
    }
}

#[test]
fn asked_for_properties_end_with_the_pod() {
    let node = node();
    let _agent = Agent::start(&node);
    let before = state(&node, "nic1");
    let pod = node.pod("c1");
    let config = by(
        &node,
        json!({"device": "nic1", "mtu": 1280, "mac": "02:00:00:00:00:42"}),
    );
    // Its own further name, too.
    let add = |verb: &str| pod.call(verb, &config).ifname("nic1-further").run();
    let result = add("ADD").ok();
    assert_eq!(result["interfaces"][0]["mac"], "02:00:00:00:00:42");
    let inside = link(pod.ns(), "nic1-further").unwrap();
    assert_eq!(
        (&inside["mtu"], &inside["address"]),
        (&json!(1280), &json!("02:00:00:00:00:42"))
    );
    add("DEL").done();
    is_back(&node, &before);
}

#[test]
fn whatever_the_pod_did_to_it() {
    let node = node();
    let _agent = Agent::start(&node);
    let before = state(&node, "nic1");
    let pod = node.pod("c1");
    let config = named(&node, "nic1");
    pod.add(&config);
    vandalise(&pod);
    if has_nics() {
        // Only hardware is known by more than its mark.
        pod.ns().sh("ip link set lost alias mine");
    }
    pod.del(&config);
    is_back(&node, &before);
}

#[test]
fn a_name_that_is_taken_is_told_and_another_one_is_given() {
    let node = node();
    let _agent = Agent::start(&node);
    let pod = node.pod("c1");
    let config = named(&node, "nic1");
    pod.add(&config);
    node.ns()
        .ip("link add nic1 type bridge\nlink property add dev nic1 altname nic1-further\n");
    pod.del(&config);
    let all: Value = serde_json::from_str(&node.ns().run("ip", &["-d", "-j", "link"])).unwrap();
    let mut all = all.as_array().unwrap().iter();
    let back = all
        .find(|link| {
            link["address"] == "52:54:00:50:58:01" && link["linkinfo"]["info_kind"] != "bridge"
        })
        .unwrap();
    assert!(
        back["ifname"].as_str().unwrap().starts_with("dev"),
        "{back}"
    );
    assert_eq!(back["altnames"], json!(["the-first-card-of-this-machine"]));
    assert_eq!(
        (&back["mtu"], &back["ifalias"]),
        (&json!(1400), &json!("uplink-of-rack-7"))
    );
    let log = std::fs::read_to_string(node.log()).unwrap();
    for what in ["cannot rename", "further name nic1-further"] {
        assert!(log.contains(what), "{what}: {log}");
    }
}

#[test]
fn pods_with_devices_reach_each_other() {
    let node = node();
    let _agent = Agent::start(&node);
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    one.add(&named(&node, "nic1"));
    let second = two.call("ADD", &named(&node, "nic2")).run();
    let address = second.addresses().remove(0);
    assert!(
        one.ns().pings(&address),
        "{}",
        one.ns().sh("ip address; ip route; ip neighbour")
    );
    one.del(&named(&node, "nic1"));
    two.del(&named(&node, "nic2"));
}

#[test]
fn what_is_not_to_be_had_is_refused_with_the_reason() {
    let node = node();
    let _agent = Agent::start(&node);
    let before = node.dump(None);
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    let refused = |config: &Value, wanted: &[&str]| {
        let (code, text) = two.cni("ADD", config).error();
        for word in wanted {
            assert!(text.contains(word), "{word:?} is not in: {text}");
        }
        code
    };
    refused(&named(&node, "eth1"), &["eth1", "default route"]);
    refused(&named(&node, "eth77"), &["no device eth77"]);
    refused(
        &by(&node, json!({"pciBusID": "0000:ff:1f.7"})),
        &["no device 0000:ff:1f.7"],
    );
    refused(
        &by(&node, json!({"device": ""})),
        &["device", "hwaddr", "kernelpath", "pciBusID"],
    );
    refused(
        &by(&node, json!({"kernelpath": "/etc/passwd"})),
        &["kernelpath", "/sys/devices/"],
    );
    refused(&by(&node, json!({"pciBusID": "../../etc"})), &["pciBusID"]);
    refused(&named(&node, "lo"), &["lo"]);
    node.ns()
        .ip("link add br7 type bridge\nlink set nic2 master br7\n");
    refused(&named(&node, "nic2"), &["nic2", "port of br7"]);
    node.ns().ip("link del br7\n");
    node.ns()
        .ip("link add mv7 link nic2 type macvlan mode bridge\n");
    refused(&named(&node, "nic2"), &["nic2", "carries", "mv7"]);
    node.ns().ip("link del mv7\n");
    let entry = |name: &str| json!({"name": name, "provider": "host-device", "device": "nic1"});
    refused(
        &config::standalone("all", &[entry("a"), entry("b")]),
        &["nic1", "twice"],
    );
    before.assert_same(&node.dump(None), "refusals change nothing");

    one.call("ADD", &named(&node, "nic1"))
        .args("K8S_POD_NAMESPACE=shop;K8S_POD_NAME=till")
        .run()
        .ok();
    let code = refused(&named(&node, "nic1"), &["held by", "shop/till", "c1"]);
    assert_eq!(code, 11);
    refused(
        &by(&node, json!({"hwaddr": "52:54:00:50:58:01"})),
        &["shop/till"],
    );
    one.del(&named(&node, "nic1"));
    two.add(&named(&node, "nic1"));
    two.del(&named(&node, "nic1"));
}

/// A pod's interface on a device, and the device itself for another pod: the second would have the first's packets.
#[test]
fn a_device_that_carries_a_pods_interface_is_refused() {
    let node = node();
    let _agent = Agent::start(&node);
    let (one, two) = (node.pod("c1"), node.pod("c2"));
    let mut stacked = config::macvlan(&node);
    stacked["master"] = json!("nic2");
    one.add(&stacked);
    let (_, text) = two.cni("ADD", &named(&node, "nic2")).error();
    for word in ["nic2", "carries", "container c1"] {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    one.del(&stacked);
    two.add(&named(&node, "nic2"));
    two.del(&named(&node, "nic2"));
}

/// Two devices of one request in the order against that of their indices, and a link of the pod's own with a copied mark.
#[test]
fn each_device_goes_back_under_its_own_name() {
    let node = node();
    let _agent = Agent::start(&node);
    let macs =
        || ["nic1", "nic2"].map(|name| link(node.ns(), name).map(|it| it["address"].clone()));
    let before = macs();
    let entry = |name: &str| json!({"name": name, "provider": "host-device", "device": name});
    let pod = node.pod("c1");
    for order in [["nic2", "nic1"], ["nic1", "nic2"]] {
        let config = config::standalone("all", &order.map(entry));
        pod.add(&config);
        pod.ns().sh("ip link add aa type veth peer name ab
             mark=$(ip -o link show eth0 | sed 's/.*alias //')
             ip link set aa alias \"$mark\"");
        let copied = link(pod.ns(), "aa").unwrap();
        assert!(copied["ifalias"].as_str().unwrap().starts_with("plexus "));
        pod.del(&config);
        assert!(within(TIMEOUT, || macs() == before), "{:?}", macs());
        assert!(link(node.ns(), "aa").is_none() && link(node.ns(), "ab").is_none());
        pod.ns().sh("ip link del aa 2>/dev/null || true");
    }
}

#[test]
fn two_that_want_it_at_once() {
    let node = node();
    let _agent = Agent::start(&node);
    let before = state(&node, "nic1");
    let config = named(&node, "nic1");
    for round in 0..3 {
        let pods: Vec<Pod<'_>> = (0..4).map(|n| node.pod(&format!("c{n}"))).collect();
        let calls: Vec<_> = pods
            .iter()
            .map(|pod| pod.call("ADD", &config).spawn())
            .collect();
        let answers: Vec<_> = calls.into_iter().map(|call| call.wait(TIMEOUT)).collect();
        let made = answers
            .iter()
            .filter(|answer| answer.status.success())
            .count();
        assert_eq!(made, 1, "round {round}: {answers:?}");
        for pod in &pods {
            pod.del(&config);
        }
        is_back(&node, &before);
    }
}

/// How a namespace may end, and who notices.
#[derive(Clone, Copy, Debug)]
enum End {
    /// A DEL comes, without a namespace.
    Del,
    /// No DEL comes.
    Nothing,
    /// No agent runs when it ends; one starts.
    NoAgent,
    /// … and it has lost its journal.
    NoJournal,
}

#[test]
fn when_the_namespace_has_died() {
    for end in [End::Del, End::Nothing, End::NoAgent, End::NoJournal] {
        // The kernel gives a card to the machine some time after the namespace has ended. A node that is a namespace
        // itself, and has lost its journal, does not know that there is one to wait for.
        if !has_nics() || !matches!(end, End::NoJournal) {
            died(node(), end);
        }
    }
}

/// Where the node is the machine, the kernel brings the device there by itself, under its name in the pod.
#[test]
fn when_the_namespace_has_died_on_the_machine_itself() {
    if !has_nics() {
        println!("needs cards that outlive a namespace: run it in the virtual machine");
        return;
    }
    for end in [End::Del, End::Nothing, End::NoAgent, End::NoJournal] {
        died(prepared(Node::of_machine()), end);
    }
}

fn died(node: Node, end: End) {
    println!("{end:?}");
    let config = named(&node, "nic1");
    let before = state(&node, "nic1");
    let start = || Start::on(&node).env("PLEXUS_HASTE", "1").ready();
    let mut agent = Some(start());
    let pod = node.pod("c1");
    let netns = pod.netns();
    pod.add(&config);
    if !matches!(end, End::NoJournal) {
        pod.ns().sh("ip link set eth0 down; ip link set eth0 address 02:00:00:00:00:99 mtu 1300 name nic2-not promisc on");
    }
    if matches!(end, End::NoAgent | End::NoJournal) {
        agent = None;
    }
    let call = pod.call("DEL", &config).without("CNI_NETNS");
    drop(pod);
    assert!(!std::path::Path::new(&netns).exists());
    match end {
        End::Del => call.run().done(),
        End::Nothing => {}
        End::NoAgent => agent = Some(start()),
        End::NoJournal => {
            std::fs::remove_dir_all(node.state_dir()).unwrap();
            std::fs::create_dir_all(node.state_dir()).unwrap();
            agent = Some(start());
        }
    }
    if !has_nics() {
        eventually("the record is gone", || node.journal().records().is_empty());
        return;
    }
    let mut wanted = before.clone();
    if let (End::NoJournal, Some(state)) = (end, &mut wanted) {
        // A mark has no room for the alias that it takes the place of.
        state[2] = Value::Null;
    }
    is_back(&node, &wanted);
    drop(agent);
}

#[test]
fn a_lost_journal_with_a_living_pod() {
    let node = node();
    let before = state(&node, "nic1");
    let config = named(&node, "nic1");
    let pod = node.pod("c1");
    let agent = Agent::start(&node);
    pod.add(&config);
    agent.kill();
    std::fs::remove_dir_all(node.state_dir()).unwrap();
    std::fs::create_dir_all(node.state_dir()).unwrap();
    let _agent = Agent::start(&node);
    let second = node.pod("c2");
    let (_, text) = second.cni("ADD", &config).error();
    if !has_nics() {
        // A pod could have made such a link, and written on it what it likes: the node does not take it.
        assert!(text.contains("no device nic1"), "{text}");
        pod.del(&config);
        assert!(link(pod.ns(), "eth0").is_some() && link(node.ns(), "nic1").is_none());
        return;
    }
    assert!(text.contains("c1"), "the holder is known again: {text}");
    pod.del(&config);
    let mut wanted = before.unwrap();
    wanted[2] = Value::Null;
    is_back(&node, &Some(wanted));
}

/// The reference plugin on a node of the same shape: the same result, the same link, the same node afterwards.
#[test]
fn as_the_reference_plugin() {
    let pci = || {
        let path = std::fs::canonicalize("/sys/bus/virtio/devices/virtio1/..").unwrap();
        let id = path.file_name().unwrap().to_string_lossy().into_owned();
        (id, path.join("virtio1").to_string_lossy().into_owned())
    };
    let ipam = json!({"type": "static", "addresses": [{"address": "10.77.0.9/24", "gateway": "10.77.0.1"},
        {"address": "fd00:77::9/64"}], "routes": [{"dst": "10.78.0.0/16"}], "dns": {"nameservers": ["10.77.0.1"]}});
    let mut cases = vec![
        json!({"device": "nic1"}),
        json!({"device": "nic1", "ipam": ipam, "dns": {"search": ["example.org"]}}),
        json!({"hwaddr": "52:54:00:50:58:01", "ipam": ipam}),
    ];
    if has_nics() {
        let (id, path) = pci();
        cases.push(json!({"pciBusID": id}));
        cases.push(json!({"kernelpath": path, "ipam": ipam}));
        cases.push(json!({"capabilities": {"deviceID": true}, "runtimeConfig": {"deviceID": id}, "ipam": ipam}));
    }
    for case in cases {
        let both = [false, true].map(|ours| {
            // The plugin finds names in the sysfs of the machine.
            let node = match has_nics() {
                true => prepared(Node::of_machine()),
                false => node(),
            };
            let _agent = ours.then(|| Agent::start(&node));
            let mut config = json!({"cniVersion": "1.0.0", "name": "red", "type": "host-device"});
            for (key, value) in case.as_object().unwrap() {
                config[key] = value.clone();
            }
            let pod = node.pod("c1");
            let call = |verb: &str| match ours {
                true => pod.cni(verb, &config),
                false => interop::execute(&node, "host-device", verb, ("c1", &pod.netns(), "eth0"), "", &config),
            };
            let result = call("ADD").ok().to_string().replace(node.name(), "NODE");
            let inside = link(pod.ns(), "eth0").unwrap();
            let kept = ["ifname", "address", "mtu", "altnames", "flags", "group", "parentdev"];
            let inside: Vec<Value> = kept.iter().map(|key| inside[key].clone()).collect();
            let rest = pod.ns().sh("ip -o address show dev eth0 scope global | sed 's/.*inet/inet/; s/valid_lft.*//; s/\\\\//'; ip route; ip -6 route | grep -v fe80 || true");
            let rest = rest.replace(" tentative", "").replace(" nodad", "").replace("proto 80 ", "");
            call("DEL").done();
            let after = link(node.ns(), "nic1").unwrap();
            let after = [&after["address"], &after["mtu"], &after["altnames"]].map(Value::clone);
            (result, inside, rest, after)
        });
        let [theirs, ours] = both;
        println!("{}", theirs.0);
        assert_eq!(theirs, ours, "{case}");
    }
}

/// A device that a program drives has no link: the plugin is executed, and told that by its own look at it.
#[test]
fn a_device_that_a_program_drives_is_the_plugins() {
    if !has_nics() {
        println!("needs a card that another driver takes: run it in the virtual machine");
        return;
    }
    let device = std::fs::canonicalize("/sys/bus/virtio/devices/virtio3/..").unwrap();
    let id = device.file_name().unwrap().to_string_lossy().into_owned();
    let drive = |driver: &str| {
        let path = device.display();
        run(
            "sh",
            &[
                "-ec",
                &format!(
                    "modprobe -q {driver} || true; echo {driver} >{path}/driver_override
             echo {id} >{path}/driver/unbind; echo {id} >/sys/bus/pci/drivers_probe"
                ),
            ],
        );
    };
    let node = node();
    let _agent = Agent::start(&node);
    drive("uio_pci_generic");
    let config =
        json!({"cniVersion": "1.0.0", "name": "red", "type": "host-device", "pciBusID": id});
    let pod = node.pod("c1");
    let answer = pod.cni("ADD", &config);
    let own = by(&node, json!({"pciBusID": id}));
    let refused = node.pod("c2").cni("ADD", &own);
    let result = answer.ok();
    assert_eq!(result["interfaces"][0]["name"], "eth0", "{result}");
    assert_eq!(result["interfaces"][0].get("mac"), None, "{result}");
    assert!(link(pod.ns(), "eth0").is_none());
    let records = format!("{:?}", node.journal().records());
    pod.del(&config);
    drive("virtio-pci");
    assert!(records.contains("c1"), "{records}");
    let (_, text) = refused.error();
    assert!(
        text.contains("uio_pci_generic") && text.contains("\"type\""),
        "{text}"
    );
}
